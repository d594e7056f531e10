"""Filled databases: lines of every state, each with the story that the journal tells of it."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import uuid
from typing import TYPE_CHECKING, Any

from dispatch import kept
from dispatch.database import Database
from dispatch.house import House
from dispatch.seal import digest_of, seal_of
from dispatch.senders import CURSOR_0, NEVER
from dispatch.whole import EVENT_COLUMNS, LINE_COLUMNS, READER_COLUMNS
from registry.clock import Clock
from registry.home import find_places, open_state
from registry.processes import Processes
from tests.fakes.envelopes import P

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = 1_796_048_000.375

# As zdo of version 1 made it; byte for byte, for a file lives longer than its program.
SCHEMA_1 = """
CREATE TABLE line(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  key        TEXT NOT NULL UNIQUE,
  digest     BLOB NOT NULL,
  origin     TEXT NOT NULL,
  station    TEXT NOT NULL,
  target     TEXT NOT NULL,
  body       BLOB NOT NULL CHECK(length(body) <= 65536),
  state      INTEGER NOT NULL DEFAULT 10,
  attempts   INTEGER NOT NULL DEFAULT 100,
  due_at     REAL NOT NULL DEFAULT 1.5,
  claimed_at REAL NOT NULL DEFAULT 1.5,
  settled_at REAL NOT NULL DEFAULT 1.5,
  owner      TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  status     TEXT NOT NULL DEFAULT '0.000.000',
  created_at REAL NOT NULL) STRICT;
CREATE INDEX line_live ON line(station, target, id) WHERE state < 20;
CREATE TABLE event(
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery TEXT NOT NULL,
  at       REAL NOT NULL,
  kind     TEXT NOT NULL,
  class    TEXT,
  body     TEXT NOT NULL) STRICT;
CREATE INDEX event_delivery ON event(delivery, id);
PRAGMA application_id=0x7A646F31;
PRAGMA user_version=1;
"""
# The same of version 2.
SCHEMA_2 = """
CREATE TABLE line(
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  key        TEXT NOT NULL UNIQUE,
  digest     BLOB NOT NULL,
  origin     TEXT NOT NULL,
  station    TEXT NOT NULL,
  target     TEXT NOT NULL,
  sender     TEXT NOT NULL DEFAULT 'anonymous',
  given_key  TEXT NOT NULL DEFAULT '',
  idle       INTEGER NOT NULL DEFAULT 0,
  seal       BLOB NOT NULL,
  state      INTEGER NOT NULL DEFAULT 10,
  attempts   INTEGER NOT NULL DEFAULT 100,
  due_at     REAL NOT NULL DEFAULT 1.5,
  claimed_at REAL NOT NULL DEFAULT 1.5,
  settled_at REAL NOT NULL DEFAULT 1.5,
  owner      TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  status     TEXT NOT NULL DEFAULT '0.000.000',
  tries      INTEGER NOT NULL DEFAULT 100,
  kept       INTEGER NOT NULL DEFAULT 0,
  postbox    TEXT NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  born       REAL NOT NULL DEFAULT 1.5,
  created_at REAL NOT NULL,
  body       BLOB NOT NULL CHECK(length(body) <= 65536)) STRICT;
CREATE INDEX line_live ON line(station, target, id) WHERE state < 20;
CREATE TABLE event(
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery TEXT NOT NULL,
  at       REAL NOT NULL,
  kind     TEXT NOT NULL,
  class    TEXT,
  body     TEXT NOT NULL) STRICT;
CREATE INDEX event_delivery ON event(delivery, id);
CREATE TABLE sent(
  session TEXT NOT NULL,
  digest  BLOB NOT NULL,
  at      REAL NOT NULL) STRICT;
CREATE INDEX sent_session ON sent(session, at);
CREATE TABLE pulse(
  id        INTEGER PRIMARY KEY CHECK(id = 1),
  at        REAL NOT NULL,
  watched   REAL NOT NULL,
  pruned_at REAL NOT NULL) STRICT;
INSERT INTO pulse(id, at, watched, pruned_at) VALUES(1, 1.5, 1.5, 1.5);
PRAGMA application_id=0x7A646F31;
PRAGMA user_version=2;
"""

# State, status, and what the journal tells of such a line.
LIVES = (
    (kept.QUEUED, kept.FRESH, (("queued", "queued"),)),
    (
        kept.QUEUED,
        kept.AGAIN,
        (("queued", "queued"), ("claimed", None), ("judged", "carrier-busy")),
    ),
    (kept.CLAIMED, kept.FRESH, (("accepted", None),)),
    (kept.SENT, kept.DONE, (("accepted", None), ("judged", "delivered-start"))),
    (
        kept.DELIVERED,
        kept.DONE,
        (("accepted", None), ("judged", "delivered-start"), ("verified", "surfaced")),
    ),
    (kept.UNCERTAIN, kept.DOUBT, (("accepted", None), ("judged", "unknown"))),
    (kept.DEAD, kept.AGAIN, (("accepted", None), ("judged", "carrier-exit"))),
    (kept.DEAD, kept.REFUSED, (("accepted", None), ("judged", "door-refused"))),
)


def a_house(state: str, clock: Clock | None = None) -> House:
    """A house in the state folder *state*; only its folders and its clock are asked for."""
    places = find_places({"HOME": "/nowhere", "ZDO_STATE_DIR": state})
    open_state(places)
    return House(
        env={},
        places=places,
        clock=clock or Clock(),
        processes=Processes(),
        draw=random.random,
        python="/nowhere/python",
        root="/nowhere",
    )


def a_line(number: int, **changes: Any) -> dict[str, Any]:
    """The row of line *number*, sealed; *changes* come before the seal unless they have one."""
    chance = random.Random(number)  # noqa: S311 - the same rows in every run
    body = changes.get("body", f"line {number} ".encode() * chance.choice((1, 9, 90, 900)))
    plain = {
        "id": number,
        "key": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "digest": digest_of(body),
        "origin": "",
        "station": "",
        "target": f"target-{number % 7}",
        "sender": "cron",
        "given_key": f"nightly-{number}",
        "idle": number % 2,
        "state": kept.QUEUED,
        "attempts": kept.FIRST,
        "due_at": 1.5,
        "claimed_at": NOW,
        "settled_at": 1.5,
        "owner": str(uuid.UUID(int=chance.getrandbits(128), version=4)),
        "status": kept.FRESH,
        "tries": kept.FIRST,
        "kept": 1,
        "postbox": P,
        "born": 1.5,
        "created_at": NOW + number,
        "body": body,
    } | changes
    return {"seal": seal(plain)} | plain


def seal(row: dict[str, Any]) -> bytes:
    """The seal that the line *row* should have."""
    names = ("key", "digest", "origin", "station", "target", "sender", "given_key", "idle")
    return seal_of(**{name: row[name] for name in names})


def an_event(delivery: str, kind: str, name: str | None, **changes: Any) -> dict[str, Any]:
    """An entry of the journal on *delivery*."""
    body = {"result": {"delivery_id": delivery, "reason": "word " * 40}, "evidence": {}}
    if name is not None:
        body["class"] = name
    plain = {"delivery": delivery, "at": NOW, "kind": kind, "class": name}
    return plain | {"body": json.dumps(body)} | changes


def a_reader(number: int, **changes: Any) -> dict[str, Any]:
    """The row of a registered session that has read up to entry *number*."""
    plain = {
        "id": number,
        "session": f"c0000000-0000-4000-8000-{number:012d}",
        "name": f"reader {number}",
        "registered_at": NOW,
        "deleted_at": NEVER,
        "cursor": CURSOR_0 + number,
    }
    return plain | changes


def put(link: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    """Insert *row*."""
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    link.execute(f"INSERT INTO {table}({names}) VALUES({marks})", tuple(row.values()))


def fill(path: str, lines: Iterable[int]) -> None:
    """A database at *path* with these *lines*, their states in turn, each with its story."""
    with contextlib.closing(Database(path)) as database, database.writing() as link:
        for number in lines:
            state, status, story = LIVES[number % len(LIVES)]
            begun = sum(kind in ("accepted", "claimed") for kind, _ in story)
            row = a_line(number, state=state, status=status, attempts=kept.FIRST + begun)
            put(link, "line", row)
            for kind, name in (*story, *[("refused", "key-conflict")] * (number % 4)):
                put(link, "event", an_event(row["key"], kind, name))
        link.execute("UPDATE pulse SET at = ?, watched = 3600.25", (NOW,))
        put(link, "sent", {"session": P, "digest": b"d" * 32, "at": NOW})


def lines_in(path: str) -> dict[int, dict[str, Any]]:
    """Every line of the database at *path*, by id."""
    return _rows(path, "line", LINE_COLUMNS)


def events_in(path: str) -> dict[int, dict[str, Any]]:
    """Every event of the database at *path*, by id."""
    return _rows(path, "event", EVENT_COLUMNS)


def readers_in(path: str) -> dict[int, dict[str, Any]]:
    """Every reader of the database at *path*, by id."""
    return _rows(path, "reader", READER_COLUMNS)


def _rows(path: str, table: str, columns: tuple[str, ...]) -> dict[int, dict[str, Any]]:
    with contextlib.closing(sqlite3.connect(path)) as link:
        # Damaged text must not end the reading.
        link.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        found = link.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY id")  # noqa: S608
        return {row[0]: dict(zip(columns, row, strict=True)) for row in found}
