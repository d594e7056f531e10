"""The commands of those who read along: receipts, ack, register, unregister, senders.

A cursor moves after its page was printed: killed in between, the same page comes again.
"""

from __future__ import annotations

import json

from dispatch import reader, senders
from dispatch.cli.answering import head, say, with_database
from dispatch.cli.speech import complain, hold_interrupts, is_heard, speak
from dispatch.cursor import first_place, next_place, place
from dispatch.errors import DispatchError, SessionInvalid, SessionMissing
from dispatch.judge import class_of_error
from dispatch.reader import Narrow
from dispatch.render import clean, failure_line
from dispatch.sender import ANONYMOUS
from dispatch.verdict import TABLE
from registry.clock import iso
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.reader import Page
    from dispatch.senders import Registered

_WHO = "give --session-id, or set one of the variables: zdo receipts --help names them"


class Asked(Record):
    """`zdo receipts` as it was typed."""

    session_id: str | None = None
    resume: bool = False
    peek: bool = False
    from_start: bool = False
    cursor: str | None = None
    limit: int = reader.LIMIT
    order: str = reader.ASC
    narrow: Narrow = Narrow()
    as_object: bool = False

    @property
    def moves(self) -> bool:
        """Whether the reader's cursor goes over the page."""
        return self.resume and not self.peek and self.narrow.may_move


def receipts(asked: Asked) -> int:
    """`zdo receipts`: one page of the journal, and with --resume the next one after the last."""

    def ask(database: Database, house: House) -> int:
        with database.reading() as link:
            who = _named(link, house) if asked.resume else senders.present(link, house.speaker)
        if asked.moves and who is not None and who.cursor is None:
            who = _begin(database, who, from_start=asked.from_start)
        with database.reading() as link:
            page = _page(link, asked, who)
        try:
            lost = speak(_page_lines(page, asked, house))
        except KeyboardInterrupt:
            # A second object would be none; the page is not read, and comes again.
            verdict = TABLE["interrupted"]
            complain(failure_line(verdict.name, "stopped by Ctrl-C", "the same page comes again"))
            return verdict.exit
        if who is None or page.next_cursor is None or not asked.moves or not is_heard():
            return lost
        hold_interrupts()
        return _move(database, who, page.next_cursor)

    return with_database("receipts", asked.session_id, ask, as_object=asked.as_object)


def _begin(database: Database, who: Registered, *, from_start: bool) -> Registered:
    """*who* with the place where its reading begins, on disk: what comes from now on is its."""
    with database.writing() as link:
        start = first_place(who, reader.tip(link), from_start=from_start)
        senders.move(link, who, start)
        return senders.find(link, who.session) or who


def _page(link: Connection, asked: Asked, who: Registered | None) -> Page:
    after = None
    if asked.resume and who is not None:
        after = first_place(who, reader.tip(link), from_start=asked.from_start)
    elif asked.cursor is not None:
        own = None if who is None else who.cursor
        after = place(asked.cursor, own, reader.tip(link))
    return reader.page(link, after, asked.limit, asked.order)


def _page_lines(page: Page, asked: Asked, house: House) -> list[str]:
    events = reader.narrowed(page.events, asked.narrow)
    if asked.as_object:
        whole = head("receipts", house.speaker) | {"order": asked.order, "events": events}
        whole |= {"next_cursor": page.next_cursor, "has_more": page.has_more}
        return [json.dumps(whole)]
    lines = [_event_line(event) for event in events]
    # From the end of the journal backwards there is no next page.
    goes_on = asked.resume or asked.cursor is not None or asked.order == reader.ASC
    more = [f"more after {page.next_cursor}"] if page.has_more and goes_on else []
    return lines + more


def _move(database: Database, who: Registered, cursor: int) -> int:
    """0 once the cursor of *who* is on disk; else the status, and stderr says that it is not.

    The page is on stdout already, and one object is all that a script gets.
    """
    try:
        with database.writing() as link:
            senders.move(link, who, cursor)
    except DispatchError as error:
        verdict = TABLE[class_of_error(error)]
        complain(failure_line(verdict.name, error, "the same page comes again"))
        return verdict.exit
    return 0


def ack(session_id: str | None, cursor: str, *, rewind: bool, as_object: bool) -> int:
    """`zdo ack`: the reader stands where it says, on disk when this returns 0."""

    def ask(database: Database, house: House) -> int:
        with database.writing() as link:
            who = _named(link, house)
            tip = reader.tip(link)
            stands = next_place(cursor, who.cursor, tip, rewind=rewind)
            senders.move(link, who, stands)
        told = {"session_id": who.session, "cursor": stands, "previous": who.cursor, "tip": tip}
        line = f"{who.session} has read up to {stands} of {tip}"
        return say("ack", house, told, line, as_object=as_object)

    return with_database("ack", session_id, ask, as_object=as_object)


def register(session_id: str | None, name: str | None, *, as_object: bool) -> int:
    """`zdo register`: the session may have a cursor; never the ambient one by itself."""

    def ask(database: Database, house: House) -> int:
        session = _new_id(session_id, name)
        with database.writing() as link:
            is_new = senders.register(link, session, name, house.clock.now())
            told = _registration(senders.named(link, session))
        word = "registered" if is_new else "already registered"
        line = f"{word}: {session}"
        return say("register", house, told | {"new": is_new}, line, as_object=as_object)

    return with_database("register", session_id, ask, as_object=as_object)


def unregister(session_id: str | None, *, as_object: bool) -> int:
    """`zdo unregister`: the session reads no more; said twice, it says so."""

    def ask(database: Database, house: House) -> int:
        with database.writing() as link:
            session = senders.named(link, _speaker(house)).session
            is_done = senders.unregister(link, session, house.clock.now())
            told = _registration(senders.named(link, session))
        word = "unregistered" if is_done else f"already unregistered at {told['deleted_at']}"
        line = f"{word}: {session}"
        return say("unregister", house, told | {"already": not is_done}, line, as_object=as_object)

    return with_database("unregister", session_id, ask, as_object=as_object)


def every_sender(session_id: str | None, *, as_object: bool) -> int:
    """`zdo senders`: who is registered or was, and where each one's cursor stands."""

    def ask(database: Database, house: House) -> int:
        with database.reading() as link:
            found = [_registration(each) for each in senders.every(link)]
        if as_object:
            return speak([json.dumps(head("senders", house.speaker) | {"senders": found})])
        return speak([_sender_line(each) for each in found])

    return with_database("senders", session_id, ask, as_object=as_object)


def _named(link: Connection, house: House) -> Registered:
    """The row of the one who asks: there must be one, and it must not have left."""
    senders.present(link, _speaker(house))
    return senders.named(link, house.speaker)


def _speaker(house: House) -> str:
    if house.speaker == ANONYMOUS:
        raise SessionMissing(_WHO)
    return house.speaker


def _new_id(session_id: str | None, name: str | None) -> str:
    """The spelling in which *session_id* is registered; it is given, and both words can be kept."""
    if not session_id:
        raise SessionMissing("give --session-id: whoever registers says which session")
    session = senders.canonical(session_id)
    if session is None:
        why = f"a session id has 1 to {senders.LONGEST_ID} printable bytes, and is not {ANONYMOUS}"
        raise SessionInvalid(why)
    if name is not None and senders.canonical(name) is None:
        raise SessionInvalid(f"a name has 1 to {senders.LONGEST_ID} printable bytes")
    return session


def _registration(known: Registered) -> dict[str, Any]:
    return {
        "session_id": known.session,
        "name": known.name,
        "registered_at": iso(known.registered_at),
        "deleted_at": None if known.deleted_at is None else iso(known.deleted_at),
        "cursor": known.cursor if known.cursor is None or known.cursor >= 0 else None,
    }


def _event_line(event: dict[str, Any]) -> str:
    told = f"{event['kind']} {event['class'] or ''}".rstrip()
    why = f": {event['reason']}" if event["reason"] else ""
    first = f"{event['id']}  {event['at']}  {event['level']}  {event['delivery_id']}"
    return clean(f"{first}  {event['target'] or '-'}  {told}{why}")


def _sender_line(each: dict[str, Any]) -> str:
    gone = f"  unregistered {each['deleted_at']}" if each["deleted_at"] else ""
    stands = "nothing yet" if each["cursor"] is None else f"up to {each['cursor']}"
    return clean(f"{each['session_id']}  {each['name'] or '-'}  has read {stands}{gone}")
