"""What the journal tells of one delivery: its entries, its newest verdict, its evidence."""

from __future__ import annotations

import contextlib
import json

from dispatch import journal, keep, kept
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.sender import ANONYMOUS
from dispatch.verdict import TABLE
from registry.ids import parse_uuid
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.journal import Event
    from dispatch.result import Result


def story_of(database: Database, delivery: str) -> tuple[Event, ...]:
    """All events of *delivery*, in any spelling of its id; DeliveryUnknown when there is none."""
    with database.reading() as link:
        events = journal.story(link, parse_uuid(delivery) or "")
    if not events:
        raise DeliveryUnknown(delivery)
    return events


def sender_of_delivery(house: House, delivery: str) -> str:
    """Who sent *delivery*, as the newest entry about its line says, or DeliveryUnknown.

    Not its row: that of a line that an older zdo kept names nobody.
    """
    with contextlib.closing(keep.open_database(house)) as database:
        events = story_of(database, delivery)
    told = newest(events) or events[-1]
    try:
        sender: str | None = json.loads(told.body)["result"]["sender"]
    except (ValueError, KeyError, TypeError) as error:
        raise JournalUnreadable(told.delivery, told.id) from error
    return sender or ANONYMOUS


def last_judged(events: tuple[Event, ...]) -> Event | None:
    """The newest verdict on the newest attempt; without any attempt, the newest entry.

    None while an attempt has begun and has no verdict: it is under way or an orphan.
    """
    begun = [event.id for event in events if event.kind in journal.BEGUN]
    if not begun:
        return newest(events)
    verdicts = (e for e in reversed(events) if e.kind in journal.VERDICTS and e.id > begun[-1])
    return next(verdicts, None)


def newest(events: tuple[Event, ...]) -> Event | None:
    """The newest entry about the line; a refusal of another kiss only where there is no other."""
    told = [event for event in events if event.kind != journal.REFUSED] or events
    return told[-1] if told else None


def last_begun(events: tuple[Event, ...]) -> Event:
    """The entry with which the newest attempt began; there is one."""
    return next(event for event in reversed(events) if event.kind in journal.BEGUN)


def kept_result(event: Event) -> Result:
    """The result in *event*, or JournalUnreadable."""
    # pydantic reads our own file back strictly; a kiss never comes here.
    from dispatch.schema import result_from

    try:
        return result_from(json.loads(event.body)["result"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalUnreadable(event.delivery, event.id) from error


def evidence_of(event: Event) -> dict[str, Any]:
    """The evidence in *event*; empty where there was none."""
    evidence: dict[str, Any] = json.loads(event.body).get("evidence", {})
    return evidence


def known_verdict(asked: Result, owner: str, house: House) -> Result | None:
    """The verdict of the line that has the key of *asked*, if it is this line and may be in.

    One that *owner* has claimed has none yet.
    """
    with contextlib.closing(keep.open_database(house)) as database:
        with database.reading() as link:
            line = kept.find(link, str(asked.delivery_id))
        if line is None or line.may_be_tried or line.digest.hex() != asked.line.sha256:
            return None
        if asked.target.id not in (None, line.target):
            return None
        if line.state == kept.CLAIMED and line.owner == owner:
            return None
        return present_verdict(database, asked)


def present_verdict(database: Database, asked: Result) -> Result:
    """What became of the line that already has the key of *asked*."""
    with database.reading() as link:
        last = last_judged(journal.story(link, str(asked.delivery_id)))
    if (waits := while_queued(database, asked)) is not None:
        return waits
    if last is None:
        reason = "a kiss with this key is under way, or its dispatcher died"
        return replace(asked, verdict=TABLE["unknown"], reason=reason)
    return kept_result(last)


def while_queued(database: Database, asked: Result) -> Result | None:
    """What is said of the delivery that *asked* is about while it waits; None when it does not.

    The reason is that of the newest entry, for that is why it still waits.
    """
    with database.reading() as link:
        line = kept.find(link, str(asked.delivery_id))
        last = newest(journal.story(link, str(asked.delivery_id)))
    if line is None or line.state != kept.QUEUED:
        return None
    if last is None or last.name in (None, "queued"):
        return replace(asked, verdict=TABLE["queued"], reason=None)
    found = kept_result(last)
    return replace(found, verdict=TABLE["queued"], reason=f"{last.name}: {found.reason}")
