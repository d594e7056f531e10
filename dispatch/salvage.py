"""A new database from what is whole in a damaged one, which is moved away and kept.

The new file is built beside and renamed into place: at every moment there is one
database, the damaged or the new one, and the damaged one is never deleted.
"""

from __future__ import annotations

import contextlib
import os
import time

from dispatch import wreck
from dispatch.saving import Counts, carry_over
from dispatch.transplant import new_file, transplant
from registry.durable import sync, sync_folder, write_all
from registry.home import make_private
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from registry.home import Places

# What SQLite keeps beside a database; the last two when somebody has set it to WAL.
_BESIDE = ("-journal", "-wal", "-shm")


class Saved(Record):
    """What came out of a damaged file, and where that one is now."""

    moved_to: str
    lines: int
    events: int
    doubted: int  # of the lines: what became of them is in doubt now
    dead: int  # of the lines: not what was accepted, and dead for it
    lost_lines: int  # that the file still named, at least
    lost_events: int
    readers: int = 0
    lost_readers: int = 0


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
    counts = Counts()
    try:
        new_file(new)
        with contextlib.closing(wreck.connect(path)) as old:
            # The last writer may have been killed: SQLite takes its half away, if it can.
            as_ours = wreck.has_our_tables(old)
        if not as_ours:
            transplant(path, copy)
        carry_over(path if as_ours else copy, new, counts)
        _flush(new)
        moved_to = _swap(places, new, now)
    finally:
        clear_away(path)
    return Saved(moved_to=moved_to, **vars(counts))


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
