"""The one SQLite file: whose it is, what it refuses, what it keeps."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dispatch import kept, senders, tables
from dispatch.database import APPLICATION_ID, PATIENCE_S, SCHEMA_VERSION, Database, told, turn
from dispatch.errors import DatabaseDamaged, DatabaseFull, DatabaseUnusable
from dispatch.judge import class_of_error
from registry.clock import Clock
from registry.errors import StateUnsafe
from tests.fakes.envelopes import P
from tests.fakes.evidence import StoppedClock
from tests.fakes.spools import (
    SCHEMA_1,
    SCHEMA_2,
    a_line,
    a_reader,
    an_event,
    events_in,
    lines_in,
    put,
    readers_in,
)

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

    with pytest.raises(DatabaseDamaged, match="not a database; zdo fsck keeps"):
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

    with pytest.raises(DatabaseFull, match="full"):
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
        found = link.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").fetchone()
    database.close()

    assert found == (6,)  # ours, and SQLite's own for AUTOINCREMENT


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
    writer.wait(10)

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
        (b"key        TEXT NOT NULL UNIQUE", b"key        TEXT NOT NULL UN\xffQUE"),
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

    with pytest.raises(DatabaseDamaged, match=r"malformed|not UTF-8") as caught:
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

    with pytest.raises(DatabaseDamaged, match="UTF-8"):
        read_it()
    database.close()


class Counted(Database):
    """An opener that counts what it asks the file besides its pragmas."""

    asked = 0

    def _number(self, pragma):
        self.asked += 1
        return super()._number(pragma)


def test_a_file_that_is_up_to_date_is_opened_with_two_questions(path):
    """Every kiss opens it: nothing is checked, made or migrated there that was before."""
    Database(path).close()
    os.unlink(os.path.dirname(path) + "/ballast")
    lock = os.stat(os.path.dirname(path) + "/spool.lock").st_mtime_ns

    database = Counted(path, mountinfo="/nowhere")
    database.close()

    assert database.asked == 2
    assert not os.path.exists(os.path.dirname(path) + "/ballast")
    assert lock == os.stat(os.path.dirname(path) + "/spool.lock").st_mtime_ns


def a_mountinfo(tmp_path, kind):
    """A table of mounts in which everything lies on one file system of *kind*."""
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / / rw - {kind} somewhere rw\n")
    return str(table)


def test_no_database_is_made_on_a_network(path, tmp_path):
    """Two hosts that write it without each other's locks would lose lines."""
    with pytest.raises(StateUnsafe, match=r"network file system \(nfs4\)"):
        Database(path, mountinfo=a_mountinfo(tmp_path, "nfs4"))

    assert not os.path.exists(path)


def test_a_new_database_has_its_ballast(path):
    """Room for settling, before anything can be begun."""
    Database(path).close()

    assert os.path.getsize(os.path.dirname(path) + "/ballast") == 1 << 18


def old_file(path, *rows):
    """A file of version 1 with these *rows* of lines."""
    link = sqlite3.connect(path, isolation_level=None)
    link.executescript(SCHEMA_1)
    for row in rows:
        put(link, "line", OLD_LINE | row)
    return link


OLD_KEY = "a0000000-0000-4000-8000-00000000000{}"
OLD_LINE = {
    "key": OLD_KEY.format(1),
    "digest": hashlib.sha256(b"tests are green").digest(),
    "origin": "mini",
    "station": "mini",
    "target": "fable",
    "body": b"tests are green",
    "state": 20,
    "attempts": 101,
    "claimed_at": 1_796_048_000.25,
    "settled_at": 1_796_048_001.25,
    "owner": "b0000000-0000-4000-8000-000000000001",
    "status": "2.000.000",
    "created_at": 1_796_048_000.25,
}


def schema_of(path):
    """The tables of the file at *path*, as SQLite describes them."""
    link = sqlite3.connect(path)
    found = link.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    link.close()
    return sorted(found, key=repr)


def test_an_older_file_is_brought_up_to_date_with_all_that_it_holds(path, tmp_path):
    """P17: every line keeps its key, place and state, and gets its seal; no event changes."""
    states = [(20, "2.000.000"), (13, "4.005.000"), (50, "4.000.000"), (11, "0.000.000")]
    rows = [
        {"id": n, "key": OLD_KEY.format(n), "state": state, "status": status}
        for n, (state, status) in zip((2, 3, 5, 8), states, strict=True)
    ]
    link = old_file(path, *rows)
    event = an_event(OLD_KEY.format(8), "accepted", None)
    told_of = '{"result": {"carrier": {"session_id": "%s"}}}'
    put(link, "event", event | {"id": 7, "body": told_of % OLD_KEY.format(9)})
    put(link, "event", event | {"id": 9, "body": told_of % P})
    put(link, "event", event | {"id": 11, "kind": "refused", "body": told_of % OLD_KEY.format(9)})
    events = link.execute("SELECT * FROM event").fetchall()
    link.close()

    database = Database(path)
    with database.reading() as link:
        lines = kept.select(link, "ORDER BY id", ())
        after = link.execute("SELECT * FROM event").fetchall()
        pulse = link.execute("SELECT * FROM pulse").fetchall()
    database.close()
    Database(str(tmp_path / "fresh.db")).close()

    assert [(2, *states[0]), (3, *states[1]), (5, *states[2]), (8, *states[3])] == [
        (line.id, line.state, line.status) for line in lines
    ]
    assert all(line.is_whole for line in lines)
    assert [(0, 0, 100, "anonymous", "")] * 4 == [
        (line.kept, line.idle, line.tries, line.sender, line.given_key) for line in lines
    ]
    assert [kept.FIRST + 1] * 4 == [line.attempts for line in lines]
    assert [tables.NOBODY] * 3 + [P] == [line.postbox for line in lines]
    assert (events, [(1, 1.5, 1.5, 1.5)]) == (after, pulse)
    assert schema_of(str(tmp_path / "fresh.db")) == schema_of(path)


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"result": {"carrier": null}}', "nonsense"])
def test_an_old_acceptance_that_names_no_postbox_is_no_hindrance(path, body):
    """Nobody is looked for through it then."""
    link = old_file(path, {"state": 11})
    put(link, "event", an_event(OLD_KEY.format(1), "accepted", None) | {"body": body})
    link.close()

    database = Database(path)
    with database.reading() as link:
        line = kept.find(link, OLD_KEY.format(1))
    database.close()

    assert tables.NOBODY == line.postbox


# Migrates with so small a cache that half of it is on disk, and dies before the commit.
DYING = """
import os, signal, sqlite3, sys
from dispatch import tables
link = sqlite3.connect(sys.argv[1], isolation_level=None)
link.execute("PRAGMA journal_mode=PERSIST")
link.execute("PRAGMA cache_size=2")
link.execute("BEGIN IMMEDIATE")
tables.migrate(link, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_who_dies_while_bringing_it_up_to_date_has_done_nothing(path):
    """P17: the file is the older one, whole; the next opener does it again."""
    rows = [{"id": n, "key": f"{n:08}", "body": b"x" * 3000} for n in range(200)]
    old_file(path, *rows).close()
    before = schema_of(path)

    died = subprocess.run([sys.executable, "-c", DYING, path], check=False)

    assert -signal.SIGKILL == died.returncode
    with open(path + "-journal", "rb") as journal:
        assert journal.read(8) == bytes.fromhex("d9d505f920a163d7")  # hot: there is work to undo
    assert before == schema_of(path)
    database = Database(path)
    with database.reading() as link:
        assert 200 == len(kept.select(link, "", ()))
    database.close()


def test_many_openers_of_an_older_file_migrate_it_once(path):
    """Who comes second finds it done."""
    old_file(path, {}).close()
    code = f"from dispatch.database import Database; Database({path!r}).close()"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(8)]

    assert [0] * 8 == [each.wait(20) for each in started]
    database = Database(path)
    with database.reading() as link:
        assert kept.find(link, OLD_KEY.format(1)).is_whole
    database.close()


class LateToMigrate(Database):
    """An opener that saw the older version, and waited while somebody else was faster."""

    def _migrate(self, version):
        Database(self.path).close()
        super()._migrate(version)


def test_who_comes_second_migrates_nothing(path):
    """A line that was sealed meanwhile is not sealed again."""
    old_file(path, {}).close()

    LateToMigrate(path).close()

    database = Database(path)
    with database.reading() as link:
        assert kept.find(link, OLD_KEY.format(1)).is_whole
    database.close()


def test_an_older_file_on_a_network_is_left_as_it_is(path, tmp_path):
    """It was never right there; it is not made worse."""
    old_file(path, {}).close()
    before = schema_of(path)

    with pytest.raises(StateUnsafe):
        Database(path, mountinfo=a_mountinfo(tmp_path, "cifs"))

    assert before == schema_of(path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_whose_version_was_flipped_is_not_migrated(path, version):
    """Its lines have seals already; a second migration would forget half of each."""
    Database(path).close()
    link = sqlite3.connect(path)
    link.execute(f"PRAGMA user_version={version}")
    link.close()

    with pytest.raises(DatabaseDamaged, match=f"of version {version}, with tables of version 3"):
        Database(path)


def test_a_first_version_that_claims_to_be_the_second_is_not_migrated(path):
    """Its lines would never get their seals."""
    link = old_file(path, {})
    link.execute("PRAGMA user_version=2")
    link.close()

    with pytest.raises(DatabaseDamaged, match="of version 2, with tables of version 1"):
        Database(path)


def second_file(path, count):
    """A file of version 2 with *count* lines, an entry for each."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.executescript(SCHEMA_2)
        for number in range(1, count + 1):
            row = a_line(number)
            put(link, "line", row)
            put(link, "event", an_event(row["key"], "queued", "queued"))
        link.execute("UPDATE pulse SET watched = 3600.25")


def test_a_file_of_version_2_gets_its_readers_and_keeps_the_rest(path, tmp_path):
    """P17: no line and no entry changes, nobody is registered yet."""
    second_file(path, 5)
    before = lines_in(path), events_in(path)

    database = Database(path)
    with database.reading() as link:
        pulse = link.execute("SELECT watched FROM pulse").fetchall()
    database.close()
    Database(str(tmp_path / "fresh.db")).close()

    assert (*before, {}) == (lines_in(path), events_in(path), readers_in(path))
    assert [(3600.25,)] == pulse
    assert schema_of(str(tmp_path / "fresh.db")) == schema_of(path)


def test_a_change_of_a_reader_keeps_the_width_of_its_row(path):
    """On a full disk a cursor can be moved, and a session unregistered."""
    Database(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        put(link, "reader", a_reader(1) | {"cursor": senders.NO_CURSOR})
        places = [Path(path).read_bytes().index(b"reader 1")]
        for cursor in (senders.LOST_CURSOR, senders.CURSOR_0, senders.CURSOR_0 * 2 - 1):
            link.execute("UPDATE reader SET cursor = ?, deleted_at = 1796048000.25", (cursor,))
            places.append(Path(path).read_bytes().index(b"reader 1"))

    # A row that grows or shrinks is laid anew within its page.
    assert places[:1] * 4 == places


def test_many_openers_of_a_file_of_version_2_migrate_it_once(path):
    """Who comes second finds it done."""
    second_file(path, 1)
    code = f"from dispatch.database import Database; Database({path!r}).close()"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]

    assert [0] * 4 == [each.wait(20) for each in started]
    assert {} == readers_in(path)


@pytest.mark.parametrize("ours", [0, APPLICATION_ID])
def test_no_tables_are_made_beside_others(path, ours):
    """A file without a version that holds something is not a new one."""
    link = sqlite3.connect(path)
    link.execute("CREATE TABLE theirs(x)")
    link.execute(f"PRAGMA application_id={ours}")
    link.close()

    with pytest.raises(DatabaseUnusable, match="tables that are not zdo's"):
        Database(path)

    assert [("theirs", "CREATE TABLE theirs(x)")] == schema_of(path)


def test_nothing_is_written_to_a_file_that_was_moved_away(path):
    """What fsck has replaced would take commits that nobody ever sees again."""
    database = Database(path)
    os.rename(path, path + ".moved")
    Database(path).close()

    with pytest.raises(DatabaseUnusable, match="was replaced meanwhile"):
        add_event(database)
    database.close()

    link = sqlite3.connect(path + ".moved")
    assert link.execute("SELECT count(*) FROM event").fetchone() == (0,)
    link.close()


def test_a_commit_that_fails_leaves_nothing_open(path):
    """The next transaction begins as if the failed one had never been."""
    database = Database(path)

    def fail_at_the_commit():
        with database.writing() as link:
            link.execute("CREATE TEMP TABLE p(id PRIMARY KEY)")
            link.execute("CREATE TEMP TABLE c(p REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)")
            link.execute("INSERT INTO c VALUES('nobody')")

    with pytest.raises(DatabaseUnusable, match="FOREIGN KEY"):
        fail_at_the_commit()
    add_event(database)

    assert count(database) == 1
    database.close()


@pytest.mark.parametrize(
    ("code", "kind", "given_up"),
    [
        (sqlite3.SQLITE_IOERR_FSYNC, DatabaseUnusable, True),
        (sqlite3.SQLITE_FULL, DatabaseFull, False),
        (sqlite3.SQLITE_CORRUPT_VTAB, DatabaseDamaged, False),
        (sqlite3.SQLITE_NOTADB, DatabaseDamaged, False),
        (sqlite3.SQLITE_BUSY, DatabaseUnusable, False),
    ],
)
def test_trouble_has_its_own_error_and_an_io_error_ends_the_connection(code, kind, given_up):
    """A connection that goes on after an I/O error may make damage of its own."""
    error = sqlite3.OperationalError("trouble")
    error.sqlite_errorcode = code
    calls = []

    def give_up():
        calls.append(1)

    with pytest.raises(DatabaseUnusable, match="trouble") as caught, told("/p", give_up):
        raise error

    assert (kind, [1] * given_up) == (type(caught.value), calls)


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, DatabaseFull), (errno.EDQUOT, DatabaseFull), (errno.EROFS, DatabaseUnusable)],
)
def test_no_room_is_told_from_other_trouble(number, kind):
    """A full disk has a remedy of its own: the ballast."""
    with pytest.raises(DatabaseUnusable) as caught, told("/p"):
        raise OSError(number, "as the system says it")

    assert (kind, "as the system says it") == (type(caught.value), caught.value.why)


def test_a_complaint_never_quotes_what_is_kept(path):
    """A damaged text is told without its text."""
    database = Database(path)
    with database.writing() as link:
        link.execute(
            "INSERT INTO event(delivery, at, kind, body)"
            " VALUES('d', 1, CAST('secret' || x'ff' AS TEXT), '{}')"
        )

    def read_it():
        with database.reading() as link:
            link.execute("SELECT kind FROM event").fetchone()

    with pytest.raises(DatabaseDamaged) as caught:
        read_it()
    database.close()
    assert "secret" not in str(caught.value)


def test_the_turn_to_write_is_one_processes(path):
    """Whoever replaces the file holds the same turn as whoever writes it."""
    clock = StoppedClock()
    with turn(path, Clock()), pytest.raises(DatabaseUnusable, match="for 10 s"):  # noqa: SIM117
        with turn(path, clock):
            pass

    with turn(path, clock):
        pass
    assert PATIENCE_S == pytest.approx(clock.slept * 0.002, abs=0.1)
