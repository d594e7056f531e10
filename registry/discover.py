"""Whose ticket is whose: rows, ledger and what was seen of each process → owners.  Pure.

Three sources in one order; the first that binds wins and a later one never overrides
(RULES T02).  A source that is in doubt abstains and says why.
"""

from __future__ import annotations

from registry.ledger import tickets_in
from registry.record import Record
from registry.surroundings import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from registry.ledger import Entry, Ledger
    from registry.row import Row, Skipped


class Owner(Record):
    """A running session and the ticket that it is bound to."""

    pid: int
    session_id: str | None  # None: a row that cannot be used, and does not say
    ticket: str | None
    source: str | None  # correlation, main_process_argument or session_ledger
    at: float | None  # of the event that binds, or when the process started
    tsid: str | None
    why: str | None  # unbound: the reason in one clause


class _Bound(Record):
    """What a source says."""

    ticket: str
    at: float | None


def discover(
    rows: Sequence[Row | Skipped], ledger: Ledger, seen: Mapping[int, Seen]
) -> tuple[Owner, ...]:
    """An owner for each of *rows*, in their order; unbound ones say why (RULES T02 to T05).

    *ledger* is what the ticket events say (`read_ledger`), *seen* a look at each process by
    its pid (`Processes.see`); one that is missing there is a session of which nothing was
    seen.  Times are seconds since 1970.  Total: it raises nothing, asks and writes nothing.
    A session without a usable row owns what it works on all the same: nobody else does.
    """
    pids = ((row, int(row.pid or 0)) for row in rows)
    return tuple(_owner(row, ledger, seen.get(pid) or _unseen(pid)) for row, pid in pids)


def owners_of(ticket: str, owners: Sequence[Owner]) -> tuple[Owner, ...]:
    """The sessions that are bound to *ticket*; more than one is no choice of ours (T07)."""
    return tuple(owner for owner in owners if owner.ticket == ticket)


def in_pane(tsid: str, owners: Sequence[Owner]) -> tuple[Owner, ...]:
    """The sessions that run in the pane *tsid*, bound or not."""
    return tuple(owner for owner in owners if owner.tsid == tsid)


def _owner(row: Row | Skipped, ledger: Ledger, seen: Seen) -> Owner:
    doubts = []
    for source, ask in _SOURCES:
        found = ask(ledger, seen)
        if isinstance(found, _Bound):
            return Owner(
                seen.pid, row.session_id, found.ticket, source, found.at, seen.tsid, why=None
            )
        if found is not None:
            doubts.append(found)
    return Owner(seen.pid, row.session_id, None, None, None, seen.tsid, doubts[0])


def _by_correlation(ledger: Ledger, seen: Seen) -> _Bound | str | None:
    """The newest event that names a process of the session and happened since it started."""
    entries = []
    for member in seen.family:
        entry = ledger.newest_of_pid(member.pid)
        # Whole seconds: an event of the very second in which it started may be cut to it.
        if entry and member.started is not None and int(member.started) <= entry.at:
            entries.append(entry)
    if not entries:
        return None
    return _bound(max(entries, key=lambda entry: (entry.at, entry.line)), ledger)


def _by_argument(ledger: Ledger, seen: Seen) -> _Bound | str | None:
    """The one known ticket in the arguments of the session's own process."""
    named = {ticket for word in seen.argv or () for ticket in tickets_in(word)}
    known = sorted(ticket for ticket in named if ledger.has_create(ticket))
    if len(known) == 1:
        return _Bound(known[0], seen.started)
    if known:
        return f"two tickets in its arguments: {', '.join(known[:2])}"
    if named:
        return f"its arguments name {min(named)}, which has no create"
    return None


def _by_session(ledger: Ledger, seen: Seen) -> _Bound | str:
    """The newest event of the session's pane; older than the process is as good (T03)."""
    if seen.tsid is None:
        return "; ".join(seen.blind) or "its environment has no TERM_SESSION_ID"
    agent = f"claude@{seen.tsid}"
    entry = ledger.newest_of_agent(agent)
    return f"no event of {agent}" if entry is None else _bound(entry, ledger)


def _bound(entry: Entry, ledger: Ledger) -> _Bound | str:
    # No older event is asked instead: the session has moved on to what we do not know (T04).
    if not ledger.has_create(entry.ticket):
        return f"ledger names {entry.ticket}, which has no create"
    return _Bound(entry.ticket, entry.at)


def _unseen(pid: int) -> Seen:
    return Seen(pid, None, None, None, (), ("nothing was seen of its process",))


_SOURCES = (
    ("correlation", _by_correlation),
    ("main_process_argument", _by_argument),
    ("session_ledger", _by_session),
)
