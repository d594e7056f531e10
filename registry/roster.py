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
    from registry.row import Listing, Skipped
    from registry.targets import Config

_LEDGER = "/.claude/tickets/events.jsonl"


# Why a file among the rows is no running session of ours, though its process runs: the
# process may still be one, at work on something.
_MAY_RUN = (
    "too-large", "unreadable", "torn", "no-session-id", "no-start-time", "no-socket",
    "not-a-socket", "foreign-owner",
)  # fmt: skip


class Roster(Record):
    """The running sessions with what each works on, and what could not be seen."""

    owners: tuple[Owner, ...]  # one for each row of the listing, in its order
    others: tuple[Owner, ...]  # living processes whose rows cannot be used
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
    wanted = {row.pid: row.proc_start for row in listing.rows}
    # Also what was parked: what descends from it is not its parent's.
    living = [each for each in listing.skipped if _lives(each, processes)]
    seen = processes.see(wanted | {int(each.pid or 0): "" for each in living}, env)
    blind = [f"pid {pid}: {why}" for pid in wanted for why in seen[pid].blind]
    if reading.blind is not None:
        blind.insert(0, f"{reading.path}: {reading.blind}")
    owners = discover(listing.rows, reading.ledger, seen)
    others = [each for each in living if each.reason in _MAY_RUN]
    return Roster(owners, discover(others, reading.ledger, seen), reading, tuple(blind))


def _lives(skipped: Skipped, processes: Processes) -> bool:
    may_be = skipped.reason in (*_MAY_RUN, "parked")
    return may_be and skipped.pid is not None and processes.start_token(skipped.pid) is not None
