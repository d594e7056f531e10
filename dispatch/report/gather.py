"""The journal read once for a report, in short looks: nobody who writes waits for it.

An entry that comes meanwhile is of the next report.
"""

from __future__ import annotations

import contextlib
import gc

from dispatch import kept
from dispatch.reader import tip
from dispatch.report.courses import FACTS, Courses, Entry
from dispatch.report.figures import figures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

    from dispatch.database import Database
    from dispatch.report.figures import Figures

CHUNK: Final = 1_000  # entries that one look reads: 10 ms
# Ids grow with time but where a clock was set back; so many older entries in a row end the search.
DOUBTED: Final = 1_000

_PATHS: Final = ", ".join(f"'{path}'" for path in FACTS)
_READ: Final = (
    "SELECT id, delivery, at, kind, class,"  # noqa: S608 - ours, all of it
    f" CASE WHEN json_valid(body) THEN json_extract(body, {_PATHS}) END"
    " FROM event WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
)
_BACK: Final = "SELECT id, at FROM event WHERE id <= ? ORDER BY id DESC LIMIT ?"


def gather(database: Database, since: float | None, target: str | None) -> Figures:
    """The figures of the deliveries that began at *since* or later, None: of all there ever were.

    *target*: of those for it alone, an address to the letter or a canonical session id.
    """
    with database.reading() as link:
        end = tip(link)
    after = 0 if since is None else _before(database, end, since)
    courses, older = Courses(), set[str]()
    with _without_collector():
        for entries in _chunks(database, after, end):
            older |= _older(database, entries, courses, after, since)
            courses.add(each for each in entries if each.delivery not in older)
        with database.reading() as link:
            states = (kept.QUEUED, kept.CLAIMED)
            asked = "SELECT key FROM line WHERE state < 20 AND state IN (?, ?)"
            waiting = {key for (key,) in link.execute(asked, states)}
        chosen = [each for each in courses if target is None or each.is_to(target)]
        return figures(courses.entries, chosen, waiting)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Nothing here goes round in a circle, and looking for circles takes half the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _before(database: Database, end: int, since: float) -> int:
    """An id behind which all lies that was written at *since* or later, however long the rest is.

    But for what was written under a clock that was wrong for longer than DOUBTED entries.
    """
    first, old, last = end + 1, 0, end
    while old < DOUBTED:
        with database.reading() as link:
            rows = link.execute(_BACK, (last, CHUNK)).fetchall()
        if not rows:
            break
        for number, at in rows:
            first, old = (number, 0) if at >= since else (first, old + 1)
        last = rows[-1][0] - 1
    return first - 1


def _chunks(database: Database, after: int, end: int) -> Iterator[list[Entry]]:
    while True:
        with database.reading() as link:
            rows = link.execute(_READ, (after, end, CHUNK)).fetchall()
        if not rows:
            return
        after = rows[-1][0]
        yield [Entry(*row[1:]) for row in rows]


def _older(
    database: Database, entries: list[Entry], courses: Courses, after: int, since: float | None
) -> set[str]:
    """The deliveries of *entries* that are new here, and began before *since*."""
    if since is None:
        return set()
    first: dict[str, float] = {}
    for each in entries:
        if each.delivery not in courses:
            first.setdefault(each.delivery, each.at)
    marks = ", ".join("?" * len(first))
    asked = f"SELECT DISTINCT delivery FROM event WHERE delivery IN ({marks}) AND id <= ?"  # noqa: S608
    with database.reading() as link:
        known = {key for (key,) in link.execute(asked, (*first, after))}
    # Where a clock was set back, what began earlier lies in between.
    return known | {delivery for delivery, at in first.items() if at < since}
