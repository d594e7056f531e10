"""A first page for a database that has lost its own, and the empty database that it comes from."""

from __future__ import annotations

import contextlib
import os
import sqlite3

from dispatch import tables
from dispatch.database import PAGE, stamp


def new_file(path: str) -> None:
    """Make a database with zdo's tables and nothing in them at *path*, where nothing is yet.

    Not flushed, and with no journal beside it: nobody knows it before it is moved into place.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("PRAGMA journal_mode=MEMORY")
        link.execute(f"PRAGMA page_size={PAGE}")
        link.execute("BEGIN")
        tables.create(link)
        stamp(link)
        link.execute("COMMIT")


def transplant(path: str, copy: str) -> None:
    """Put a copy of the file at *path* to *copy*, its tables described as zdo describes them.

    The description lies on the first page, and a file that zdo made has every table at
    the same place.  A file that is no such one only has less that can be read.
    """
    new_file(copy)
    with open(copy, "r+b") as new, open(path, "rb") as old:
        first = bytearray(new.read(PAGE))
        pages = -(-os.path.getsize(path) // PAGE)
        first[28:32] = pages.to_bytes(4, "big")
        old.seek(PAGE)
        new.seek(0)
        new.write(first)
        while part := old.read(1 << 20):
            new.write(part)
        new.truncate(pages * PAGE)
