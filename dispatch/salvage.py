"""A new database from what is whole in a damaged one, which is moved away and kept.

The new file is built beside and renamed into place: at every moment there is one
database, the damaged or the new one, and the damaged one is never deleted.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time

from dispatch import kept, whole, wreck
from dispatch.tables import NOBODY
from dispatch.transplant import new_file, transplant
from registry.durable import sync, sync_folder, write_all
from registry.home import make_private
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from registry.home import Places

# Each column that may change, as it is when nobody knows it any more: such a line is
# in doubt, and doubt is looked up, never repeated.
_IN_DOUBT: dict[str, Any] = {
    "state": kept.UNCERTAIN,
    "status": kept.DOUBT,
    "attempts": kept.FIRST + 1,
    "tries": kept.FIRST,
    "due_at": 1.5,
    "claimed_at": 1.5,
    "settled_at": 1.5,
    "owner": NOBODY,
    "kept": 0,
    "postbox": NOBODY,
    "born": 1.5,
    "created_at": 1.5,
}
_DEAD = {"state": kept.DEAD, "status": kept.DAMAGED}
# What SQLite keeps beside a database; the last two when somebody has set it to WAL.
_BESIDE = ("-journal", "-wal", "-shm")
# A new database costs a state folder its old pace; the receiver says so when it is too much.
_SENT_COLUMNS = ("session", "digest", "at")


class Saved(Record):
    """What came out of a damaged file, and where that one is now."""

    moved_to: str
    lines: int
    events: int
    doubted: int  # of the lines: what became of them is in doubt now
    dead: int  # of the lines: not what was accepted, and dead for it
    lost_lines: int  # that the file still named, at least
    lost_events: int


class _Counts:
    def __init__(self) -> None:
        self.lines = self.events = self.doubted = self.dead = 0
        self.lost_lines = self.lost_events = 0


def new_paths(path: str) -> tuple[str, str]:
    """Where the new database is built, and where a copy that can be read is made."""
    return f"{path}.new", f"{path}.copy"


def clear_away(path: str) -> None:
    """Remove what a killed salvage of the database at *path* left half done."""
    for left in new_paths(path):
        for name in (left, f"{left}-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def salvage(places: Places, now: float) -> Saved:
    """Replace the damaged database by a new one with everything in it that is whole.

    The caller holds the turn to write.  Killed at any moment, either database is in
    place, and the damaged one with every byte; asked again, it is done again.
    """
    path = places.database
    new, copy = new_paths(path)
    counts = _Counts()
    try:
        new_file(new)
        with contextlib.closing(wreck.connect(path)) as old:
            # The last writer may have been killed: SQLite takes its half away, if it can.
            as_ours = wreck.has_our_tables(old)
        if not as_ours:
            transplant(path, copy)
        _carry_over(path if as_ours else copy, new, counts)
        _flush(new)
        moved_to = _swap(places, new, now)
    finally:
        clear_away(path)
    return Saved(moved_to=moved_to, **vars(counts))


def _carry_over(old_path: str, new_path: str, counts: _Counts) -> None:
    """Everything of the file at *old_path* that is whole, in the one at *new_path*."""
    old = wreck.connect(old_path)
    new = sqlite3.connect(new_path, isolation_level=None)
    with contextlib.closing(old), contextlib.closing(new):
        new.execute("PRAGMA journal_mode=MEMORY")
        new.execute("BEGIN")
        for row in _all_rows(old, "event", whole.EVENT_COLUMNS):
            is_saved = row is not None and whole.is_event(row) and _insert(new, "event", row)
            counts.events += is_saved
            counts.lost_events += not is_saved
        for row in _all_rows(old, "line", whole.LINE_COLUMNS):
            is_saved = row is not None and _save(old, new, row, counts)
            counts.lines += is_saved
            counts.lost_lines += not is_saved
        _carry_over_the_rest(old, new)
        new.execute("COMMIT")


def _all_rows(
    old: sqlite3.Connection, table: str, columns: tuple[str, ...]
) -> Iterator[dict[str, Any] | None]:
    """Every row of *table*; None for one that is named somewhere and cannot be read."""
    seen: set[int] = set()
    for row in wreck.rows(old, table, columns, []):
        seen.add(row["id"])
        yield row
    yield from wreck.rest(old, table, columns, seen)


def _save(
    old: sqlite3.Connection, new: sqlite3.Connection, row: dict[str, Any], counts: _Counts
) -> bool:
    """Whether the line *row* could be put into *new*, as far as it can be believed."""
    odd = whole.odd_columns(row)
    if not whole.is_whole(row):
        row |= {name: _IN_DOUBT[name] for name in odd if name in _IN_DOUBT} | _DEAD
        is_saved = _insert(new, "line", row)
        counts.dead += is_saved
        return is_saved
    # The order of arrival is no part of the seal; the index is its second witness.
    moved = wreck.place_of(old, row["key"]) not in (None, row["id"])
    if odd or moved or whole.contradicts(row, wreck.story(new, row["key"])):
        row |= {name: _IN_DOUBT[name] for name in (*odd, "state", "status")}
        counts.doubted += 1
    return _insert(new, "line", row)


def _carry_over_the_rest(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """The pace and the relay's own time, where they can be read; both can do without."""
    pulse = list(wreck.rows(old, "pulse", whole.PULSE_COLUMNS, []))
    if whole.is_pulse(pulse):
        values = tuple(pulse[0].values())[1:]
        new.execute("UPDATE pulse SET at = ?, watched = ?, pruned_at = ?", values)
    for row in wreck.rows(old, "sent", ("rowid AS id", *_SENT_COLUMNS), []):
        _insert(new, "sent", {name: row[name] for name in _SENT_COLUMNS})


def _insert(new: sqlite3.Connection, table: str, row: dict[str, Any]) -> bool:
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    try:
        new.execute(f"INSERT INTO {table}({names}) VALUES({marks})", tuple(row.values()))
    except (sqlite3.IntegrityError, OverflowError):
        return False  # a type, a length or a second key that zdo never writes
    return True


def _flush(path: str) -> None:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def _swap(places: Places, new: str, now: float) -> str:
    """Keep the damaged file under its new name, then put *new* in its place."""
    make_private(places.corrupt)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    moved_to = _unused(f"{places.corrupt}/{stamp}-zdo.db")
    _keep(places.database, moved_to)
    beside = [each for each in _BESIDE if os.path.lexists(places.database + each)]
    for each in beside:
        _keep(places.database + each, moved_to + each)
    sync_folder(places.corrupt)
    # SQLite has read the old file, so they are spent; beside the new one they would
    # be taken for that one's.
    for each in beside:
        os.unlink(places.database + each)
    sync_folder(places.state)
    os.rename(new, places.database)
    sync_folder(places.state)
    return moved_to


def _unused(path: str) -> str:
    number, found = 1, path
    while os.path.lexists(found):
        number += 1
        found = f"{path}.{number}"
    return found


def _keep(path: str, to: str) -> None:
    """A second name for the file at *path*, or where there are none, a copy of it."""
    try:
        os.link(path, to)
    except OSError:
        _copy(path, to)


def _copy(path: str, to: str) -> None:
    fd = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(path, "rb") as file:
            while part := file.read(1 << 20):
                write_all(fd, part)
        sync(fd)
    finally:
        os.close(fd)
