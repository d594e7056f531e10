"""The course of every delivery, from the entries about it: what is known of it at the end.  Pure.

A delivery's own entries come in the order of their ids; the order in which deliveries
come is no matter.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from carrier.transcript import SURFACED as SEEN
from dispatch import journal
from dispatch.verdict import DONE, OPEN, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from typing import Final

# What became of a delivery, the best first.
SURFACED: Final = "surfaced"  # in the model's input
STARTED: Final = "started"  # at its start; the model has not been seen to have it
WAITING: Final = "waiting"  # queued, or under way
HELD: Final = "held"
DOUBT: Final = "doubt"  # may be in
DEAD: Final = "dead"  # accepted and not delivered, and nobody tries it by itself
REFUSED: Final = "refused"  # never accepted
FATES: Final = (SURFACED, STARTED, WAITING, HELD, DOUBT, DEAD, REFUSED)

# What of an entry's body is needed, in the order of `Entry.facts`.
FACTS: Final = (
    "$.result.target.id",
    "$.result.target.session_id",
    "$.result.proof",
    "$.result.reason",
    "$.result.receipt.at",
)

_HOLD: Final = "door-held"
_IN_A_QUEUE: Final = (journal.QUEUED, journal.DEFERRED, journal.REQUEUED)
_TELL_NOTHING: Final = (*journal.BEGUN, *_IN_A_QUEUE)
_NO_FACTS: Final = (None,) * len(FACTS)


class Entry(NamedTuple):
    """An entry of the journal, by what a report asks of it.  A tuple: there may be a million."""

    delivery: str
    at: float
    kind: str
    name: str | None
    facts: str | None  # JSON: an array, see FACTS; whatever it is, it is no error


class Course:
    """One delivery so far.  With slots: of these, too, there may be a million."""

    __slots__ = (
        "at", "attempts", "began", "door_at", "freed_at", "held_at", "held_why", "key", "kind",
        "late", "name", "reason", "seen_at", "session", "target",
    )  # fmt: skip

    def __init__(self, entry: Entry):
        self.key, self.began, self.at = entry.delivery, entry.at, entry.at
        self.kind, self.name = entry.kind, entry.name
        self.target: str | None = None  # the address as it was given
        self.session: str | None = None
        self.reason: str | None = None
        self.attempts = 0
        self.door_at: str | None = None  # as the receipt has it: just before the door was written
        self.seen_at: float | None = None  # of the first entry that knows that it surfaced
        self.late = False  # a later look found that, not the attempt itself
        self.held_at: float | None = None
        self.held_why: str | None = None
        self.freed_at: float | None = None

    def fate(self, waiting: Collection[str]) -> str:
        """One of FATES; *waiting*: the keys that the spool has as queued or being tried."""
        if self.kind == journal.REFUSED:
            return REFUSED
        if self.key in waiting or self.kind in _TELL_NOTHING:
            return WAITING
        if self.kind == journal.DROPPED:
            return DEAD
        verdict = TABLE.get(self.name or "")
        if verdict is None or verdict.fate == OPEN:
            return HELD if self.name == _HOLD else DOUBT
        if self.seen_at is not None:
            return SURFACED
        return STARTED if verdict.fate == DONE else DEAD

    def is_to(self, target: str) -> bool:
        """Whether it is for *target*, an address to the letter or a canonical session id."""
        return target in (self.target, self.session)


class Courses:
    """The courses of all deliveries whose entries were added; memory grows with these alone."""

    def __init__(self) -> None:
        self._known: dict[str, Course] = {}
        self._words: dict[str, str] = {}
        self.entries = 0

    def __iter__(self) -> Iterator[Course]:
        return iter(self._known.values())

    def __contains__(self, delivery: str) -> bool:
        return delivery in self._known

    def add(self, entries: Iterable[Entry]) -> None:
        """Add *entries*."""
        for entry in entries:
            self.entries += 1
            known = self._known.get(entry.delivery)
            if known is None:
                known = self._known[entry.delivery] = Course(entry)
                self._read(known, entry)
            elif entry.kind == journal.REFUSED:
                continue  # another kiss with its key: that says nothing about the line
            else:
                self._follow(known, entry)
            known.attempts += entry.kind in journal.BEGUN

    def _follow(self, known: Course, entry: Entry) -> None:
        if known.held_at is not None and known.freed_at is None and entry.name != _HOLD:
            known.freed_at = entry.at
        if known.kind == journal.REFUSED:
            known.began = entry.at  # refused at first, and kissed again with its key
        known.kind, known.name, known.at = entry.kind, entry.name, entry.at
        if entry.kind not in _TELL_NOTHING:
            self._read(known, entry)

    def _read(self, known: Course, entry: Entry) -> None:
        target, session, proof, reason, door_at = _facts_of(entry)
        known.target = known.target or self._word(target)
        known.session = self._word(session) or known.session
        known.reason = self._word(reason)
        if entry.kind not in journal.VERDICTS:
            return
        known.door_at = door_at or known.door_at
        if proof == SEEN and known.seen_at is None:
            known.seen_at, known.late = entry.at, entry.kind == journal.VERIFIED
        if entry.name == _HOLD and known.held_at is None:
            known.held_at, known.held_why = entry.at, known.reason

    def _word(self, text: str | None) -> str | None:
        """*text*, one object for every equal one: words are few, deliveries are not."""
        return None if text is None else self._words.setdefault(text, text)


def _facts_of(entry: Entry) -> tuple[str | None, ...]:
    """The facts of *entry*, each text or None; a body that a later zdo wrote may have others."""
    try:
        found = json.loads(entry.facts or "null")
    except (ValueError, RecursionError):
        return _NO_FACTS
    if not isinstance(found, list) or len(found) != len(FACTS):
        return _NO_FACTS
    return tuple(each if isinstance(each, str) else None for each in found)
