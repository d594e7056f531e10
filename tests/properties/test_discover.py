"""Whatever the ledger and the processes look like: never a wrong owner, and always a reason."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.discover import discover
from registry.surroundings import Member
from tests.fakes.owners import AGENT, NOW, PID, a_ledger, a_look, a_row, an_event

TICKETS = ("TK-1", "TK-2", "TK-3", "TK-03")
KINDS = ("assign", "create", "action", "comment", "read", "status", "blocker")

pids = st.sampled_from([PID, 77, 78])
correlations = st.none() | pids.map(str) | pids.map("pid:{}".format)
events = st.builds(
    lambda kind, ticket, after, agent, named: an_event(
        kind, ticket, after, agent=agent, correlation_id=named
    ),
    st.sampled_from(KINDS),
    st.sampled_from(TICKETS),
    st.integers(-5, 5),
    st.sampled_from([AGENT, "claude@other", "fable"]),
    correlations,
)
words = st.sampled_from([*TICKETS, "tk-1-fix", "claude", "XTK-1", "--resume"])
starts = st.none() | st.floats(NOW - 6, NOW + 6)
looks = st.builds(
    lambda argv, main, child: a_look(
        argv=argv, started=main, family=(Member(PID, main), Member(77, child))
    ),
    st.none() | st.lists(words, max_size=3).map(tuple),
    starts,
    starts,
)
ledgers = st.lists(events, max_size=12)


def created(lines):
    """The tickets that have a create, by the plainest reading."""
    return {ticket for ticket in TICKETS for line in lines if is_create(line, ticket)}


def is_create(line, ticket):
    """Whether *line* creates *ticket*."""
    return b'"create"' in line and f'"{ticket}"'.encode() in line


@settings(max_examples=500)
@given(lines=ledgers, seen=looks)
def test_no_ticket_without_its_create_and_no_owner_without_a_reason(lines, seen):
    """From no source; and bound or not, the owner is whole."""
    (owner,) = discover([a_row()], a_ledger(*lines), {PID: seen})

    assert owner.ticket in {None, *created(lines)}
    assert (owner.ticket is None) == (owner.source is None) == bool(owner.why)


@settings(max_examples=500)
@given(lines=ledgers, seen=looks)
def test_the_argument_outranks_the_panes_events(lines, seen):
    """Whatever the pane's events say; only an event that names the process comes before."""
    (owner,) = discover([a_row()], a_ledger(*lines), {PID: seen})
    named = {word for word in seen.argv or () if word in created(lines)}
    if "tk-1-fix" in (seen.argv or ()) and "TK-1" in created(lines):
        named.add("TK-1")

    if len(named) == 1 and owner.source != "correlation":
        assert (*named, "main_process_argument", seen.started) == (
            owner.ticket, owner.source, owner.at,
        )  # fmt: skip
    else:
        assert owner.source != "main_process_argument"


@given(lines=ledgers, seen=looks, at=st.integers(0, 12), ticket=st.sampled_from(TICKETS))
def test_an_event_that_reads_changes_nothing(lines, seen, at, ticket):
    """Reading is noise, wherever it stands and whoever reads."""
    noise = an_event("read", ticket, 5, agent=AGENT, correlation_id=str(PID))
    louder = [*lines[:at], noise, *lines[at:]]

    quiet, loud = (discover([a_row()], a_ledger(*each), {PID: seen}) for each in (lines, louder))

    assert quiet == loud


@given(lines=ledgers, seen=looks)
def test_a_correlation_is_never_older_than_its_process(lines, seen):
    """Since pids come round again."""
    (owner,) = discover([a_row()], a_ledger(*lines), {PID: seen})

    if owner.source == "correlation":
        starts = [member.started for member in seen.family if member.started is not None]
        assert owner.at >= int(min(starts))
