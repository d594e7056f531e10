"""What a command writes down: acceptance, refusal, verdict.  Spool and journal in one commit."""

from __future__ import annotations

import contextlib
import os

from dispatch import journal, kept, outcome, pulse, senders, spool
from dispatch.ballast import give_ballast
from dispatch.database import Database
from dispatch.errors import ClaimLost, DatabaseFull, DatabaseUnusable, JournalUnwritable
from dispatch.result import as_json
from registry.errors import StateUnsafe
from registry.home import open_state
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from sqlite3 import Connection
    from typing import Any

    from carrier.envelope import Envelope
    from dispatch.house import House
    from dispatch.kept import Kept
    from dispatch.outcome import Outcome
    from dispatch.result import Result
    from dispatch.spool import Draft


class Settled(Record):
    """One verdict to write down: what led to it, and what it makes of the line."""

    result: Result
    evidence: dict[str, Any]
    outcome: Outcome


def open_database(house: House) -> Database:
    """The database of *house*, its folder made or checked; StateUnsafe or DatabaseUnusable."""
    open_state(house.places)
    return Database(house.places.database, house.clock)


def refuse_deleted(house: House, session_id: str) -> None:
    """SessionDeleted when the session was unregistered, for those who only look.

    They need no state folder, so where it cannot be asked nobody was.
    """
    if not os.path.lexists(house.places.database):
        return
    with contextlib.suppress(StateUnsafe, DatabaseUnusable):
        database = open_database(house)
        with contextlib.closing(database), database.reading() as link:
            senders.refuse_deleted_target(link, session_id)


def accept(
    database: Database, draft: Draft, result: Result, envelope: Envelope, now: float
) -> int | Kept:
    """The attempt number that *draft* may begin, or the settled line that already has its key.

    It is the number that *envelope* has; ClaimLost when it cannot be.  On disk when it
    returns; killed before, nothing was accepted and nothing started.
    """
    with database.writing() as link:
        claim = spool.accept(link, draft, now, pulse.watched(link))
        if isinstance(claim, int):
            if claim != envelope.attempt:
                # Another's attempt came between; the folder that was laid out is not this one's.
                raise ClaimLost(draft.key)
            begun(link, journal.ACCEPTED, result, envelope, now)
        return claim


def begun(link: Connection, kind: str, result: Result, envelope: Envelope, now: float) -> None:
    """Write that an attempt may begin; whoever judges it later needs no more than this."""
    body = {
        "nonce": envelope.nonce,
        "attempt": envelope.attempt,
        "wrapper_s": envelope.wrapper_s,
        "result": as_json(result),
    }
    journal.add(link, str(result.delivery_id), kind, body, now)


def enqueue(database: Database, draft: Draft, result: Result, now: float) -> Kept | None:
    """None when *draft* waits for the relay now, else the line that already has its key.

    On disk when it returns; killed before, nothing was accepted.
    """
    with database.writing() as link:
        known = spool.enqueue(link, draft, now, pulse.watched(link))
        if known is None:
            note(link, journal.QUEUED, result, {}, now)
        return known


def find(database: Database, draft: Draft) -> Kept | None:
    """The line that already has the key of *draft*; KeyConflict when it is another one."""
    with database.reading() as link:
        known = kept.find(link, draft.key)
    if known is not None:
        spool.refuse_conflict(known, draft)
    return known


def settle(
    database: Database, house: House, settled: Sequence[Settled], owner: str, now: float
) -> None:
    """Record the verdicts of *owner*'s attempts, all or none; else JournalUnwritable."""

    def write(link: Connection) -> None:
        for each in settled:
            key = str(each.result.delivery_id)
            spool.settle(link, key, owner, each.outcome, now)
            note(link, journal.JUDGED, each.result, each.evidence, now)

    _write_surely(database, house, write, settled[0].result)


def settle_doubt(database: Database, house: House, settled: Settled, now: float) -> None:
    """Record what a later look found out; JournalUnwritable when it cannot be.

    Of a line that was tried again since, an older attempt tells no news.
    """

    def write(link: Connection) -> None:
        key = str(settled.result.delivery_id)
        line = kept.find(link, key)
        if line is not None and line.next_attempt > (settled.result.attempt or 0) + 1:
            return
        spool.settle_doubt(link, key, settled.outcome, now)
        note(link, journal.VERIFIED, settled.result, settled.evidence, now, by=house.speaker)

    _write_surely(database, house, write, settled.result)


def refuse(house: House, result: Result, owner: str, now: float) -> bool:
    """Whether the refusal is recorded.  Where that cannot be, it stands all the same."""
    with contextlib.suppress(StateUnsafe, DatabaseUnusable):
        database = open_database(house)
        with contextlib.closing(database), database.writing() as link:
            # A refusal after the line was accepted is that line's verdict.
            ours = spool.settle(link, str(result.delivery_id), owner, outcome.of(result), now)
            note(link, journal.JUDGED if ours else journal.REFUSED, result, {}, now)
            return True
    return False


def note(  # noqa: PLR0913 - an entry has these parts
    link: Connection,
    kind: str,
    result: Result,
    evidence: dict[str, Any],
    now: float,
    *,
    by: str | None = None,
) -> None:
    """Write one entry about *result*; kept when the surrounding transaction is.

    *by* is who did it, where that is another than the sender of the line.
    """
    body = {"class": result.verdict.name, "result": as_json(result), "evidence": evidence}
    if by is not None:
        body["by"] = by
    journal.add(link, str(result.delivery_id), kind, body, now)


def _write_surely(
    database: Database, house: House, write: Callable[[Connection], None], result: Result
) -> None:
    """*write* in one commit, on a full disk in the room that the ballast gives."""
    try:
        try:
            _write(database, write)
        except DatabaseFull:
            if not give_ballast(house.places):
                raise
            _write(database, write)
    except DatabaseUnusable as error:
        raise JournalUnwritable(str(error), result.verdict.name) from error


def _write(database: Database, write: Callable[[Connection], None]) -> None:
    with database.writing() as link:
        write(link)
