"""What a command writes down: acceptance, refusal, verdict.  Spool and journal in one commit."""

from __future__ import annotations

import contextlib

from dispatch import journal, spool
from dispatch.database import Database
from dispatch.errors import DatabaseUnusable, JournalUnwritable
from dispatch.result import as_json
from registry.errors import StateUnsafe
from registry.home import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

    from dispatch.house import House
    from dispatch.result import Result
    from dispatch.spool import Draft, Kept


def open_database(house: House) -> Database:
    """The database of *house*, its folder made or checked; StateUnsafe or DatabaseUnusable."""
    open_state(house.places)
    return Database(house.places.database, house.clock)


def accept(database: Database, draft: Draft, result: Result, nonce: str, now: float) -> int | Kept:
    """The attempt number that *draft* may begin, or the settled line that already has its key.

    On disk when it returns; killed before, nothing was accepted and nothing started.
    """
    with database.writing() as link:
        claim = spool.accept(link, draft, now)
        if isinstance(claim, int):
            body = {"nonce": nonce, "attempt": claim, "result": as_json(result)}
            journal.add(link, draft.key, journal.ACCEPTED, body, now)
        return claim


def find(database: Database, draft: Draft) -> Kept | None:
    """The line that already has the key of *draft*; KeyConflict when it is another one."""
    with database.reading() as link:
        known = spool.find(link, draft.key)
    if known is not None:
        spool.refuse_conflict(known, draft)
    return known


def settle(
    database: Database, result: Result, evidence: dict[str, Any], owner: str, now: float
) -> None:
    """Record the verdict of *owner*'s attempt; JournalUnwritable when it cannot be."""
    key, fate = str(result.delivery_id), result.verdict.fate
    try:
        with database.writing() as link:
            spool.settle(link, key, owner, fate, now)
            _write(link, journal.JUDGED, result, evidence, now)
    except DatabaseUnusable as error:
        raise JournalUnwritable(str(error), result.verdict.name) from error


def settle_doubt(database: Database, result: Result, evidence: dict[str, Any], now: float) -> None:
    """Record what a later look found out; JournalUnwritable when it cannot be."""
    key, fate = str(result.delivery_id), result.verdict.fate
    try:
        with database.writing() as link:
            spool.settle_doubt(link, key, fate, now)
            _write(link, journal.VERIFIED, result, evidence, now)
    except DatabaseUnusable as error:
        raise JournalUnwritable(str(error), result.verdict.name) from error


def refuse(house: House, result: Result, owner: str, now: float) -> None:
    """Record a refusal.  Where that cannot be written, the refusal itself still stands."""
    with contextlib.suppress(StateUnsafe, DatabaseUnusable):
        database = open_database(house)
        with contextlib.closing(database), database.writing() as link:
            # A refusal after the line was accepted is that line's verdict.
            ours = spool.settle(link, str(result.delivery_id), owner, result.verdict.fate, now)
            _write(link, journal.JUDGED if ours else journal.REFUSED, result, {}, now)


def _write(
    link: Connection, kind: str, result: Result, evidence: dict[str, Any], now: float
) -> None:
    body = {"class": result.verdict.name, "result": as_json(result), "evidence": evidence}
    journal.add(link, str(result.delivery_id), kind, body, now)
