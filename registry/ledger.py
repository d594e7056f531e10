"""Ticket events, folded: what was created, and what each agent and process took up last.

Pure and total: whatever the lines are, each is taken or skipped with its reason.  Not
promised: that the work still goes on; the newest event is all that a ledger knows.
"""

from __future__ import annotations

from registry.record import Record
from registry.row import json_object
from registry.ticket import pid_named, ticket_of, tickets_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    Newest = tuple[float, int, str]  # at, line, ticket
    # The same, then: is it a create, the agent, the process that its correlation names.
    Event = tuple[float, int, str, bool, str | None, int | None]

__all__ = [
    "AHEAD_S",
    "BINDING",
    "LONGEST_LINE",
    "REASONS",
    "Entry",
    "Ledger",
    "fold",
    "pid_named",
    "ticket_of",
    "tickets_in",
]

# Work on a ticket.  To read one is noise; its status or a blocker may come from anybody.
BINDING = ("assign", "create", "action", "comment")
# So much a clock may be fast; what is dated later waits for its time.
AHEAD_S = 300.0
LONGEST_LINE = 1 << 20

REASONS = {
    "torn": "not one whole JSON object",
    "too-long": "no event is that long",
    "no-ticket": "its id is not that of a ticket",
    "no-time": "it has no time, or one without a zone",
    "ahead": "dated in the future, and too many before it are",
}

_AHEAD_MOST = 10_000


class Entry(Record):
    """Somebody's newest event: the latest, and of equal times the later line."""

    at: float  # seconds since 1970
    line: int  # from 1
    ticket: str


class Ledger:
    """What the lines so far say.  Mutable on purpose: there may be a million of them."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.agents: dict[str, Newest] = {}
        self.pids: dict[int, Newest] = {}
        self.ahead: list[Event] = []
        self.lines = 0
        self.skipped: dict[str, int] = {}
        self.latest = 0.0  # nothing that was taken is dated later

    def has_create(self, ticket: str) -> bool:
        """Whether *ticket* was ever created; without that nobody is bound to it (T04)."""
        return ticket in self.known

    def newest_of_agent(self, agent: str) -> Entry | None:
        """The newest binding event that *agent* logged, whether or not its ticket is known."""
        found = self.agents.get(agent)
        return None if found is None else Entry(*found)

    def newest_of_pid(self, pid: int) -> Entry | None:
        """The newest binding event whose correlation names *pid*."""
        found = self.pids.get(pid)
        return None if found is None else Entry(*found)


def fold(
    ledger: Ledger, lines: Iterable[bytes], now: float, pattern: re.Pattern[str] | None = None
) -> None:
    """*ledger* holds *lines* too, and what was dated ahead and is due *now*.

    *pattern* finds the pid in a correlation, in place of the forms of INTERFACE 7.
    """
    until = now + AHEAD_S
    waiting, ledger.ahead = ledger.ahead, []
    for event in waiting:
        _take(ledger, event, until)
    for line in lines:
        ledger.lines += 1
        if _is_noise(line):
            continue
        found = _event_in(line, ledger.lines, pattern)
        if isinstance(found, str):
            _skip(ledger, found)
        elif found is not None:
            _take(ledger, found, until)


def _is_noise(line: bytes) -> bool:
    """Whether *line* looks whole and cannot bind: seen without parsing, and most are such.

    A word of BINDING stands in a line as it is, unless a backslash hides one of its letters.
    """
    if not line.startswith(b"{") or not line.endswith(b"}") or len(line) > LONGEST_LINE:
        return False
    return not (
        b"\\" in line
        or b'"assign"' in line
        or b'"create"' in line
        or b'"action"' in line
        or b'"comment"' in line
    )


def _event_in(line: bytes, number: int, pattern: re.Pattern[str] | None) -> Event | str | None:
    """The binding event in *line*, or the reason to skip it; None when it is another event."""
    if len(line) > LONGEST_LINE:
        return "too-long"
    found = json_object(line)
    if found is None:
        return "torn" if line.strip() else None
    kind = found.get("type")
    if kind not in BINDING:
        return None
    ticket, at = ticket_of(found.get("id")), _seconds(found.get("ts"))
    if ticket is None or at is None:
        return "no-ticket" if ticket is None else "no-time"
    agent, pid = found.get("agent"), pid_named(found.get("correlation_id"), pattern)
    return at, number, ticket, kind == "create", agent if isinstance(agent, str) else None, pid


def _seconds(text: object) -> float | None:
    """The time that *text* says in ISO 8601, in seconds since 1970; None without a zone."""
    import datetime as dt

    if not isinstance(text, str):
        return None
    try:
        when = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if when.tzinfo is None else when.timestamp()


def _take(ledger: Ledger, event: Event, until: float) -> None:
    at, line, ticket, is_create, agent, pid = event
    if at > until:
        _set_aside(ledger, event)
        return
    ledger.latest = max(ledger.latest, at)
    if is_create:
        ledger.known.add(ticket)
    newest = (at, line, ticket)
    if agent is not None:
        ledger.agents[agent] = max(newest, ledger.agents.get(agent, newest))
    if pid is not None:
        ledger.pids[pid] = max(newest, ledger.pids.get(pid, newest))


def _set_aside(ledger: Ledger, event: Event) -> None:
    if len(ledger.ahead) < _AHEAD_MOST:
        ledger.ahead.append(event)
    else:
        _skip(ledger, "ahead")


def _skip(ledger: Ledger, reason: str) -> None:
    ledger.skipped[reason] = ledger.skipped.get(reason, 0) + 1
