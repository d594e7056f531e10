"""The one SQLite file: whose it is, what it refuses, what it keeps."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading

import pytest

from dispatch.database import SCHEMA_VERSION, Database, DatabaseUnusable


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
