"""Scenes as values: who is configured, who runs, and a roster, or none to be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from registry.discover import Owner
from registry.ledger import Ledger
from registry.ledger_file import Reading
from registry.resolve import Scene
from registry.roster import Roster

if TYPE_CHECKING:
    from registry.row import Listing
    from registry.targets import Config

LEDGER = "/home/u/.claude/tickets/events.jsonl"


def a_scene(config: Config, listing: Listing, roster: Roster | None = None) -> Scene:
    """The scene of *config* and *listing*; without *roster* a look at it is a failure."""

    def look() -> Roster:
        assert roster is not None, "who works on what was looked at, and need not be"
        return roster

    return Scene(config, listing, look)


def an_owner(pid: int, session_id: str, **changes: Any) -> Owner:
    """The owner of nothing, with *changes*."""
    plain = {"ticket": None, "source": None, "at": None, "tsid": None, "why": None}
    return Owner(pid=pid, session_id=session_id, **(plain | changes))


def a_roster(*owners: Owner, known: tuple[str, ...] = (), **changes: Any) -> Roster:
    """A roster of *owners* under a ledger with a create for each of *known*, with *changes*."""
    ledger = Ledger()
    ledger.known |= set(known)
    ledger.lines = len(known)
    plain = {"others": (), "reading": Reading(ledger, LEDGER, absent=not known), "blind": ()}
    return Roster(owners, **(plain | changes))
