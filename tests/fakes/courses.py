"""Entries of the journal as a report asks for them, and the courses and figures that they make."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dispatch.report.courses import Courses, Entry
from dispatch.report.figures import figures
from tests.fakes.household import BEGAN, key_of

if TYPE_CHECKING:
    from dispatch.report.figures import Figures


def an_entry(kind: str, name: str | None = None, at: float = 0.0, **facts: Any) -> Entry:
    """One entry, *at* seconds after BEGAN, by default of delivery 1 to fable."""
    told = [
        facts.get("target", "fable"),
        facts.get("session"),
        facts.get("proof", "none"),
        facts.get("reason"),
        facts.get("door_at"),
    ]
    return Entry(key_of(facts.get("number", 1)), BEGAN + at, kind, name, json.dumps(told))


def delivered(number: int = 1, at: float = 0.0, took: float = 1.0, **facts: Any) -> list[Entry]:
    """A delivery that surfaced in its own attempt."""
    told = {"number": number, "proof": "surfaced"} | facts
    return [
        an_entry("accepted", None, at, number=number, **facts),
        an_entry("judged", "delivered-start", at + took, **told),
    ]


def held(number: int = 1, at: float = 0.0, *later: Entry) -> list[Entry]:
    """A line that was held, and what came later."""
    facts = {"number": number, "proof": "written", "reason": "needs approval"}
    return [
        an_entry("accepted", None, at, number=number),
        an_entry("judged", "door-held", at + 1, **facts),
        *later,
    ]


def counted(*entries: Entry, waiting: tuple[str, ...] = ()) -> Figures:
    """The figures of *entries*."""
    courses = Courses()
    courses.add(entries)
    return figures(courses.entries, courses, waiting)
