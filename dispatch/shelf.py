"""The kept lines in a person's hands: listed, queued again, given up."""

from __future__ import annotations

import contextlib
import json
import os

from carrier.attempt import clear
from dispatch import due, journal, keep, kept, outcome, pulse, spool
from dispatch.errors import (
    DeliveryUnknown,
    JournalUnreadable,
    LineInDoubt,
    LineUnderWay,
    NotOnShelf,
)
from dispatch.result import TargetFacts
from dispatch.story import kept_result, newest, story_of
from dispatch.verdict import TABLE
from dispatch.verify import look_again
from registry.clock import iso
from registry.ids import parse_uuid
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.kept import Kept
    from dispatch.result import Result

# A line that no queue holds is shown only while its doubt holds its target back.
_SHOWN = "((kept = 1 AND state IN (10, 11, 50)) OR state = 13)"
_LIVE = (kept.QUEUED, kept.CLAIMED, kept.UNCERTAIN)


def listing(database: Database, target: str | None, *, dead: bool) -> list[dict[str, Any]]:
    """The kept lines as `zdo spool list --json` shows them, in their order."""
    if target is not None and not target.isprintable():
        return []  # nothing of that spelling was ever kept
    where = f"WHERE {_SHOWN}"
    if dead:
        where += " AND state = 50"
    if target is not None:
        where += " AND target = ?"
    first: dict[str, str] = {}
    with database.reading() as link:
        values = () if target is None else (target,)
        lines = kept.select(link, where + " ORDER BY id", values)
        return [shown(link, line, first) for line in lines]


def shown(link: Connection, line: Kept, first: dict[str, str]) -> dict[str, Any]:
    """*line* as JSON; *first* has the line of each target that holds the others back."""
    name, body = journal.newest(link, line.key)
    live = line.state in _LIVE
    holder = first.setdefault(line.target, line.key) if live else line.key
    return {
        "delivery_id": line.key,
        "key": line.given_key or line.key,
        "target": line.target,
        "sender": line.sender,
        "state": kept.STATE_NAMES[line.state],
        "class": name,
        "reason": _reason(body),
        "attempts": line.attempts - kept.FIRST,
        "bytes": len(line.body),
        "created_at": iso(line.created_at),
        "due_at": iso(line.due_at) if line.due_at > line.created_at else None,
        "held_by": None if holder == line.key or line.state != kept.QUEUED else holder,
    }


def requeue(database: Database, house: House, delivery: str, *, looked: bool) -> Result:
    """The line of *delivery*, queued again with all its patience; else why it cannot be.

    What may be at its door needs *looked*: only a person can know that it is not, and
    we look once more all the same.  Killed in the middle, nothing of it was done.
    """
    now = house.clock.now()
    with contextlib.suppress(DeliveryUnknown, JournalUnreadable):
        look_again(database, story_of(database, delivery), house)
    with database.writing() as link:
        line = _line(link, delivery)
        if line.state == kept.QUEUED:
            return _result(link, line)
        in_doubt = line.state == kept.UNCERTAIN or line.status == kept.DOUBT
        if in_doubt and not looked:
            raise LineInDoubt(line.key)
        _refuse_settled(line)
        if line.status == kept.DAMAGED:
            raise NotOnShelf(line.key, "is damaged: its line is not what was accepted")
        spool.queue_again(link, line, pulse.watched(link))
        plain = _result(link, line)
        result = replace(plain, verdict=TABLE["queued"], reason="queued again by hand")
        keep.note(link, journal.REQUEUED, result, {}, now, by=house.speaker)
    _forget_attempts(house, line)
    return result


def drop(database: Database, house: House, delivery: str) -> Result:
    """The line of *delivery* given up: it holds nobody back any more, and its key stays taken.

    Killed in the middle, nothing of it was done.
    """
    now = house.clock.now()
    with database.writing() as link:
        line = _line(link, delivery)
        _refuse_settled(line)
        result = _result(link, line)
        if result.verdict.name == "queued":
            result = replace(result, verdict=TABLE["interrupted"])
        result = replace(result, reason="given up by hand")
        spool.give_up(link, line, outcome.dropped(line), now)
        keep.note(link, journal.DROPPED, result, {}, now, by=house.speaker)
    _forget_attempts(house, line)
    return result


def _forget_attempts(house: House, line: Kept) -> None:
    """Remove what attempts of *line* left: a person has decided, and they hold its text.

    Also those that no row knows; they would put its next try in doubt again.
    """
    for name in os.listdir(house.places.attempts):
        if name.partition(".")[0] == line.key:
            clear(f"{house.places.attempts}/{name}")


def _refuse_settled(line: Kept) -> None:
    if line.state == kept.CLAIMED:
        raise LineUnderWay(line.key)
    if line.state in (kept.SENT, kept.DELIVERED):
        raise NotOnShelf(line.key, "is delivered")


def _line(link: Connection, delivery: str) -> Kept:
    line = kept.find(link, parse_uuid(delivery) or "")
    if line is None:
        raise DeliveryUnknown(delivery)
    return line


def _reason(body: str) -> str | None:
    """Why the last entry about a line was made; None where it does not say."""
    try:
        reason = json.loads(body)["result"]["reason"]
    except (ValueError, KeyError, TypeError):
        return None
    return None if reason is None else str(reason)


def _result(link: Connection, line: Kept) -> Result:
    """What the journal says of *line*; where it says nothing that can be read, the row does."""
    last = newest(journal.story(link, line.key))
    with contextlib.suppress(JournalUnreadable):
        if last is not None:
            return kept_result(last)
    plain = due.start_of(line, "spool")
    return replace(plain, target=TargetFacts(id=line.target))
