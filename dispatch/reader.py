"""The journal page by page, for those who read along.

A page is cut before anything is left out of it, so that the next one begins where this
one ends, whatever was shown: nothing is read twice, and nothing is skipped.
"""

from __future__ import annotations

import json

from dispatch.journal import Event
from dispatch.levels import LEVELS, level_of
from dispatch.verdict import TABLE
from registry.clock import iso
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

ASC, DESC = "asc", "desc"
LIMIT, MOST = 50, 1000

_COLUMNS = "SELECT id, delivery, at, kind, class, body FROM event"


class Page(Record):
    """Entries as they are printed, and where the next page begins."""

    events: tuple[Event, ...]
    next_cursor: int | None  # the highest id of them; where the page began when there is none
    has_more: bool  # the page is full


class Narrow(Record):
    """What a reader wants to see of a page; None is everything."""

    target: str | None = None
    name: str | None = None
    correlation: str | None = None
    level: str | None = None

    @property
    def may_move(self) -> bool:
        """Whether a cursor may move over the rest: a level is chosen for good, a look is not."""
        return (self.target, self.name, self.correlation) == (None, None, None)


def tip(link: Connection) -> int:
    """The id of the newest entry that was ever made, also when it was lost since; else 0."""
    found = link.execute("SELECT seq FROM sqlite_sequence WHERE name = 'event'").fetchone()
    return 0 if found is None else int(found[0])


def page(link: Connection, after: int | None, limit: int, order: str) -> Page:
    """At most *limit* entries, at a cost that the length of the journal has no part in.

    The oldest ones after the entry *after*, and without one from the end that *order*
    begins at.  The order of printing is *order* in any case.
    """
    if after is None and order == DESC:
        rows = link.execute(f"{_COLUMNS} ORDER BY id DESC LIMIT ?", (limit,)).fetchall()
    else:
        asked = f"{_COLUMNS} WHERE id > ? ORDER BY id LIMIT ?"
        rows = link.execute(asked, (after or 0, limit)).fetchall()
        rows = rows[::-1] if order == DESC else rows
    events = tuple(Event(*row) for row in rows)
    highest = max((event.id for event in events), default=after)
    return Page(events, highest, len(events) == limit)


def shown(event: Event) -> dict[str, Any]:
    """*event* as a reader sees it, null where it does not say; the line is never in it."""
    body = _body_of(event)
    told = _part(body, "result")
    target = _part(told, "target")
    verdict = TABLE.get(event.name or "")
    return {
        "id": event.id,
        "at": iso(event.at),
        "level": level_of(event.kind, event.name),
        "kind": event.kind,
        "class": event.name,
        "exit": None if verdict is None else verdict.exit,
        "delivery_id": event.delivery,
        "key": told.get("key"),
        "sender": told.get("sender"),
        "by": body.get("by"),
        "target": target.get("id"),
        "target_session_id": target.get("session_id"),
        "proof": told.get("proof"),
        "reason": told.get("reason"),
    }


def narrowed(events: tuple[Event, ...], narrow: Narrow) -> list[dict[str, Any]]:
    """Those of *events* that *narrow* lets through, as a reader sees them."""
    return [each for each in map(shown, events) if _fits(each, narrow)]


def _fits(each: dict[str, Any], narrow: Narrow) -> bool:
    if narrow.level is not None and LEVELS.index(each["level"]) < LEVELS.index(narrow.level):
        return False
    return (
        narrow.name in (None, each["class"])
        and _is_one_of(narrow.target, each["target"], each["target_session_id"])
        and _is_one_of(narrow.correlation, each["key"], each["delivery_id"])
    )


def _is_one_of(wanted: str | None, name: object, known_id: object) -> bool:
    """Whether *wanted* is *name* to the letter, or *known_id* in any spelling; None is anything."""
    if wanted is None:
        return True
    return wanted == name or (parse_uuid(wanted) or wanted) == known_id


def _body_of(event: Event) -> dict[str, Any]:
    """The body of *event*; of one that a later zdo wrote, or damage, there may be nothing."""
    try:
        return _part({"body": json.loads(event.body)}, "body")
    except (ValueError, RecursionError):
        return {}


def _part(whole: dict[str, Any], name: str) -> dict[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, dict) else {}
