"""`zdo fsck`: what is damaged is kept aside, what is whole goes on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch import fsck, kept, salvage, wreck
from dispatch.database import SCHEMA_VERSION, Database, turn
from dispatch.errors import DatabaseUnusable
from dispatch.reader import tip
from dispatch.senders import CURSOR_0, LOST_CURSOR, NEVER, NO_CURSOR
from registry.clock import Clock
from registry.errors import StateUnsafe
from registry.locks import take_lease
from tests.fakes.envelopes import P
from tests.fakes.evidence import StoppedClock
from tests.fakes.spools import (
    LIVES,
    SCHEMA_1,
    SCHEMA_2,
    a_house,
    a_line,
    a_reader,
    an_event,
    events_in,
    fill,
    lines_in,
    put,
    readers_in,
)

LINES = 16


@pytest.fixture
def house(tmp_path):
    """A house with LINES lines in every state."""
    found = a_house(str(tmp_path / "state"), StoppedClock())
    fill(found.places.database, range(1, LINES + 1))
    return found


@pytest.fixture
def path(house):
    """Where the database of *house* lies."""
    return house.places.database


def change(path, statement, values=()):
    """One change from outside, as damage does it: nobody is asked."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("PRAGMA writable_schema=ON")
        link.execute(statement, values)


def overwrite(path, at, content):
    """Bytes of the file at *path* become others."""
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


def key_of(number):
    """The key of line *number*."""
    return a_line(number)["key"]


def test_a_healthy_spool_is_only_reported(house, path):
    """Not a byte of it changes, and what is open is counted."""
    for number in range(1, LINES + 1):
        if LIVES[number % len(LIVES)][0] in (kept.CLAIMED, kept.UNCERTAIN):
            os.mkdir(f"{house.places.attempts}/{key_of(number)}.1")
    before = Path(path).read_bytes()

    found = fsck.check(house)

    assert (
        fsck.Findings(
            path=path, state="healthy", lines=LINES, events=len(events_in(path)), orphans=2
        )
        == found
    )
    assert before == Path(path).read_bytes()
    assert not os.path.exists(house.places.corrupt)


def test_where_nothing_is_kept_nothing_is_made(house, path):
    """A look is no acceptance."""
    os.unlink(path)

    assert fsck.Findings(path=path, state="absent") == fsck.check(house)
    assert not os.path.exists(path)


def test_an_older_file_is_brought_up_to_date_first(house, path):
    """Then it is looked at like any other."""
    os.unlink(path)
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.executescript(SCHEMA_1)

    assert fsck.Findings(path=path, state="healthy") == fsck.check(house)


def saved_of(house, **changes):
    """What is saved of a file of which nothing is lost, with *changes*."""
    events = len(events_in(house.places.database))
    plain = {
        "moved_to": f"{house.places.corrupt}/20261130T142404Z-zdo.db",
        "lines": LINES,
        "events": events,
        "doubted": 0,
        "dead": 0,
        "lost_lines": 0,
        "lost_events": 0,
    }
    return salvage.Saved(**(plain | changes))


def test_a_line_that_is_not_what_was_accepted_is_dead_and_its_file_kept(house, path):
    """It is never delivered, its key stays taken, and everything else goes on as it was."""
    before = lines_in(path)
    change(path, "UPDATE line SET body = x'6f74686572' WHERE id = 8")
    damaged = Path(path).read_bytes()
    Path(f"{path}-journal").write_bytes(bytes(600))  # spent, as ours is between two writes

    found = fsck.check(house)

    assert fsck.DAMAGED == found.state
    assert (key_of(8),) == found.damaged_lines
    assert saved_of(house, dead=1) == found.saved
    assert damaged == Path(found.saved.moved_to).read_bytes()
    assert bytes(600) == Path(f"{found.saved.moved_to}-journal").read_bytes()
    assert stat.S_IMODE(os.stat(house.places.corrupt).st_mode) == 0o700
    now = lines_in(path)
    dead = {"state": kept.DEAD, "status": kept.DAMAGED, "body": b"other"}
    assert before | {8: before[8] | dead} == now
    again = fsck.check(house)
    assert (fsck.HEALTHY, (), LINES) == (again.state, again.damaged_lines, again.lines)


def test_a_line_whose_state_zdo_never_wrote_is_in_doubt(house, path):
    """Doubt is looked up, and never repeated; what is whole of the row stays."""
    before = lines_in(path)
    change(path, "UPDATE line SET state = 77, claimed_at = 9e999 WHERE id = 7")

    found = fsck.check(house)

    assert ((key_of(7),), saved_of(house, doubted=1)) == (found.odd_lines, found.saved)
    doubt = {"state": kept.UNCERTAIN, "status": kept.DOUBT, "claimed_at": 1.5}
    assert before[7] | doubt == lines_in(path)[7]


def test_an_entry_of_the_journal_that_cannot_be_read_is_lost(house, path):
    """The others are saved, and so is every line."""
    lines, events = lines_in(path), events_in(path)
    change(path, "UPDATE event SET body = 'half a' WHERE id = 5")

    found = fsck.check(house)

    assert 1 == found.damaged_events
    del events[5]
    assert saved_of(house, lost_events=1) == found.saved
    assert (lines, events) == (lines_in(path), events_in(path))


def test_what_the_journal_contradicts_is_told_and_left(house, path):
    """Only a person can say which of the two is right."""
    change(path, "UPDATE line SET state = 20 WHERE id = 6")
    before = Path(path).read_bytes()

    found = fsck.check(house)

    assert (fsck.HEALTHY, (key_of(6),)) == (found.state, found.contradicted)
    assert before == Path(path).read_bytes()


def test_what_the_journal_contradicts_is_in_doubt_when_the_file_is_damaged_anyway(house, path):
    """A stale row must not go to the door again."""
    change(path, "UPDATE line SET state = 10, status = '4.000.000' WHERE id = 4")
    change(path, "DELETE FROM pulse")

    found = fsck.check(house)

    assert ((), saved_of(house, doubted=1)) == (found.contradicted, found.saved)
    assert kept.UNCERTAIN == lines_in(path)[4]["state"]
    assert ("the relay's own time is not one row",) == found.complaints


def test_the_pace_and_the_relays_time_are_saved(house, path):
    """A receiver's limits hold across a repair, and so does a line's patience."""
    change(path, "UPDATE line SET body = x'78' WHERE id = 1")

    fsck.check(house)

    with contextlib.closing(sqlite3.connect(path)) as link:
        assert [(P, b"d" * 32)] == link.execute("SELECT session, digest FROM sent").fetchall()
        assert (3600.25,) == link.execute("SELECT watched FROM pulse").fetchone()


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (f"PRAGMA user_version={SCHEMA_VERSION + 1}", "another version or another program"),
        ("PRAGMA user_version=0", "another version or another program"),
        ("PRAGMA user_version=1", "another version or another program"),
        ("PRAGMA application_id=1", "another version or another program"),
        ("UPDATE sqlite_sequence SET seq = 9223372036854775807", "the counter of table line"),
        ("UPDATE sqlite_sequence SET seq = 1 WHERE name = 'event'", "the counter of table event"),
        ("UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'event'", "the counter of table event"),
        ("UPDATE sqlite_schema SET sql = replace(sql, '< 20', '< 21')", "not as zdo makes them"),
        ("UPDATE sqlite_schema SET sql = 'CREATE' WHERE name = 'sent'", "not as zdo makes them"),
    ],
)
def test_a_file_that_says_what_zdo_never_wrote_is_damaged(house, path, statement, complaint):
    """The tables are ours to the letter, so it is neither a newer zdo's nor another program's."""
    before = lines_in(path), events_in(path)
    change(path, statement)

    found = fsck.check(house)

    assert complaint in " ".join(found.complaints) or "malformed" in found.complaints[0]
    assert saved_of(house) == found.saved
    assert before == (lines_in(path), events_in(path))
    assert fsck.HEALTHY == fsck.check(house).state


def test_a_file_whose_owner_and_tables_are_flipped_is_still_ours(house, path):
    """Another program has tables of other names."""
    before = lines_in(path), events_in(path)
    change(path, "UPDATE sqlite_schema SET sql = replace(sql, '< 20', '< 21')")
    change(path, "PRAGMA application_id=7")

    assert saved_of(house) == fsck.check(house).saved
    assert before == (lines_in(path), events_in(path))


def test_what_kept_it_from_being_opened_is_told_when_it_is_not_damage(house, path):
    """A lock that was let go meanwhile, say."""
    refused = DatabaseUnusable(path, "database is locked")

    with pytest.raises(DatabaseUnusable, match="is locked"):
        fsck._look_at(house.places, refused)


@pytest.mark.parametrize(
    ("at", "content", "complaint"),
    [
        (0, b"no SQLite", "not a database"),
        (18, b"\x07", "may not be written"),
        (19, b"\x07", "not a database"),
        (28, b"\x00\x00\x00\x01", "its header does not say"),
        (100, b"\xff" * 60, "malformed"),
        (3000, b"\xff" * 60, ""),
    ],
)
def test_a_first_page_that_is_damaged_costs_no_line(house, path, at, content, complaint):
    """It says how the tables are made, and that is known."""
    before = lines_in(path), events_in(path)
    overwrite(path, at, content)

    found = fsck.check(house)

    assert complaint in " ".join(found.complaints)
    assert saved_of(house) == found.saved
    assert before == (lines_in(path), events_in(path))


def roots(path):
    """On which page each table and index begins."""
    with contextlib.closing(sqlite3.connect(path)) as link:
        return dict(link.execute("SELECT name, rootpage FROM sqlite_schema"))


@pytest.mark.parametrize("index", ["line_live", "sqlite_autoindex_line_1", "event_delivery"])
def test_an_index_that_is_damaged_costs_nothing(house, path, index):
    """Rows are read from their tables."""
    before = lines_in(path), events_in(path)
    overwrite(path, (roots(path)[index] - 1) * 4096, bytes(2000))

    found = fsck.check(house)

    assert (LINES, 0, 0) == (found.saved.lines, found.saved.lost_lines, found.saved.lost_events)
    assert before == (lines_in(path), events_in(path))


def leaves(path, table):
    """The pages that hold the rows of *table*, from first to last."""
    content = Path(path).read_bytes()
    page = content[(roots(path)[table] - 1) * 4096 :][:4096]
    assert page[0] == 5  # an interior page
    cells = [int.from_bytes(page[12 + 2 * n : 14 + 2 * n], "big") for n in range(page[4])]
    return [int.from_bytes(page[at : at + 4], "big") for at in cells]


def test_a_page_that_is_damaged_costs_the_rows_on_it_and_no_others(house, path):
    """Those behind it are found by what the index still names; the lost are counted."""
    fill(path, range(LINES + 1, 200))
    before = lines_in(path)
    overwrite(path, (leaves(path, "line")[3] - 1) * 4096, b"\x00" * 4096)

    found = fsck.check(house)

    now = lines_in(path)
    assert 0 < found.saved.lost_lines < 20
    assert len(before) - found.saved.lost_lines == len(now) == found.saved.lines
    assert all(before[number] == row for number, row in now.items())
    assert max(before) in now
    assert min(before) in now


def test_a_root_that_is_damaged_costs_its_table(house, path):
    """The journal is saved; the lines that the index names are counted as lost."""
    overwrite(path, (roots(path)["line"] - 1) * 4096, b"\xff" * 4096)

    found = fsck.check(house)

    assert (0, LINES, 0) == (found.saved.lines, found.saved.lost_lines, found.saved.lost_events)
    assert len(events_in(path)) == found.saved.events > LINES


def test_a_line_that_changed_its_place_is_in_doubt(house, path):
    """The order of arrival is no part of the seal; the index is its second witness."""
    fill(path, range(LINES + 1, 40))
    before = lines_in(path)
    content = Path(path).read_bytes()
    page = (leaves(path, "line")[0] - 1) * 4096
    # The first cell of the first page: its length in one or two bytes, then the id.
    cell = page + int.from_bytes(content[page + 8 : page + 10], "big")
    at = cell + (2 if content[cell] & 0x80 else 1)
    number, place = content[at], 0
    overwrite(path, at, bytes([place]))

    found = fsck.check(house)

    assert number in before
    assert found.saved.doubted == 1
    moved = lines_in(path)[place]
    assert (before[number]["key"], kept.UNCERTAIN) == (moved["key"], moved["state"])


def test_a_text_that_is_no_text_is_a_damaged_line(house, path):
    """SQLite does not look; its complaint would quote it."""
    change(path, "UPDATE line SET target = CAST(x'ff' AS TEXT) WHERE id = 2")
    change(path, "UPDATE line SET key = CAST(x'ff' AS TEXT) WHERE id = 3")

    found = fsck.check(house)

    assert (key_of(2), "(row 3)") == found.damaged_lines
    assert 2 == found.saved.lost_lines
    assert LINES - 2 == len(lines_in(path))


def test_a_file_that_is_no_database_is_kept_too(house, path):
    """Whatever it is, somebody may miss it."""
    Path(path).write_bytes(b"this is no database at all" * 100)

    found = fsck.check(house)

    assert (0, 0, 0) == (found.saved.lines, found.saved.events, found.saved.lost_lines)
    assert Path(found.saved.moved_to).read_bytes() == b"this is no database at all" * 100
    Database(path).close()


@pytest.mark.parametrize("size", [0, 1, 50, 512, 4096, 5000])
def test_a_file_that_was_cut_is_kept_too(house, path, size):
    """Down to no byte at all: what was in use is not silently new."""
    os.truncate(path, size)

    found = fsck.check(house)

    assert size == os.path.getsize(found.saved.moved_to)
    assert fsck.HEALTHY == fsck.check(house).state


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (("CREATE TABLE later(x)", f"PRAGMA user_version={SCHEMA_VERSION + 1}"), "newer zdo"),
        (("CREATE TABLE theirs(x)", "PRAGMA application_id=7"), "some other program's"),
        (("CREATE TABLE theirs(x)", "PRAGMA application_id=0", "PRAGMA user_version=0"), "other"),
    ],
)
def test_what_is_not_ours_to_mend_is_left(house, path, statements, why):
    """A newer zdo's file, another program's: no byte of it changes."""
    for statement in statements:
        change(path, statement)
    before = Path(path).read_bytes()

    with pytest.raises(DatabaseUnusable, match=why):
        fsck.check(house)

    assert before == Path(path).read_bytes()


@pytest.mark.parametrize("kind", ["folder", "fifo", "symlink"])
def test_what_is_no_plain_file_is_a_sentence(house, path, kind, tmp_path):
    """It hangs nowhere, follows nothing, moves nothing."""
    os.unlink(path)
    if kind == "folder":
        os.mkdir(path)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        os.symlink(tmp_path / "victim", path)

    with pytest.raises(DatabaseUnusable):
        fsck.check(house)

    assert os.path.lexists(path)


@pytest.mark.parametrize("older", [False, True])
def test_a_writer_that_does_not_end_is_a_sentence_and_no_damage(house, path, older):
    """Also where an older file could not be brought up to date for it."""
    if older:
        os.unlink(path)
        with contextlib.closing(sqlite3.connect(path)) as link:
            link.executescript(SCHEMA_1)
    before = Path(path).read_bytes()

    with turn(path, Clock()), pytest.raises(DatabaseUnusable, match="for 10 s"):
        fsck.check(house)

    assert before == Path(path).read_bytes()


def test_an_older_file_that_is_kept_from_its_change_is_no_damage(house, path):
    """Whatever refused it, once we have the turn: it is told, and the file left."""
    os.unlink(path)
    with contextlib.closing(sqlite3.connect(path)) as link:
        link.executescript(SCHEMA_1)
    change(path, "INSERT INTO line(key, digest, origin, station, target, body, created_at)"
           " VALUES(CAST(x'ff' AS TEXT), x'', '', '', '', x'', 1.5)")  # fmt: skip
    before = Path(path).read_bytes()

    with pytest.raises(DatabaseUnusable, match="user-defined function"):
        fsck.check(house)

    assert before == Path(path).read_bytes()


def test_a_connection_that_is_locked_out_is_a_sentence(path):
    """A stranger's lock is no damage, and is not waited for for ever."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("BEGIN EXCLUSIVE")
        with contextlib.closing(wreck.connect(path)) as other:
            other.execute("PRAGMA busy_timeout=1")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                wreck.complaints(other, path)


# Is killed in the middle of a write that is half on disk.
HALF = """
import os, signal, sqlite3, sys
link = sqlite3.connect(sys.argv[1], isolation_level=None)
link.execute("PRAGMA journal_mode=PERSIST")
link.execute("PRAGMA cache_size=2")
link.execute("BEGIN IMMEDIATE")
link.execute("UPDATE line SET sender = 'half', body = zeroblob(30000)")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("damaged", [False, True])
def test_what_a_killed_writer_left_half_done_is_taken_back_first(house, path, damaged):
    """Its journal is applied before anything is judged, and never to the new file."""
    before = lines_in(path)
    if damaged:
        change(path, "UPDATE line SET body = x'78' WHERE id = 9")
    subprocess.run([sys.executable, "-c", HALF, path], check=False)
    assert os.path.getsize(f"{path}-journal") > 512

    found = fsck.check(house)

    now = lines_in(path)
    del before[9], now[9]
    assert before == now
    assert (fsck.DAMAGED if damaged else fsck.HEALTHY) == found.state
    assert not os.path.exists(f"{path}-journal")


@pytest.mark.parametrize("beside", ["-journal", "-wal", "-shm"])
def test_nothing_that_sqlite_kept_beside_the_damaged_file_stays(house, path, beside):
    """Beside the new one it would be taken for its own."""
    Path(path).write_bytes(b"this is no database at all" * 100)
    Path(path + beside).write_bytes(b"of the old one")

    found = fsck.check(house)

    assert found.saved is not None
    assert not os.path.exists(path + beside)
    assert fsck.HEALTHY == fsck.check(house).state


def test_two_repairs_in_one_second_keep_two_files(house, path):
    """No damaged file ever takes another one's place."""
    kept_ones = []
    for _ in range(3):
        change(path, "DELETE FROM pulse")
        kept_ones.append(fsck.check(house).saved.moved_to)

    assert 3 == len(set(kept_ones)) == len(list(Path(house.places.corrupt).glob("*-zdo.db*")))
    assert f"{kept_ones[0]}.2" == kept_ones[1]


def test_where_a_file_has_only_one_name_it_is_copied(path, tmp_path):
    """A file system without hard links, or another one."""
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system here")
    to = shm / f"zdo-test-{os.getpid()}"
    try:
        salvage._keep(path, str(to))
        assert Path(path).read_bytes() == to.read_bytes()
        assert stat.S_IMODE(to.stat().st_mode) == 0o600
    finally:
        to.unlink()


def test_a_folder_for_damaged_files_that_is_a_link_is_refused(house, path, tmp_path):
    """Nothing is put where somebody else pointed; the damaged file stays."""
    os.symlink(tmp_path, house.places.corrupt)
    change(path, "DELETE FROM pulse")
    before = Path(path).read_bytes()

    with pytest.raises(StateUnsafe, match="is a symlink"):
        fsck.check(house)

    assert before == Path(path).read_bytes()
    assert not Path(f"{path}.new").exists()


def test_who_has_the_old_file_open_loses_nothing_to_it(house, path):
    """His next write is refused, not lost."""
    database = Database(path)
    change(path, "DELETE FROM pulse")
    fsck.check(house)

    def write():
        with database.writing() as link:
            put(link, "line", a_line(99))

    with pytest.raises(DatabaseUnusable, match="was replaced meanwhile"):
        write()
    database.close()
    assert lines_in(path).keys() == set(range(1, LINES + 1))


def test_a_claimed_line_is_an_orphan_when_its_postbox_is_free(house):
    """While its lease is held somebody may be carrying it."""
    assert 2 == fsck.check(house).orphans
    with contextlib.closing(take_lease(house.places.locks, P, timeout_s=0, clock=Clock())):
        assert 0 == fsck.check(house).orphans


def test_attempts_without_a_line_and_open_lines_without_their_attempt_are_named(house):
    """The one is a leftover, the other has lost its evidence."""
    attempts = house.places.attempts
    open_ones = {
        f"{key_of(number)}.1"
        for number in range(1, LINES + 1)
        if LIVES[number % len(LIVES)][0] in (kept.CLAIMED, kept.UNCERTAIN)
    }
    there = min(open_ones)
    stray = "a0000000-0000-4000-8000-000000000009.3"
    for name in (there, stray, f"{key_of(4)}.1", "not-an-attempt", f"{key_of(4)}.x", "x.1"):
        os.mkdir(f"{attempts}/{name}")

    found = fsck.check(house)

    assert (stray,) == found.stray_folders
    assert tuple(sorted(open_ones - {there})) == found.missing_folders


def test_a_state_folder_without_attempts_is_no_error(house):
    """Every open line then misses its own."""
    shutil.rmtree(house.places.attempts)

    assert 4 == len(fsck.check(house).missing_folders)


WATCHED = ("open", "os.link", "os.rename", "os.remove", "os.mkdir", "sqlite3.connect")


def die_at(number, house):
    """Run fsck in a child that is killed at its *number*th touch of a file; whether it ended."""
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL)
        return code == 0
    left = number

    def count_down(event, args):
        nonlocal left
        if event in WATCHED and str(args[0]).startswith(house.places.state):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.addaudithook(count_down)
        fsck.check(house)
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.parametrize("where", ["row", "first page"])
def test_killed_anywhere_nothing_is_lost(house, path, where):
    """At every touch of a file: a database is in place, and the damaged bytes are kept."""
    before = lines_in(path)
    if where == "row":
        change(path, "UPDATE line SET body = x'78' WHERE id = 9")
    else:
        overwrite(path, 100, bytes(900))
    damaged = Path(path).read_bytes()
    ended, number = False, 0
    while not ended:
        number += 1
        shutil.rmtree(house.places.corrupt, ignore_errors=True)
        Path(path).write_bytes(damaged)
        ended = die_at(number, house)
        found = fsck.check(house)
        kept_ones = [file.read_bytes() for file in Path(house.places.corrupt).glob("*-zdo.db*")]
        now = lines_in(path)
        assert damaged in kept_ones
        assert [1] * 16 == [row["id"] > 0 for row in now.values()]
        assert all(now[n] == row for n, row in before.items() if n != 9)
        assert (fsck.DAMAGED if found.saved else fsck.HEALTHY) == found.state
        assert set(os.listdir(house.places.state)) <= {
            "attempts", "ballast", "corrupt", "locks", "postbox", "spool.lock", "zdo.db",
            "zdo.db-journal",
        }  # fmt: skip

    assert number > 15


def test_a_full_journal_tells_of_every_line_it_knows(house, path):
    """An event of a line that is not kept is no damage: keys of refusals have none."""
    with contextlib.closing(Database(path)) as database, database.writing() as link:
        put(link, "event", an_event(key_of(99), "refused", "target-unknown"))

    assert fsck.HEALTHY == fsck.check(house).state


def with_readers(path, *rows):
    """The readers of the file at *path*, after *rows* were added."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        for row in rows:
            put(link, "reader", row)
    return readers_in(path)


def test_readers_go_on_where_they_stood(house, path):
    """A repair keeps entries under their ids, so cursors stay true; the deleted stay deleted."""
    fresh = a_reader(3, cursor=NO_CURSOR, name="")
    before = with_readers(path, a_reader(1), a_reader(2, deleted_at=7.25), fresh)
    assert fsck.HEALTHY == fsck.check(house).state
    change(path, "DELETE FROM pulse")

    found = fsck.check(house)

    assert saved_of(house, readers=3) == found.saved
    assert before == readers_in(path)
    assert fsck.HEALTHY == fsck.check(house).state


def test_the_id_of_a_lost_entry_is_given_to_no_other(house, path):
    """A reader that has seen the lost one would never see the other."""
    newest = max(events_in(path))
    with_readers(path, a_reader(1, cursor=CURSOR_0 + newest))
    change(path, "UPDATE event SET body = 'half a' WHERE id = ?", (newest,))

    found = fsck.check(house)

    assert saved_of(house, lost_events=1, readers=1) == found.saved
    assert newest not in events_in(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        assert newest == tip(link)
        put(link, "event", an_event(key_of(1), "queued", "queued"))
    assert newest + 1 == max(events_in(path))


@pytest.mark.parametrize(
    ("changes", "becomes"),
    [
        ({"cursor": CURSOR_0 + 999}, {"cursor": LOST_CURSOR}),
        ({"cursor": 7}, {"cursor": LOST_CURSOR}),
        ({"cursor": -1}, {"cursor": LOST_CURSOR}),
        ({"name": "a\x1bb"}, {"name": ""}),
        ({"registered_at": 9e999}, {"registered_at": NEVER}),
        ({"deleted_at": -9e999}, {"deleted_at": NEVER}),
    ],
)
def test_what_is_odd_about_a_reader_is_forgotten_and_the_reader_is_not(
    house, path, changes, becomes
):
    """Where it stood is then refused and asked for; it never begins anew in silence."""
    before = with_readers(path, a_reader(1) | changes, a_reader(2))

    found = fsck.check(house)

    assert ("reader 1 is not as zdo writes one",) == found.complaints
    assert saved_of(house, readers=2) == found.saved
    assert before | {1: before[1] | becomes} == readers_in(path)
    assert fsck.HEALTHY == fsck.check(house).state


@pytest.mark.parametrize(
    "session", ["", "anonymous", "a\x1bb", "C0000000-0000-4000-8000-00000000000A"]
)
def test_a_reader_that_nobody_can_be_is_lost(house, path, session):
    """No command would ever find its row."""
    with_readers(path, a_reader(1, session=session), a_reader(2))

    assert saved_of(house, readers=1, lost_readers=1) == fsck.check(house).saved
    assert {2: a_reader(2)} == readers_in(path)


def test_a_counter_that_is_no_count_is_not_believed(house, path):
    """Then the newest entry that is left is the tip, and who stood beyond it is asked."""
    newest = max(events_in(path))
    with_readers(path, a_reader(1, cursor=CURSOR_0 + newest), a_reader(2))
    change(path, "UPDATE event SET body = 'half a' WHERE id = ?", (newest,))
    change(path, "UPDATE sqlite_sequence SET seq = 1 << 60 WHERE name = 'event'")

    fsck.check(house)

    assert [LOST_CURSOR, CURSOR_0 + 2] == [each["cursor"] for each in readers_in(path).values()]
    with contextlib.closing(sqlite3.connect(path)) as link:
        assert newest - 1 == tip(link)


def a_second_version(path):
    """The file at *path* as version 2 had it, with its lines and entries."""
    lines, events = lines_in(path), events_in(path)
    os.unlink(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.executescript(SCHEMA_2)
        for table, rows in (("line", lines), ("event", events)):
            for row in rows.values():
                put(link, table, row)
    return lines, events


def test_a_file_of_version_2_is_brought_up_to_date_first(house, path):
    """Then it is looked at like any other."""
    before = a_second_version(path)

    assert fsck.HEALTHY == fsck.check(house).state
    assert (*before, {}) == (lines_in(path), events_in(path), readers_in(path))


def test_an_older_file_that_cannot_be_opened_now_is_left(house, path):
    """A lock, a full disk: there is nothing to mend."""
    a_second_version(path)
    refused = DatabaseUnusable(path, "database is locked")
    before = Path(path).read_bytes()

    with pytest.raises(DatabaseUnusable, match="is locked"):
        fsck._look_at(house.places, refused)

    assert before == Path(path).read_bytes()


@pytest.mark.parametrize("size", [100, 4096])
def test_a_damaged_file_of_version_2_loses_nothing_to_the_readers_it_never_had(house, path, size):
    """Where a new file has its readers, this one has pages of other tables: nobody is made up."""
    before = a_second_version(path)
    overwrite(path, 0, b"\xff" * size)

    found = fsck.check(house)

    assert (*before, {}) == (lines_in(path), events_in(path), readers_in(path))
    assert (0, 0, 0) == (found.saved.readers, found.saved.lost_lines, found.saved.lost_events)
    assert fsck.HEALTHY == fsck.check(house).state


@pytest.mark.parametrize("size", [100, 4096])
def test_a_file_that_lost_its_first_page_keeps_its_readers(house, path, size):
    """They lie where every new file has them."""
    before = with_readers(path, a_reader(1), a_reader(2, deleted_at=7.25))
    saved = saved_of(house, readers=2)
    overwrite(path, 0, b"\xff" * size)

    assert saved == fsck.check(house).saved
    assert before == readers_in(path)


def test_readers_that_are_lost_are_counted(house, path):
    """As far as the index still names them."""
    with_readers(path, a_reader(1), a_reader(2))
    page = roots(path)["reader"] - 1
    with open(path, "r+b") as file:
        file.seek(page * 4096)
        file.write(b"\xff" * 4096)

    saved = fsck.check(house).saved

    assert (0, 2) == (saved.readers, saved.lost_readers)
    assert {} == readers_in(path)


def test_of_readers_that_nothing_names_one_is_lost_at_least(house, path):
    """Table and index are gone: nobody knows how many there were."""
    with_readers(path, a_reader(1), a_reader(2))
    with open(path, "r+b") as file:
        for name in ("reader", "sqlite_autoindex_reader_1"):
            file.seek((roots(path)[name] - 1) * 4096)
            file.write(b"\xff" * 4096)

    saved = fsck.check(house).saved

    assert (0, 1) == (saved.readers, saved.lost_readers)
