"""What is whole in a damaged database, row by row into a new one.

What can be read and not believed is kept as a doubt, never as what it may have been.
"""

from __future__ import annotations

import contextlib
import sqlite3

from dispatch import kept, whole, wreck
from dispatch.senders import LOST_CURSOR, NEVER
from dispatch.tables import NOBODY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

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
_READER_UNKNOWN: dict[str, Any] = {
    "name": "",
    "registered_at": NEVER,
    "deleted_at": NEVER,
    "cursor": LOST_CURSOR,
}
_DEAD = {"state": kept.DEAD, "status": kept.DAMAGED}
# A new database costs a state folder its old pace; the receiver says so when it is too much.
_NO_READERS = "no such table: reader"  # of a file that an older zdo made
_SENT_COLUMNS = ("session", "digest", "at")


class Counts:
    """What came out so far, as `Saved` tells it."""

    def __init__(self) -> None:
        self.lines = self.events = self.doubted = self.dead = 0
        self.lost_lines = self.lost_events = self.readers = self.lost_readers = 0


def carry_over(old_path: str, new_path: str, counts: Counts) -> None:
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
        tip = _carry_over_the_counter(old, new)
        said: list[str] = []
        for row in _all_rows(old, "reader", whole.READER_COLUMNS, said):
            is_saved = row is not None and _save_reader(new, row, tip)
            counts.readers += is_saved
            counts.lost_readers += not is_saved
        if said and _NO_READERS not in said:
            # Of a table that breaks off nobody knows how many it had: one at least.
            counts.lost_readers = max(counts.lost_readers, 1)
        _carry_over_the_rest(old, new)
        new.execute("COMMIT")


def _all_rows(
    old: sqlite3.Connection,
    table: str,
    columns: tuple[str, ...],
    said: list[str] | None = None,
) -> Iterator[dict[str, Any] | None]:
    """Every row of *table*; None for one that is named somewhere and cannot be read.

    What ends it early is *said*.
    """
    seen: set[int] = set()
    for row in wreck.rows(old, table, columns, [] if said is None else said):
        seen.add(row["id"])
        yield row
    yield from wreck.rest(old, table, columns, seen)


def _save(
    old: sqlite3.Connection, new: sqlite3.Connection, row: dict[str, Any], counts: Counts
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


def _carry_over_the_counter(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """The highest id that an entry ever had: a lost one's is not given to another.

    A reader that has seen the lost one would not see that other.
    """
    tip = max(wreck.counter(old, "event"), wreck.counter(new, "event"))
    new.execute("DELETE FROM sqlite_sequence WHERE name = 'event'")
    new.execute("INSERT INTO sqlite_sequence(name, seq) VALUES('event', ?)", (tip,))
    return tip


def _save_reader(new: sqlite3.Connection, row: dict[str, Any], tip: int) -> bool:
    """Whether the reader *row* could be put into *new*; where it stood may be unknown there.

    It is told so when it reads on; a new registration would begin at the tip in silence.
    """
    if not whole.is_reader(row):
        return False
    odd = whole.odd_of_reader(row, tip)
    return _insert(new, "reader", row | {name: _READER_UNKNOWN[name] for name in odd})


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
