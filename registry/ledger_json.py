"""A ledger as JSON can keep it, and back.  Pure.

Tables stand there as columns: a hundred thousand entries are checked in no time.
"""

from __future__ import annotations

from math import isfinite

from registry.ledger import REASONS, Ledger
from registry.ticket import ticket_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Check = Callable[[list[Any]], bool]


def to_json(ledger: Ledger) -> dict[str, Any]:
    """*ledger* in values that JSON has."""
    return {
        "known": sorted(ledger.known),
        "agents": _columns([(agent, *newest) for agent, newest in ledger.agents.items()], _AGENTS),
        "pids": _columns([(pid, *newest) for pid, newest in ledger.pids.items()], _PIDS),
        "ahead": _columns(ledger.ahead, _EVENTS),
        "lines": ledger.lines,
        "skipped": _columns(list(ledger.skipped.items()), _COUNTS),
        "latest": ledger.latest,
    }


def from_json(found: object) -> Ledger | None:
    """The ledger that *found* was made of; None when anything about it is odd."""
    if not isinstance(found, dict) or found.keys() != vars(Ledger()).keys():
        return None
    try:
        return _ledger_in(found)
    except (TypeError, ValueError):
        return None


def _ledger_in(found: dict[str, Any]) -> Ledger:
    ledger = Ledger()
    ledger.known = {ticket for (ticket,) in _rows([found["known"]], (_are_tickets,))}
    ledger.agents = {who: (at, n, ticket) for who, at, n, ticket in _rows(found["agents"], _AGENTS)}
    ledger.pids = {pid: (at, n, ticket) for pid, at, n, ticket in _rows(found["pids"], _PIDS)}
    ledger.ahead = list(_rows(found["ahead"], _EVENTS))
    ledger.skipped = dict(_rows(found["skipped"], _COUNTS))
    ((ledger.lines, ledger.latest),) = _rows([[found["lines"]], [found["latest"]]], _TOTALS)
    return ledger


def _columns(rows: list[Any], checks: tuple[Check, ...]) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(len(checks))]


def _rows(columns: Any, checks: tuple[Check, ...]) -> Iterable[tuple[Any, ...]]:
    """The rows of *columns*, each of which passes its check; ValueError when one does not."""
    for column, check in zip(columns, checks, strict=True):
        if type(column) is not list or not check(column):
            raise ValueError("not what a ledger holds")
    return zip(*columns, strict=True)


def _only(*kinds: type) -> Check:
    return lambda column: set(kinds).issuperset(map(type, column))


def _are_times(column: list[Any]) -> bool:
    return _only(float)(column) and all(map(isfinite, column))


def _are_tickets(column: list[Any]) -> bool:
    return all(ticket == ticket_of(ticket) for ticket in set(column))


def _are_reasons(column: list[Any]) -> bool:
    return REASONS.keys() >= set(column)


_NEWEST = (_are_times, _only(int), _are_tickets)
_AGENTS, _PIDS = (_only(str), *_NEWEST), (_only(int), *_NEWEST)
_EVENTS = (*_NEWEST, _only(bool), _only(str, type(None)), _only(int, type(None)))
_COUNTS, _TOTALS = (_are_reasons, _only(int)), (_only(int), _are_times)
