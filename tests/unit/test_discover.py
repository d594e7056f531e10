"""Owners: three sources in one order, and every doubt is an abstention with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from registry.discover import Owner, discover, in_pane, owners_of
from registry.surroundings import Member, Seen
from tests.fakes.owners import (
    AGENT,
    NOW,
    PANE,
    PID,
    SESSION,
    a_ledger,
    a_look,
    a_row,
    an_event,
)

if TYPE_CHECKING:
    from registry.ledger import Ledger

CREATES = (an_event("create", "TK-1", -9000), an_event("create", "TK-2", -9000))


def owner(ledger: Ledger, seen: Seen | None = None) -> Owner:
    """The owner that the one row has."""
    (found,) = discover([a_row()], ledger, {} if seen is None else {seen.pid: seen})
    assert (PID, SESSION) == (found.pid, found.session_id)
    assert (found.ticket is None) == (found.why is not None) == (found.source is None)
    return found


def bound(found: Owner) -> tuple[str | None, str | None, float | None]:
    """What the owner is bound to, by what, and since when."""
    return found.ticket, found.source, found.at


def test_an_event_that_names_the_process_binds() -> None:
    """Correlation is the first source."""
    ledger = a_ledger(*CREATES, an_event("action", "TK-1", -60, correlation_id=f"pid:{PID}"))

    found = owner(ledger, a_look(argv=("claude", "TK-2")))

    assert ("TK-1", "correlation", NOW - 60) == bound(found)
    assert PANE == found.tsid


def test_an_event_that_names_a_descendant_binds() -> None:
    """What the session started speaks for the session; the newest of all counts."""
    ledger = a_ledger(
        *CREATES,
        an_event("action", "TK-2", -60, correlation_id=f"{PID}"),
        an_event("action", "TK-1", -50, correlation_id="run-77-x"),
    )
    family = (Member(PID, NOW - 3600), Member(77, NOW - 55.5))

    assert ("TK-1", "correlation", NOW - 50) == bound(owner(ledger, a_look(family=family)))


def test_of_two_events_of_one_moment_the_later_line_counts() -> None:
    """Also when they name two processes."""
    ledger = a_ledger(
        *CREATES,
        an_event("action", "TK-1", -60, correlation_id="77"),
        an_event("action", "TK-2", -60, correlation_id=f"{PID}"),
    )
    family = (Member(PID, NOW - 3600), Member(77, NOW - 3600))

    assert ("TK-2", "correlation", NOW - 60) == bound(owner(ledger, a_look(family=family)))


def test_an_event_older_than_the_process_names_another() -> None:
    """Pids come round again."""
    ledger = a_ledger(*CREATES, an_event("action", "TK-1", -60, correlation_id=f"{PID}"))

    assert owner(ledger, a_look(started=NOW - 59)).ticket is None
    # Of the same second: its fraction may have been cut off.
    assert owner(ledger, a_look(started=NOW - 59.1)).ticket == "TK-1"


def test_without_a_start_time_no_event_names_a_process() -> None:
    """Who started nobody knows when may be older than any event."""
    ledger = a_ledger(*CREATES, an_event("action", "TK-1", -60, correlation_id=f"{PID}"))

    assert owner(ledger, a_look(started=None)).ticket is None


def test_one_known_ticket_among_the_arguments_binds_since_the_start() -> None:
    """The argument outranks the ledger's newest event, and unknown tickets do not count."""
    ledger = a_ledger(*CREATES, an_event("assign", "TK-2", -60, agent=AGENT))
    seen = a_look(argv=("claude", "--name", "tk-1-fix-x", "and TK-1, not TK-9", "XTK-2"))

    assert ("TK-1", "main_process_argument", NOW - 3600) == bound(owner(ledger, seen))


def test_two_known_tickets_among_the_arguments_abstain() -> None:
    """The ledger decides; alone, the two are the reason."""
    seen = a_look(argv=("claude", "TK-1", "TK-2"))
    told = "two tickets in its arguments: TK-1, TK-2"

    ledger = a_ledger(*CREATES, an_event("assign", "TK-2", -60, agent=AGENT))
    assert ("TK-2", "session_ledger", NOW - 60) == bound(owner(ledger, seen))
    assert told == owner(a_ledger(*CREATES), seen).why


def test_an_unknown_ticket_among_the_arguments_is_a_ghost() -> None:
    """It binds nobody and is named."""
    found = owner(a_ledger(*CREATES), a_look(argv=("claude", "TK-9")))

    assert found.why == "its arguments name TK-9, which has no create"


def test_the_newest_event_of_the_pane_binds_however_old() -> None:
    """There is no floor at the start of the process: a resumed session keeps its pane."""
    ledger = a_ledger(
        *CREATES,
        an_event("assign", "TK-1", -7200, agent=AGENT),
        an_event("comment", "TK-2", -5400, agent=AGENT),
    )

    assert ("TK-2", "session_ledger", NOW - 5400) == bound(owner(ledger, a_look()))


@pytest.mark.parametrize("told", [{"agent": AGENT}, {"correlation_id": f"{PID}"}])
def test_a_ghost_binds_nobody_and_hides_what_is_older(told: dict[str, str]) -> None:
    """A source whose newest event names a ticket without a create says nothing at all."""
    ledger = a_ledger(
        *CREATES, an_event("assign", "TK-1", -60, **told), an_event("assign", "TK-9", -50, **told)
    )

    found = owner(ledger, a_look())

    assert (None, None, None) == bound(found)
    assert found.why == "ledger names TK-9, which has no create"


def test_a_ghost_in_one_source_leaves_the_next_its_say() -> None:
    """The correlation abstains, the pane binds."""
    ledger = a_ledger(
        *CREATES,
        an_event("assign", "TK-9", -50, correlation_id=f"{PID}"),
        an_event("assign", "TK-1", -60, agent=AGENT),
    )

    assert ("TK-1", "session_ledger", NOW - 60) == bound(owner(ledger, a_look()))


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (None, "nothing was seen of its process"),
        (a_look(argv=None, tsid=None), "its environment has no TERM_SESSION_ID"),
        (a_look(tsid=None, blind=("its environment x", "y")), "its environment x; y"),
        (a_look(blind=("y",)), f"no event of {AGENT}"),
    ],
)
def test_an_unbound_session_says_why(seen: Seen | None, why: str) -> None:
    """One clause, and the pane if it is known."""
    found = owner(a_ledger(*CREATES), seen)

    assert why == found.why
    assert (seen.tsid if seen else None) == found.tsid


def test_owners_come_in_the_order_of_the_rows() -> None:
    """One for each; those of one ticket and those in one pane are found together."""
    ledger = a_ledger(*CREATES, an_event("assign", "TK-1", -60, agent=AGENT))
    rows = [a_row(9), a_row(7), a_row(8)]
    seen = {7: a_look(7), 8: a_look(8), 9: a_look(9, tsid="other", argv=("claude", "TK-2"))}

    owners = discover(rows, ledger, seen)

    assert [9, 7, 8] == [each.pid for each in owners]
    assert (owners[1], owners[2]) == owners_of("TK-1", owners) == in_pane(PANE, owners)
    assert (owners[0],) == owners_of("TK-2", owners) == in_pane("other", owners)
    assert () == owners_of("TK-3", owners) == in_pane("", owners)
