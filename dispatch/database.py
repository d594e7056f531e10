"""One SQLite file for spool and journal, opened so that a commit is on the platter.

PERSIST keeps the journal allocated and EXTRA flushes its folder entry too: on a
full disk a claimed line can still be settled (docs/INTERNALS.md, the spool).
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from contextlib import contextmanager

from dispatch.errors import DatabaseDamaged, DatabaseFull, DatabaseUnusable
from registry.clock import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

APPLICATION_ID = 0x7A646F31  # "zdo1"
SCHEMA_VERSION = 3
PAGE = 4096  # the same everywhere: a lost first page can be made again
MOUNTINFO = "/proc/self/mountinfo"

# How long a kiss waits for another writer, who needs a millisecond.
PATIENCE_S = 10
_POLL_S = 0.002
_CLOCK = Clock()

_PLAIN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SMALLEST = 512  # a database of SQLite has no fewer bytes
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

PRAGMAS = (
    "PRAGMA journal_mode=PERSIST",
    "PRAGMA synchronous=EXTRA",
    "PRAGMA fullfsync=ON",
    f"PRAGMA busy_timeout={PATIENCE_S * 1000}",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA foreign_keys=ON",
)


class Database:
    """An open file; one per process, never shared across a fork."""

    def __init__(self, path: str, clock: Clock = _CLOCK, mountinfo: str = MOUNTINFO):
        """Open or make the file at *path*, in a folder that exists and is ours.

        A new one on a network file system is StateUnsafe: two hosts would share it
        without sharing its locks.
        """
        self.path, self._clock, self._mountinfo = path, clock, mountinfo
        self._is_new = False
        with told(path):
            self._identity = _identity_of(self._plain_file())
            self._link = sqlite3.connect(path, isolation_level=None)
            try:
                for pragma in PRAGMAS:
                    self._link.execute(pragma)
                self._check_version()
            except BaseException:
                self._link.close()
                raise

    def _plain_file(self) -> int:
        try:
            return os.open(self.path, _PLAIN)
        except FileNotFoundError:
            self._refuse_network()
            self._is_new = True
            # SQLite makes the file by the umask; it holds lines, so 0600 it is.
            return os.open(self.path, _PLAIN | os.O_CREAT, 0o600)

    def _refuse_network(self) -> None:
        from registry.filesystem import refuse_network

        refuse_network(os.path.dirname(self.path), self._mountinfo)

    def _check_version(self) -> None:
        version = self._number("user_version")
        if version == 0:
            self._create()
        elif self._number("application_id") != APPLICATION_ID:
            raise DatabaseUnusable(self.path, "is some other program's database; move it away")
        elif version > SCHEMA_VERSION:
            raise DatabaseUnusable(self.path, "was made by a newer zdo; upgrade this one")
        elif version < SCHEMA_VERSION:
            self._migrate(version)

    def _create(self) -> None:
        """Make the tables and the ballast; killed in the middle, the next opener makes them."""
        from dispatch import ballast, tables

        reserve = os.path.dirname(self.path) + "/ballast"
        self._link.execute(f"PRAGMA page_size={PAGE}")
        with self._from_version(0) as link:
            if link is not None:
                if link.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,):
                    raise DatabaseUnusable(self.path, "holds tables that are not zdo's")
                size = os.path.getsize(self.path)
                if 0 < size < _SMALLEST or (not self._is_new and os.path.exists(reserve)):
                    # A database was in use here: a new one would forget its keys in silence.
                    raise DatabaseDamaged(self.path, "was cut off")
                tables.create(link)
        ballast.lay(reserve)

    def _migrate(self, version: int) -> None:
        """Bring a file of *version* up to date; killed in the middle, it is the older one still."""
        from dispatch import ballast, tables

        self._refuse_network()
        with self._from_version(version) as link:
            if link is not None:
                found = tables.version_of(tables.names_in(link))
                if found != version:
                    why = f"says that it is of version {version}, with tables of version {found}"
                    raise DatabaseDamaged(self.path, why)
                tables.migrate(link, version)
        ballast.lay(os.path.dirname(self.path) + "/ballast")

    @contextmanager
    def _from_version(self, version: int) -> Iterator[sqlite3.Connection | None]:
        """A write that ends in this version; None when another process was first."""
        with self.writing() as link:
            if self._number("user_version") == version:
                yield link
                stamp(link)
            else:
                yield None

    def _number(self, pragma: str) -> int:
        return int(self._link.execute(f"PRAGMA {pragma}").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it is on disk after the block, or nothing.

        The flock makes waiting fair; SQLite's own back-off starves one of many
        writers for seconds.  Killed in the middle, the next opener rolls back.
        """
        with told(self.path, self._link.close), turn(self.path, self._clock):
            found = os.stat(self.path)
            if (found.st_dev, found.st_ino) != self._identity:
                # What is committed to a file that fsck has moved away is lost to everybody.
                raise DatabaseUnusable(self.path, "was replaced meanwhile; repeat the command")
            self._link.execute("BEGIN IMMEDIATE")
            try:
                yield self._link
                self._link.commit()
            except BaseException:
                self._link.rollback()
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection for reads; trouble becomes DatabaseUnusable."""
        with told(self.path, self._link.close):
            yield self._link

    def close(self) -> None:
        """Let go of the file; an uncommitted transaction is rolled back."""
        self._link.close()


def stamp(link: sqlite3.Connection) -> None:
    """Mark the file of *link* as one of ours, of this version, in its transaction."""
    link.execute(f"PRAGMA application_id={APPLICATION_ID}")
    link.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


@contextmanager
def turn(path: str, clock: Clock) -> Iterator[None]:
    """The right to write the file at *path*, or to replace it: one process at a time.

    Whoever has waited PATIENCE_S gets DatabaseUnusable.  Killed, it is the next one's turn.
    """
    lock = os.open(os.path.dirname(path) + "/spool.lock", _PLAIN | os.O_CREAT, 0o600)
    try:
        until = clock.monotonic() + PATIENCE_S
        while not _locked(lock):
            if clock.monotonic() >= until:
                why = f"another process has been writing it for {PATIENCE_S} s"
                raise DatabaseUnusable(path, why)
            clock.sleep(_POLL_S)
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def told(path: str, give_up: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Trouble with the file at *path* as one of our own errors.

    After an I/O error *give_up* is called: a connection that goes on may see damage
    that is not there, or make some.
    """
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_IOERR:
            give_up()
        raise _in_our_words(path, code, str(error)) from error
    except OSError as error:
        kind = DatabaseFull if error.errno in _NO_ROOM else DatabaseUnusable
        raise kind(path, error.strerror or str(error)) from error


def _in_our_words(path: str, code: int, said: str) -> DatabaseUnusable:
    if code == sqlite3.SQLITE_FULL:
        return DatabaseFull(path, said)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return DatabaseDamaged(path, said)
    if "UTF-8" in said or "can't decode" in said:
        # Python's own complaint, and it quotes what it could not read.
        return DatabaseDamaged(path, "holds text that is not UTF-8")
    return DatabaseUnusable(path, said)


def _identity_of(fd: int) -> tuple[int, int]:
    """Which file *fd* is; it is closed."""
    try:
        found = os.fstat(fd)
        return found.st_dev, found.st_ino
    finally:
        os.close(fd)
