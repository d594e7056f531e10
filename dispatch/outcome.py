"""What a verdict makes of a kept line: its next state, and when it is due.  Pure."""

from __future__ import annotations

from carrier.transcript import SURFACED
from dispatch import kept, pace
from dispatch.schedule import Schedule, gave_up, next_due
from dispatch.verdict import DONE, FAILED, OPEN
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.kept import Kept
    from dispatch.result import Result

NOW = 1.5  # a moment that is always past; not whole, so that the column keeps its width
SCHEDULE = Schedule()


class Outcome(Record):
    """The columns that a verdict changes."""

    state: int
    status: str
    due_at: float = NOW
    kept: int = 0  # 1: from now on a queue holds it


class Patience(Record):
    """What a queued line's next try depends on."""

    now: float
    draw: float  # 0 to 1, at random
    watched: float  # the relay's own time, see dispatch/pulse.py


def of(result: Result) -> Outcome:
    """What *result* makes of a line that no queue holds.

    What may be repeated is then the caller's to repeat: the row is a dead letter
    that its own key may try again.
    """
    fate = result.verdict.fate
    if fate == DONE:
        return Outcome(kept.DELIVERED if result.proof == SURFACED else kept.SENT, kept.DONE)
    if fate == OPEN:
        return Outcome(kept.UNCERTAIN, kept.DOUBT)
    if fate == FAILED:
        return Outcome(kept.DEAD, kept.REFUSED)
    return Outcome(kept.DEAD, kept.AGAIN)


def of_kept(result: Result, line: Kept, tries: int, patience: Patience) -> Outcome:
    """What *result* makes of *line* after *tries* tries: a queued one that may wait, waits."""
    plain = of(result)
    if not line.kept or plain.status != kept.AGAIN:
        return plain
    if gave_up(SCHEDULE, tries=tries, waited_s=patience.watched - line.born):
        return given_up()
    if result.verdict.name == "interrupted":
        return queued()
    if result.verdict.name == "door-dropped":
        return queued(patience.now + pace.WINDOW_S)
    return queued(next_due(SCHEDULE, now=patience.now, tries=tries - 1, draw=patience.draw))


def queued(due_at: float = NOW, status: str = kept.AGAIN) -> Outcome:
    """A line that the relay tries again from *due_at* on."""
    return Outcome(kept.QUEUED, status, due_at=due_at, kept=1)


def closed() -> Outcome:
    """A delivery that no later look can say more about."""
    return Outcome(kept.DELIVERED, kept.DONE)


def given_up() -> Outcome:
    """A queued line whose patience is over; it provably never reached its door."""
    return Outcome(kept.DEAD, kept.OUT_OF_TIME, kept=1)


def damaged() -> Outcome:
    """A line whose row is not what was accepted."""
    return Outcome(kept.DEAD, kept.DAMAGED)


def dropped(line: Kept) -> Outcome:
    """*line* given up by hand: it may be tried under its key only if it never reached its door."""
    never = line.state == kept.QUEUED or line.may_be_tried
    return Outcome(kept.DEAD, kept.AGAIN if never else line.status)
