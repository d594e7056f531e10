"""When a line that did not get through is tried again, and when no more.  Pure."""

from __future__ import annotations

from registry.record import Record


class Schedule(Record):
    """The patience of a queue; its defaults are those of a mail queue."""

    first_s: float = 5.0
    longest_s: float = 900.0
    tries: int = 24
    lifetime_s: float = 432_000.0  # five days


def next_due(schedule: Schedule, *, now: float, tries: int, draw: float) -> float:
    """The moment of the next try after *tries* of them, for a random *draw* from [0, 1).

    Full jitter: anywhere between now and the back-off, so that many lines that failed
    together do not come back together.
    """
    # The exponent is cut off before it overflows: 2 to the 64th seconds is no wait.
    backoff = min(schedule.longest_s, schedule.first_s * 2.0 ** min(max(tries, 0), 64))
    return now + draw * backoff


def is_due(due_at: float, now: float, longest: float) -> bool:
    """Whether *due_at* has come; one further away than the *longest* wait has, too.

    Nobody set it so far ahead: the clock has been set back since.
    """
    return not now < due_at <= now + longest


def gave_up(schedule: Schedule, *, tries: int, waited_s: float) -> bool:
    """Whether a line has had all its *tries*, or waited for all of its lifetime."""
    return tries >= schedule.tries or waited_s >= schedule.lifetime_s
