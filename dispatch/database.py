"""One SQLite file for spool and journal, opened so that a commit is on the platter.

PERSIST keeps the journal allocated and EXTRA flushes its folder entry too: on a
full disk a claimed line can still be settled (docs/INTERNALS.md, the spool).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from contextlib import contextmanager

from dispatch.errors import DatabaseUnusable
from registry.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID = 0x7A646F31  # "zdo1"
SCHEMA_VERSION = 1

# How long a kiss waits for another writer, who needs a millisecond.
PATIENCE_S = 10
_POLL_S = 0.002
_CLOCK = Clock()

_PLAIN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_PRAGMAS = (
    "PRAGMA journal_mode=PERSIST",
    "PRAGMA synchronous=EXTRA",
    "PRAGMA fullfsync=ON",
    f"PRAGMA busy_timeout={PATIENCE_S * 1000}",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA foreign_keys=ON",
)

# Every column that changes after the insert keeps its width, so that settling
# needs no new page.  attempts counts from 100, times are REAL, owner is a UUID.
_SCHEMA = """
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
"""


class Database:
    """An open file; one per process, never shared across a fork."""

    def __init__(self, path: str, clock: Clock = _CLOCK):
        """Open or make the file at *path*, in a folder that exists and is ours."""
        self.path, self._clock = path, clock
        with _told(path):
            # SQLite makes the file by the umask; it holds lines, so 0600 it is.
            os.close(os.open(path, _PLAIN, 0o600))
            self._link = sqlite3.connect(path, isolation_level=None)
            try:
                for pragma in _PRAGMAS:
                    self._link.execute(pragma)
                self._check_version()
            except BaseException:
                self._link.close()
                raise

    def _check_version(self) -> None:
        version = self._number("user_version")
        if version == 0:
            self._create()
        elif self._number("application_id") != APPLICATION_ID:
            raise DatabaseUnusable(self.path, "is some other program's database; move it away")
        elif version > SCHEMA_VERSION:
            raise DatabaseUnusable(self.path, "was made by a newer zdo; upgrade this one")

    def _create(self) -> None:
        with self.writing() as link:
            # Somebody may have been first while we waited for the lock.
            if self._number("user_version") == 0:
                for statement in _SCHEMA.split(";\n"):
                    link.execute(statement)
                link.execute(f"PRAGMA application_id={APPLICATION_ID}")
                link.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    def _number(self, pragma: str) -> int:
        return int(self._link.execute(f"PRAGMA {pragma}").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it is on disk after the block, or nothing.

        The flock makes waiting fair; SQLite's own back-off starves one of many
        writers for seconds.  Killed in the middle, the next opener rolls back.
        """
        with _told(self.path):
            lock = os.open(os.path.dirname(self.path) + "/spool.lock", _PLAIN, 0o600)
            try:
                self._wait_for(lock)
                self._link.execute("BEGIN IMMEDIATE")
                try:
                    yield self._link
                except BaseException:
                    self._link.rollback()
                    raise
                self._link.commit()
            finally:
                os.close(lock)

    def _wait_for(self, lock: int) -> None:
        until = self._clock.monotonic() + PATIENCE_S
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if self._clock.monotonic() >= until:
                    why = f"another process has been writing it for {PATIENCE_S} s"
                    raise DatabaseUnusable(self.path, why) from None
                self._clock.sleep(_POLL_S)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reads; trouble becomes DatabaseUnusable."""
        with _told(self.path):
            yield self._link

    def close(self) -> None:
        """Let go of the file; an uncommitted transaction is rolled back."""
        self._link.close()


@contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DatabaseUnusable(path, str(error)) from error
    except OSError as error:
        raise DatabaseUnusable(path, error.strerror or str(error)) from error
