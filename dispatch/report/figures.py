"""What became of deliveries, as figures: courses in, sums out.  Pure.

A delivery counts once, on the day (UTC) of its first entry, with what is known of it now.
"""

from __future__ import annotations

import datetime as dt
import math

from dispatch import journal
from dispatch.report.courses import DEAD, DOUBT, FATES, WAITING
from dispatch.report.spread import spread
from registry.clock import iso
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Final

    from dispatch.report.courses import Course
    from dispatch.report.spread import Spread

    Sums = dict[str, int]  # by fate, every one of FATES in it

DAY_S: Final = 86_400.0


class Day(Record):
    """The deliveries that began on one day."""

    day: str
    fates: Sums


class Hold(Record):
    """A line that was held, and what became of it."""

    delivery: str
    target: str | None
    at: float
    reason: str | None
    name: str | None  # its class now
    fate: str
    held_s: float | None  # None: it still is


class Doubt(Record):
    """A line that may be in."""

    delivery: str
    target: str | None
    at: float
    name: str | None
    reason: str | None


class Dead(Record):
    """The lines that were given up with one class."""

    name: str | None
    count: int
    by_hand: int
    reason: str | None  # of the newest


class Tries(Record):
    """How often lines were tried."""

    attempts: int
    retries: int  # attempts that were not the first
    lines: int  # that were tried more than once
    most: int


class Recipient(Record):
    """The deliveries to one address; None: they were refused before it was known."""

    target: str | None
    fates: Sums
    surfaced: Spread
    retries: int
    last_at: float

    @property
    def deliveries(self) -> int:
        """How many there are."""
        return sum(self.fates.values())


class Figures(Record):
    """All of it."""

    entries: int
    fates: Sums
    classes: tuple[tuple[str | None, int], ...]  # by class now, the most first; None: under way
    days: tuple[Day, ...]  # those with deliveries
    surfaced: Spread  # from a delivery's first entry to the first one that knows it surfaced
    late: int  # of these, how many only a later look found
    door: Spread  # from its first entry to the time in the receipt, just before the door
    held: tuple[Hold, ...]
    doubt: tuple[Doubt, ...]
    dead: tuple[Dead, ...]
    tries: Tries
    targets: tuple[Recipient, ...]  # the one with the most deliveries first

    @property
    def deliveries(self) -> int:
        """How many there are."""
        return sum(self.fates.values())


def figures(entries: int, courses: Iterable[Course], waiting: Collection[str]) -> Figures:
    """The figures of *courses*; *waiting*: the keys that the spool has as queued or being tried."""
    every = sorted(courses, key=lambda each: (each.began, each.key))
    fates = [each.fate(waiting) for each in every]
    pairs = list(zip(every, fates, strict=True))
    by_target: dict[str | None, list[tuple[Course, str]]] = {}
    by_day: dict[int, list[str]] = {}
    classes: dict[str | None, int] = {}
    for each, fate in pairs:
        by_target.setdefault(each.target, []).append((each, fate))
        by_day.setdefault(math.floor(each.began / DAY_S), []).append(fate)
        name = _class_of(each, fate)
        classes[name] = classes.get(name, 0) + 1
    recipients = [_recipient(target, its) for target, its in by_target.items()]
    return Figures(
        entries=entries,
        fates=_sums(fates),
        classes=tuple(sorted(classes.items(), key=lambda pair: (-pair[1], pair[0] or ""))),
        days=tuple(Day(iso(day * DAY_S)[:10], _sums(its)) for day, its in sorted(by_day.items())),
        surfaced=spread(_seconds_to_surfaced(every)),
        late=sum(each.late for each in every),
        door=spread(_seconds_to_door(every)),
        held=tuple(_hold(each, fate) for each, fate in pairs if each.held_at is not None),
        doubt=tuple(
            Doubt(each.key, each.target, each.at, each.name, each.reason)
            for each, fate in pairs
            if fate == DOUBT
        ),
        dead=_dead([each for each, fate in pairs if fate == DEAD]),
        tries=_tries(every),
        targets=tuple(sorted(recipients, key=_by_size)),
    )


def _sums(fates: Iterable[str]) -> Sums:
    found = dict.fromkeys(FATES, 0)
    for fate in fates:
        found[fate] += 1
    return found


def _class_of(course: Course, fate: str) -> str | None:
    """Its class now; one that waits is queued, whatever its last try came to."""
    if fate != WAITING:
        return course.name
    return None if course.kind in journal.BEGUN else "queued"


def _seconds_to_surfaced(courses: Iterable[Course]) -> list[float]:
    # A clock that was set back took no time away.
    return [max(c.seen_at - c.began, 0.0) for c in courses if c.seen_at is not None]


def _seconds_to_door(courses: Iterable[Course]) -> list[float]:
    found = []
    for each in courses:
        at = None if each.door_at is None else _moment(each.door_at)
        if at is not None:
            found.append(max(at - each.began, 0.0))
    return found


def _moment(text: str) -> float | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None


def _hold(course: Course, fate: str) -> Hold:
    at = course.held_at or 0.0
    held_s = None if course.freed_at is None else max(course.freed_at - at, 0.0)
    return Hold(course.key, course.target, at, course.held_why, course.name, fate, held_s)


def _dead(courses: Iterable[Course]) -> tuple[Dead, ...]:
    groups: dict[str | None, list[Course]] = {}
    for each in courses:
        groups.setdefault(each.name, []).append(each)
    found = []
    for name, its in groups.items():
        newest = max(its, key=lambda each: (each.at, each.key))
        by_hand = sum(each.kind == journal.DROPPED for each in its)
        found.append(Dead(name, len(its), by_hand, newest.reason))
    return tuple(sorted(found, key=lambda dead: (-dead.count, dead.name or "")))


def _tries(courses: Iterable[Course]) -> Tries:
    counts = [each.attempts for each in courses]
    again = [each - 1 for each in counts if each > 1]
    return Tries(sum(counts), sum(again), len(again), max(counts, default=0))


def _recipient(target: str | None, its: list[tuple[Course, str]]) -> Recipient:
    courses = [course for course, _ in its]
    return Recipient(
        target=target,
        fates=_sums(fate for _, fate in its),
        surfaced=spread(_seconds_to_surfaced(courses)),
        retries=_tries(courses).retries,
        last_at=max(each.at for each in courses),
    )


def _by_size(recipient: Recipient) -> tuple[int, bool, str]:
    return -recipient.deliveries, recipient.target is None, recipient.target or ""
