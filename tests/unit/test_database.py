"""The one SQLite file: whose it is, what it refuses, what it keeps."""

from __future__ import annotations

import fcntl
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from dispatch.database import PATIENCE_S, SCHEMA_VERSION, Database, DatabaseUnusable
from dispatch.judge import class_of_error
from tests.fakes.evidence import StoppedClock
from tests.fakes.runs import wait_for

# Holds the lock in the middle of a write until it is killed, or its stdin ends.
WRITER = """
import sys
from dispatch.database import Database
database = Database(sys.argv[1])
with database.writing() as link:
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    """Where the database of a test lies."""
    return str(tmp_path / "zdo.db")


def test_a_new_file_is_for_its_owner_alone(path):
    """It holds lines, whatever the umask says."""
    old = os.umask(0)
    try:
        Database(path).close()
    finally:
        os.umask(old)

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_pragmas_that_durability_rests_on_are_set(path):
    """PERSIST, EXTRA, fullfsync: the layout that lost nothing in 120 power cuts."""
    database = Database(path)
    with database.reading() as link:
        found = {
            name: link.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync", "trusted_schema")
        }
    database.close()

    assert found == {
        "journal_mode": "persist",
        "synchronous": 3,
        "fullfsync": 1,
        "trusted_schema": 0,
    }


def test_a_newer_schema_is_refused(path):
    """A file that a later zdo made is left as it is."""
    Database(path).close()
    link = sqlite3.connect(path)
    link.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    link.close()

    with pytest.raises(DatabaseUnusable, match="newer zdo"):
        Database(path)


def test_another_programs_database_is_refused(path):
    """Only a file that carries our application id is written."""
    link = sqlite3.connect(path)
    link.execute("PRAGMA user_version=1")
    link.close()

    with pytest.raises(DatabaseUnusable, match="other program"):
        Database(path)


def test_a_damaged_file_is_a_sentence(path):
    """Garbage in the file is told, not raised as a stranger's error."""
    with open(path, "wb") as file:
        file.write(b"this is no database at all" * 100)

    with pytest.raises(DatabaseUnusable, match="not a database"):
        Database(path)


@pytest.mark.parametrize("kind", ["folder", "fifo", "symlink"])
def test_what_is_not_a_plain_file_is_refused_at_once(path, kind, tmp_path):
    """A pipe never hangs, a link is never followed."""
    if kind == "folder":
        os.mkdir(path)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        os.symlink(tmp_path / "victim", path)

    with pytest.raises(DatabaseUnusable):
        Database(path)

    assert not (tmp_path / "victim").exists()


def test_a_failed_block_leaves_nothing(path):
    """A transaction is all or nothing, also when our own code raises."""
    database = Database(path)

    def fail_in_the_middle():
        with database.writing() as link:
            link.execute("INSERT INTO event(delivery, at, kind, body) VALUES('d', 1, 'k', '{}')")
            raise KeyError("ours")

    with pytest.raises(KeyError):
        fail_in_the_middle()
    with database.reading() as link:
        count = link.execute("SELECT count(*) FROM event").fetchone()[0]
    database.close()

    assert count == 0


def test_many_openers_of_a_new_file_make_one_schema(path):
    """Eight processes that start at once never trip over the creation."""
    code = f"from dispatch.database import Database; Database({path!r}).close()"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(8)]

    assert [0] * 8 == [each.wait(20) for each in started]


def test_an_error_in_a_read_is_told_in_our_words(path):
    """SQLite's own exceptions stay inside."""
    database = Database(path)

    def read_nonsense():
        with database.reading() as link:
            link.execute("SELECT * FROM absent")

    with pytest.raises(DatabaseUnusable, match="no such table"):
        read_nonsense()
    database.close()


def test_a_full_disk_is_a_sentence(path):
    """SQLITE_FULL at any page becomes DatabaseUnusable and keeps what was there."""
    database = Database(path)
    with database.writing() as link:
        link.execute("INSERT INTO event(delivery, at, kind, body) VALUES('d', 1, 'k', '{}')")
        pages = link.execute("PRAGMA page_count").fetchone()[0]
        link.execute(f"PRAGMA max_page_count={pages}")

    def overflow():
        with database.writing() as link:
            link.execute(
                "INSERT INTO event(delivery, at, kind, body) VALUES('d', 2, 'k', ?)",
                ("x" * 100_000,),
            )

    with pytest.raises(DatabaseUnusable, match="full"):
        overflow()
    with database.reading() as link:
        count = link.execute("SELECT count(*) FROM event").fetchone()[0]
    database.close()

    assert count == 1
    assert threading.active_count() == 1


class Late(Database):
    """An opener that saw no schema, and waited while somebody else made it."""

    def _check_version(self):
        Database(self.path).close()
        self._create()


def test_who_comes_second_makes_no_second_schema(path):
    """Between the look and the lock another process may have been first."""
    Late(path).close()
    database = Database(path)
    with database.reading() as link:
        tables = link.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").fetchone()
    database.close()

    assert tables == (3,)  # ours, and SQLite's own for AUTOINCREMENT


@pytest.fixture
def writer(path):
    """A process that is in the middle of a write."""
    argv = [sys.executable, "-c", WRITER, path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, **pipes) as process:
        assert process.stdout.readline() == b"writing\n"
        yield process
        process.kill()


def add_event(database):
    """One more event, in a transaction of its own."""
    with database.writing() as link:
        link.execute("INSERT INTO event(delivery, at, kind, body) VALUES('d', 1, 'k', '{}')")


def count(database):
    """How many events there are."""
    with database.reading() as link:
        return link.execute("SELECT count(*) FROM event").fetchone()[0]


def test_a_writer_that_was_stopped_is_not_waited_for_for_ever(path, writer):
    """A SIGSTOP in the middle of a write: ten seconds, then a sentence of the class of 73."""
    os.kill(writer.pid, signal.SIGSTOP)
    clock = StoppedClock()
    database = Database(path, clock=clock)
    began = clock.at

    with pytest.raises(DatabaseUnusable, match="another process has been writing it for 10 s") as e:
        add_event(database)

    assert PATIENCE_S == pytest.approx(clock.at - began, abs=0.01)
    assert ("spool-unwritable", path) == (class_of_error(e.value), e.value.path)
    assert count(database) == 0
    database.close()


def test_a_writer_that_ends_in_time_is_waited_for(path, writer):
    """The next in turn writes as soon as the lock is free, also when its holder was killed."""

    def kill():
        if clock.slept == 3:
            writer.kill()
            writer.wait()

    clock = StoppedClock(kill)
    database = Database(path, clock=clock)

    add_event(database)

    assert 3 <= clock.slept < 10
    assert count(database) == 1
    database.close()


def test_a_writer_that_is_refused_keeps_no_lock(path, writer):
    """Whoever gave up must not be the next one that others wait for."""
    database = Database(path, clock=StoppedClock())
    with pytest.raises(DatabaseUnusable):
        add_event(database)
    writer.kill()
    wait_for(lambda: writer.poll() is not None)

    with open(os.path.dirname(path) + "/spool.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    add_event(database)
    database.close()


def test_a_reader_does_not_wait_for_a_writer(path, writer):
    """`zdo show` works while somebody is stopped in the middle of a write."""
    os.kill(writer.pid, signal.SIGSTOP)
    clock = StoppedClock()
    database = Database(path, clock=clock)

    assert (0, 0) == (count(database), clock.slept)
    database.close()


@pytest.mark.parametrize("kind", ["folder", "symlink"])
def test_a_lock_that_is_no_plain_file_is_a_sentence(path, kind, tmp_path):
    """It is neither followed nor replaced, and nothing is written."""
    database = Database(path)
    os.unlink(tmp_path / "spool.lock")
    if kind == "folder":
        os.mkdir(tmp_path / "spool.lock")
    else:
        os.symlink(tmp_path / "victim", tmp_path / "spool.lock")

    with pytest.raises(DatabaseUnusable):
        add_event(database)

    assert (0, False) == (count(database), (tmp_path / "victim").exists())
    database.close()


def test_a_pipe_in_the_locks_place_hangs_nobody(path, tmp_path):
    """It can be locked like a file, and nobody reads it."""
    database = Database(path)
    os.unlink(tmp_path / "spool.lock")
    os.mkfifo(tmp_path / "spool.lock")

    add_event(database)

    assert count(database) == 1
    database.close()


@pytest.mark.parametrize(
    ("was", "became"),
    [
        (b"TEXT NOT NULL UNIQUE", b"TEXT NOT NULL UN\xffQUE"),
        (b"ON event(delivery, id)", b"ON event(deliv\xffry, id)"),
    ],
)
def test_a_schema_with_flipped_bytes_is_a_sentence(path, was, became):
    """SQLite quotes them in its complaint, which is no text then; we still say what is wrong."""
    Database(path).close()
    with open(path, "r+b") as file:
        content = file.read()
        assert content.count(was) == 1
        file.seek(content.index(was))
        file.write(became)

    with pytest.raises(DatabaseUnusable, match=r"malformed|can't decode") as caught:
        Database(path)
    assert "spool-unwritable" == class_of_error(caught.value)


def test_a_text_with_flipped_bytes_is_a_sentence(path):
    """Also where only one value is damaged."""
    database = Database(path)
    with database.writing() as link:
        link.execute(
            "INSERT INTO event(delivery, at, kind, body) VALUES('d', 1, CAST(x'ff' AS TEXT), '{}')"
        )

    def read_it():
        with database.reading() as link:
            link.execute("SELECT kind FROM event").fetchone()

    with pytest.raises(DatabaseUnusable, match="UTF-8"):
        read_it()
    database.close()
