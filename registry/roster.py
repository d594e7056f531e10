"""Who works on what: every running session with its ticket and its pane.

Put together from the registry's rows, the ledger of tickets and what the kernel tells of
each session's process.  A kiss by name or id never comes here.
"""

from __future__ import annotations

from registry.discover import discover
from registry.ledger_file import read_ledger
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from registry.discover import Owner
    from registry.home import Places
    from registry.ledger_file import Reading
    from registry.processes import Processes
    from registry.rows import Listing
    from registry.targets import Config

_LEDGER = "/.claude/tickets/events.jsonl"


class Roster(Record):
    """The running sessions with what each works on, and what could not be seen."""

    owners: tuple[Owner, ...]  # one for each row of the listing, in its order
    reading: Reading
    blind: tuple[str, ...]  # one clause each


def ledger_path(config: Config, places: Places) -> str:
    """Where the ticket events are: under `[tickets] root`, else under the home folder."""
    return (config.tickets_root or places.home) + _LEDGER


def call_roll(  # noqa: PLR0913 - each is another side of the machine
    config: Config,
    listing: Listing,
    *,
    places: Places,
    processes: Processes,
    env: Mapping[str, str],
    now: float,
) -> Roster:
    """The roster of *listing* as the ledger and the processes stand *now*.

    Writes at most the memory of what was read of the ledger.  What cannot be seen makes
    nobody's ticket up: it is told among the *blind* clauses.
    """
    reading = read_ledger(
        ledger_path(config, places), places.ledger_memory, now, config.tickets_correlation or None
    )
    seen = processes.see({row.pid: row.proc_start for row in listing.rows}, env)
    blind = [f"pid {pid}: {why}" for pid, each in seen.items() for why in each.blind]
    if reading.blind is not None:
        blind.insert(0, f"{reading.path}: {reading.blind}")
    owners = discover(listing.rows, reading.ledger, seen)
    return Roster(owners, reading, tuple(blind))
