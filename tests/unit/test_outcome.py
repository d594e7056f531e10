"""What a verdict makes of a line: dead, in doubt, delivered, or tried again, and when."""

from __future__ import annotations

import pytest

from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch import kept, outcome, pace
from dispatch.outcome import NOW, SCHEDULE, Outcome, Patience
from dispatch.verdict import FAILED, OPEN, QUEUE, TABLE
from dispatch.verdict import NONE as NOTHING
from tests.fakes.household import asked
from tests.fakes.rows import a_line

AT = 1_796_048_000.25
PATIENCE = Patience(now=AT, draw=0.5, watched=1000.5)
SAFE = [name for name, verdict in TABLE.items() if verdict.fate in (QUEUE, NOTHING)]


def said(name, **changes):
    """A result of class *name*."""
    return asked(verdict=TABLE[name], **changes)


@pytest.mark.parametrize("name", TABLE)
def test_a_verdicts_fate_is_the_lines(name):
    """Each class of the table, for a line that no queue holds: the caller repeats, or nobody."""
    fate = TABLE[name].fate
    expected = {
        "done": (kept.SENT, kept.DONE),
        "open": (kept.UNCERTAIN, kept.DOUBT),
        "failed": (kept.DEAD, kept.REFUSED),
        "queue": (kept.DEAD, kept.AGAIN),
        "none": (kept.DEAD, kept.AGAIN),
    }[fate]

    assert Outcome(*expected) == outcome.of(said(name))


@pytest.mark.parametrize(
    ("proof", "state"),
    [(NONE, kept.SENT), ("written", kept.SENT), (ENQUEUED, kept.SENT), (SURFACED, kept.DELIVERED)],
)
def test_a_delivery_is_over_when_the_model_has_it(proof, state):
    """Until then it is looked at again."""
    assert Outcome(state, kept.DONE) == outcome.of(said("delivered-start", proof=proof))


@pytest.mark.parametrize("name", SAFE)
def test_a_kept_line_that_may_wait_waits(name):
    """Every safe failure, and it stays in its queue."""
    becomes = outcome.of_kept(said(name), a_line(kept=1), 1, PATIENCE)

    assert (kept.QUEUED, kept.AGAIN, 1) == (becomes.state, becomes.status, becomes.kept)


@pytest.mark.parametrize("name", [n for n in TABLE if n not in SAFE])
def test_what_may_be_in_is_not_tried_again_though_a_queue_holds_it(name):
    """Delivered, in doubt or refused: as for any other line, and no patience changes that."""
    line = a_line(kept=1)

    assert outcome.of(said(name)) == outcome.of_kept(said(name), line, 1, PATIENCE)
    assert outcome.of(said(name)) == outcome.of_kept(said(name), line, 99, PATIENCE)


@pytest.mark.parametrize("name", TABLE)
def test_a_line_that_no_queue_holds_is_its_callers(name):
    """Its verdict alone counts."""
    assert outcome.of(said(name)) == outcome.of_kept(said(name), a_line(kept=0), 99, PATIENCE)


@pytest.mark.parametrize(
    ("tries", "seconds"),
    [(1, 2.5), (2, 5.0), (3, 10.0), (8, 320.0), (9, 450.0), (23, 450.0)],
)
def test_the_next_try_is_later_each_time_and_never_later_than_the_longest(tries, seconds):
    """Full jitter: here the middle of it."""
    becomes = outcome.of_kept(said("carrier-exit"), a_line(kept=1), tries, PATIENCE)

    assert AT + seconds == becomes.due_at


def test_a_dropped_line_waits_until_the_receivers_minute_is_over():
    """It was told that it was too much: a back-off of two seconds would only be dropped again."""
    becomes = outcome.of_kept(said("door-dropped"), a_line(kept=1), 1, PATIENCE)

    assert (kept.QUEUED, AT + pace.WINDOW_S) == (becomes.state, becomes.due_at)


def test_an_interrupted_line_is_due_at_once():
    """Ctrl-C said nothing about the target."""
    assert NOW == outcome.of_kept(said("interrupted"), a_line(kept=1), 1, PATIENCE).due_at


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize(
    ("tries", "born", "over"),
    [
        (SCHEDULE.tries - 1, 1000.5, False),
        (SCHEDULE.tries, 1000.5, True),
        (1, 1000.5 - SCHEDULE.lifetime_s + 1, False),
        (1, 1000.5 - SCHEDULE.lifetime_s, True),
    ],
)
def test_a_line_is_given_up_after_all_its_tries_or_all_its_time(name, tries, born, over):
    """Whichever is first; it is a dead letter that provably never reached its door."""
    becomes = outcome.of_kept(said(name), a_line(kept=1, born=born), tries, PATIENCE)

    assert over == (becomes == outcome.given_up())
    assert (kept.DEAD, kept.OUT_OF_TIME, 1) == tuple(
        getattr(outcome.given_up(), name) for name in ("state", "status", "kept")
    )


def test_the_other_ends_of_a_line():
    """Over, damaged, queued now or later."""
    assert Outcome(kept.DELIVERED, kept.DONE) == outcome.closed()
    assert Outcome(kept.DEAD, kept.DAMAGED) == outcome.damaged()
    assert Outcome(kept.QUEUED, kept.AGAIN, NOW, 1) == outcome.queued()
    assert Outcome(kept.QUEUED, kept.WAITING, AT, 1) == outcome.queued(AT, kept.WAITING)


@pytest.mark.parametrize(
    ("state", "status", "left"),
    [
        (kept.QUEUED, kept.FRESH, kept.AGAIN),
        (kept.QUEUED, kept.WAITING, kept.AGAIN),
        (kept.DEAD, kept.OUT_OF_TIME, kept.AGAIN),
        (kept.DEAD, kept.AGAIN, kept.AGAIN),
        (kept.UNCERTAIN, kept.DOUBT, kept.DOUBT),
        (kept.DEAD, kept.REFUSED, kept.REFUSED),
        (kept.DEAD, kept.DAMAGED, kept.DAMAGED),
    ],
)
def test_a_line_given_up_by_hand_may_be_tried_again_only_if_it_never_reached_its_door(
    state, status, left
):
    """Its key never delivers what may be in."""
    assert Outcome(kept.DEAD, left) == outcome.dropped(a_line(state=state, status=status))


def test_now_is_past_and_as_wide_as_any_time():
    """Zero would be a byte shorter in its row."""
    assert 0 < NOW < 2
    assert NOW % 1
    assert outcome.queued().due_at == NOW


def test_doubt_is_never_harmless():
    """No class that may be in has a status under which its key may be tried."""
    for name, verdict in TABLE.items():
        becomes = outcome.of(said(name))
        line = a_line(state=becomes.state, status=becomes.status)
        assert line.may_be_tried == (verdict.fate not in (OPEN, FAILED, "done"))
