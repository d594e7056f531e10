"""P5 on a disk that is really full: new lines are refused, what is begun is settled.

The disk is a small tmpfs; where none may be mounted, the test is skipped and says so.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess

import pytest

from dispatch import kept, outcome, spool, tables
from dispatch.ballast import give_ballast
from dispatch.database import Database
from dispatch.errors import DatabaseFull
from registry.ids import new_uuid
from tests.fakes import faulty_spool
from tests.fakes.spools import NOW, a_house, a_line, lines_in

DISK = "3m"
BODY = b"tests are green " * 10  # many of them fill a page to its end
# As many as one sender may have under way to one session.
ROUND = 30


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    here = tmp_path / "disk"
    here.mkdir(mode=0o700)
    argv = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=700", "tmpfs", str(here)]
    if subprocess.run(argv, capture_output=True, check=False).returncode:
        pytest.skip("P5: no full disk shown, mounting a tmpfs is not allowed here")
    yield str(here)
    subprocess.run(["umount", str(here)], check=True)


def fill(database):
    """Put lines until the disk is full; the keys of those that were acknowledged."""
    acked = []
    with contextlib.suppress(DatabaseFull):
        while True:
            key = new_uuid()
            with database.writing() as link:
                faulty_spool.enqueue(link, key)
            acked.append(key)
    return acked


def settle_all(database, keys, places):
    """Settle *keys* with an entry of the journal each; how often the ballast was needed."""
    given = 0
    for key in keys:
        try:
            with database.writing() as link:
                faulty_spool.settle(link, key)
        except DatabaseFull:
            assert give_ballast(places)
            given += 1
            with database.writing() as link:
                faulty_spool.settle(link, key)
    return given


def test_on_a_full_disk_all_that_is_claimed_is_settled_and_nothing_new_is_taken(disk, capsys):
    """P5: each with its entry in the journal; no acknowledged line is lost."""
    house = a_house(f"{disk}/state")
    with contextlib.closing(Database(house.places.database)) as database:
        claimed = [new_uuid() for _ in range(ROUND)]
        with database.writing() as link:
            for key in claimed:
                faulty_spool.enqueue(link, key)
                faulty_spool.claim(link, key)
        acked = fill(database)
        given = settle_all(database, claimed, house.places)
        refused = fill_once_more(database)

    rows = {row["key"]: row for row in lines_in(house.places.database).values()}
    with capsys.disabled():
        print(f"\nP5, {DISK}: {len(acked)} acknowledged, {ROUND} settled, {given} ballast given")
    assert {kept.SENT} == {rows[key]["state"] for key in claimed}
    assert {*acked, *claimed, *refused} == rows.keys()
    assert 1 == given
    with contextlib.closing(sqlite3.connect(house.places.database)) as link:
        assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def fill_once_more(database):
    """What room the ballast left is used up by new lines, too; then they are refused again."""
    acked = fill(database)
    # A tmpfs counts its room by processor: once full, it may take a little more from another.
    for _ in range(ROUND):
        key = new_uuid()
        try:
            with database.writing() as link:
                faulty_spool.enqueue(link, key)
        except DatabaseFull:
            return acked
        acked.append(key)
    raise AssertionError("a full disk goes on taking lines")


def change_all(database, keys):
    """Claim and settle *keys* without a word in the journal; how many could be."""
    done = 0
    with contextlib.suppress(DatabaseFull):
        for key in keys:
            with database.writing() as link:
                line = kept.find(link, key)
                spool.claim(link, [line], faulty_spool.OWNER, faulty_spool.P, NOW)
            with database.writing() as link:
                done_with = outcome.Outcome(kept.DELIVERED, kept.DONE)
                spool.settle(link, key, faulty_spool.OWNER, done_with, NOW + 1)
            done += 1
    return done


def test_no_row_needs_room_to_be_claimed_and_settled(disk, capsys):
    """P5: fixed width and a journal that stays: every one of them, with not a byte free."""
    house = a_house(f"{disk}/state")
    with contextlib.closing(Database(house.places.database)) as database:
        acked = fill(database)
        eat(disk)
        changed = change_all(database, acked)

    with capsys.disabled():
        print(f"\nP5, {DISK}: {changed} of {len(acked)} claimed and settled on a full disk")
    assert len(acked) == changed > 200


def eat(disk):
    """Take the last byte that is free."""
    with contextlib.suppress(OSError), open(f"{disk}/eaten", "wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass
    assert os.statvfs(disk).f_bavail == 0


# Half a table of ours: what grows when it is claimed and settled.
GROWING = """
CREATE TABLE line(id INTEGER PRIMARY KEY, key TEXT UNIQUE, body BLOB, state INTEGER,
                  owner TEXT, claimed_at REAL, settled_at REAL, status TEXT);
"""


@pytest.mark.parametrize(
    ("mode", "schema"),
    [("WAL", None), ("PERSIST", GROWING), ("TRUNCATE", GROWING)],
)
def test_the_layouts_that_were_not_chosen_fail(disk, capsys, mode, schema):
    """The control of P5: with WAL, or with columns that grow, lines cannot be settled."""
    link = sqlite3.connect(f"{disk}/zdo.db", isolation_level=None)
    with contextlib.closing(link):
        link.execute(f"PRAGMA journal_mode={mode}")
        link.execute("PRAGMA synchronous=EXTRA")
        if schema is None:
            tables.create(link)
        else:
            link.executescript(schema)
        count = put_until_full(link, own=schema is None)
        eat(disk)
        settled = settle_until_full(link, count)

    with capsys.disabled():
        print(f"\nP5, control {mode}{' growing' * bool(schema)}: {settled} of {count} settled")
    assert settled < count


def put_until_full(link, *, own):
    """Insert lines until the disk is full; how many."""
    count = 0
    with contextlib.suppress(sqlite3.OperationalError):
        while True:
            if own:
                faulty_spool.put(link, "line", a_line(count + 1, body=BODY))
            else:
                row = (f"{count:036}", BODY, 10)
                link.execute("INSERT INTO line(key, body, state) VALUES(?, ?, ?)", row)
            count += 1
    return count


def settle_until_full(link, count):
    """Claim and settle the lines in their order; how many could be."""
    for number in range(1, count + 1):
        try:
            link.execute(
                "UPDATE line SET state = 11, owner = ?, claimed_at = ? WHERE id = ?",
                (faulty_spool.OWNER, NOW, number),
            )
            link.execute(
                "UPDATE line SET state = 20, status = '2.000.000', settled_at = ? WHERE id = ?",
                (NOW + 1, number),
            )
        except sqlite3.OperationalError:
            return number - 1
    return count
