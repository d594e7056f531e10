"""The tables of spool and journal, and how an older file becomes this one.

Every column that changes after the insert keeps its width, so that settling needs no
new page: attempts and tries count from 100, cursors from 2**48, times are REAL, owner
and postbox UUIDs.  The body comes last: a long one lies on pages of its own, and no
change touches them.
"""

from __future__ import annotations

import json

from dispatch.seal import seal_of
from dispatch.senders import NEVER, NO_CURSOR
from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from sqlite3 import Connection

NOBODY = "00000000-0000-0000-0000-000000000000"

LINE = f"""
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
  owner      TEXT NOT NULL DEFAULT '{NOBODY}',
  status     TEXT NOT NULL DEFAULT '0.000.000',
  tries      INTEGER NOT NULL DEFAULT 100,
  kept       INTEGER NOT NULL DEFAULT 0,
  postbox    TEXT NOT NULL DEFAULT '{NOBODY}',
  born       REAL NOT NULL DEFAULT 1.5,
  created_at REAL NOT NULL,
  body       BLOB NOT NULL CHECK(length(body) <= 65536)) STRICT;
CREATE INDEX line_live ON line(station, target, id) WHERE state < 20;
"""
EVENT = """
CREATE TABLE event(
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery TEXT NOT NULL,
  at       REAL NOT NULL,
  kind     TEXT NOT NULL,
  class    TEXT,
  body     TEXT NOT NULL) STRICT;
CREATE INDEX event_delivery ON event(delivery, id);
"""
MORE = """
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
"""
READER = f"""
CREATE TABLE reader(
  id            INTEGER PRIMARY KEY,
  session       TEXT NOT NULL UNIQUE,
  name          TEXT NOT NULL,
  registered_at REAL NOT NULL,
  deleted_at    REAL NOT NULL DEFAULT {NEVER},
  cursor        INTEGER NOT NULL DEFAULT {NO_CURSOR}) STRICT;
"""

# What a file of version 1 is turned into: its lines are of this machine, and the ones
# in doubt are looked at again.
_FROM_1 = """
DROP INDEX line_live;
ALTER TABLE line RENAME TO line_1;
{line}{more}
INSERT INTO line(
    id, key, digest, origin, station, target, seal, state, attempts, due_at, claimed_at,
    settled_at, owner, status, postbox, created_at, body)
  SELECT id, key, digest, '', '', target, seal_of_line_1(key, digest, target), state, attempts,
    due_at, claimed_at, settled_at, owner, status,
    coalesce((SELECT postbox_of_event(body) FROM event
              WHERE delivery = key AND kind = 'accepted' ORDER BY id DESC LIMIT 1), '{nobody}'),
    created_at, body
  FROM line_1 ORDER BY id;
DROP TABLE line_1;
"""


def create(link: Connection) -> None:
    """Make every table in the transaction of *link*: all of them, or none when it is killed."""
    _run(link, LINE + EVENT + MORE + READER)


def version_of(names: Collection[object]) -> int:
    """The version whose tables have these *names*, whatever their file claims."""
    if "reader" in names:
        return 3
    return 2 if "pulse" in names else 1


def names_in(link: Connection) -> set[object]:
    """The names of all tables and indexes in *link*."""
    return {name for (name,) in link.execute("SELECT name FROM sqlite_schema")}


def migrate(link: Connection, version: int) -> None:
    """Turn a file of an older *version* into this one in the transaction of *link*.

    Killed in the middle, nothing of it was done.
    """
    if version == 1:
        link.create_function("seal_of_line_1", 3, _seal_of_line_1)
        link.create_function("postbox_of_event", 1, _postbox_of_event)
        _run(link, _FROM_1.format(line=LINE, more=MORE, nobody=NOBODY))
    _run(link, READER)


def _run(link: Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        link.execute(statement)


def _seal_of_line_1(key: str, digest: bytes, target: str) -> bytes:
    return seal_of(
        key=key,
        digest=digest,
        origin="",
        station="",
        target=target,
        sender="anonymous",
        given_key="",
        idle=0,
    )


def _postbox_of_event(body: str) -> str | None:
    """The postbox that an acceptance of version 1 names, so that its orphan is found by it."""
    try:
        return parse_uuid(json.loads(body)["result"]["carrier"]["session_id"])
    except (ValueError, KeyError, TypeError):
        return None
