"""Three writes of the spool, each in a process and a folder of its own, for faults to hit.

`python -m tests.fakes.faulty_spool FOLDER` runs them and prints what came of each; a
tracer counts the system calls of each process from one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

from dispatch import journal, kept, outcome, spool
from dispatch.database import Database
from dispatch.errors import DatabaseFull, DatabaseUnusable
from dispatch.seal import digest_of
from registry.ids import new_uuid
from tests.fakes.envelopes import P
from tests.fakes.spools import NOW, an_event, events_in, lines_in, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from sqlite3 import Connection

KEYS = {
    "put": "a0000000-0000-4000-8000-000000000001",
    "claim": "a0000000-0000-4000-8000-000000000002",
    "settle": "a0000000-0000-4000-8000-000000000003",
}
OWNER = "b0000000-0000-4000-8000-000000000001"
BODY = b"tests are green " * 100


def prepare(folder: str, filler: int = 40) -> None:
    """A state folder for each of the three under *folder*, all with the same content."""
    for name in KEYS:
        os.mkdir(f"{folder}/{name}", 0o700)
        with contextlib.closing(Database(path_of(folder, name))) as database:
            with database.writing() as link:
                for _ in range(filler):
                    enqueue(link, new_uuid())
            with database.writing() as link:
                enqueue(link, KEYS["claim"])
                enqueue(link, KEYS["settle"])
                claim(link, KEYS["settle"])


def path_of(folder: str, name: str) -> str:
    """The database that the write *name* is made in."""
    return f"{folder}/{name}/zdo.db"


def draft(key: str) -> spool.Draft:
    """The line that is kept under *key*."""
    return spool.Draft(key, digest_of(BODY), BODY, "fable", OWNER, P)


def enqueue(link: Connection, key: str) -> None:
    """A line is accepted."""
    spool.enqueue(link, draft(key), NOW, 1.5)
    tell(link, key, journal.QUEUED, "queued")


def claim(link: Connection, key: str) -> None:
    """It is claimed."""
    line = kept.find(link, key)
    assert line is not None
    spool.claim(link, [line], OWNER, P, NOW)
    tell(link, key, journal.CLAIMED, None)


def settle(link: Connection, key: str) -> None:
    """It has its verdict."""
    done = outcome.Outcome(kept.SENT, kept.DONE)
    assert spool.settle(link, key, OWNER, done, NOW + 1)
    tell(link, key, journal.JUDGED, "delivered-start")


def tell(link: Connection, key: str, kind: str, name: str | None) -> None:
    """As the journal tells it."""
    put(link, "event", an_event(key, kind, name))


WRITES: dict[str, Callable[[Connection, str], None]] = {
    "put": enqueue,
    "claim": claim,
    "settle": settle,
}


def attempt(folder: str, name: str) -> str:
    """What came of the write *name*: ok, or the error; on a full disk also of a second try."""
    try:
        with contextlib.closing(Database(path_of(folder, name))) as database:
            try:
                once(database, name)
            except DatabaseFull:
                once(database, name)
                return "DatabaseFull, then ok"
    except DatabaseUnusable as error:
        return type(error).__name__
    return "ok"


def once(database: Database, name: str) -> None:
    """The write *name* in a transaction of its own."""
    with database.writing() as link:
        WRITES[name](link, KEYS[name])


def became(folder: str, name: str) -> str:
    """What the write *name* has left: before, after, or what is neither."""
    found: dict[str, Any] = next(
        (row for row in lines_in(path_of(folder, name)).values() if row["key"] == KEYS[name]), {}
    )
    events = events_in(path_of(folder, name)).values()
    kinds = [event["kind"] for event in events if event["delivery"] == KEYS[name]]
    shown = (found.get("state"), found.get("attempts"), kinds)
    queued, claimed = (kept.QUEUED, 100, ["queued"]), (kept.CLAIMED, 101, ["queued", "claimed"])
    states = {
        "put": ((None, None, []), queued),
        "claim": (queued, claimed),
        "settle": (claimed, (kept.SENT, 101, ["queued", "claimed", "judged"])),
    }
    names = dict(zip(map(repr, states[name]), ("before", "after"), strict=True))
    return names.get(repr(shown), repr(shown))


def main() -> None:
    """Each write in a fork of its own."""
    folder = sys.argv[1]
    for name in WRITES:
        child = os.fork()
        if child == 0:
            os.write(1, f"{name}: {attempt(folder, name)}\n".encode())
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
