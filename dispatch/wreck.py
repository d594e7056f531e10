"""Reads a database that may be damaged: what is wrong with it, and every row that can be read.

It changes nothing, except that SQLite takes back what a killed writer left half done.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from dispatch import tables
from dispatch.database import APPLICATION_ID, PATIENCE_S, SCHEMA_VERSION
from dispatch.errors import DatabaseUnusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MOST_COMPLAINTS = 20
_HEADER = 100

# What is not the file's fault: somebody else's lock, a full or broken disk.
_NOT_DAMAGE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
)

# The index that names every row of a table besides the table itself.
_INDEX = {
    "line": ("sqlite_autoindex_line_1", "key"),
    "event": ("event_delivery", "delivery"),
    "reader": ("sqlite_autoindex_reader_1", "session"),
}


class Text(bytes):
    """A TEXT value as it lies in the file, UTF-8 or not."""

    __slots__ = ()


def connect(path: str) -> sqlite3.Connection:
    """A connection that trusts the file at *path* in nothing."""
    link = sqlite3.connect(path, isolation_level=None)
    link.text_factory = Text
    for pragma in (f"busy_timeout={PATIENCE_S * 1000}", "trusted_schema=OFF", "cell_size_check=ON"):
        link.execute(f"PRAGMA {pragma}")
    return link


def has_our_tables(link: sqlite3.Connection) -> bool:
    """Whether the tables in *link* are exactly as zdo makes them, down to the letter."""
    found: set[tuple[object, object]] = set()
    with _complaining([]):
        found = _tables_in(link)
    return found == _our_tables()


def refuse_others(link: sqlite3.Connection, path: str) -> None:
    """DatabaseUnusable when the file is a newer zdo's, or another program's: not ours to mend."""
    with _complaining([]):
        found, ours = _tables_in(link), _our_tables()
        if found == ours:
            return
        if _number(link, "application_id") != APPLICATION_ID:
            if {name for name, _ in found} != {name for name, _ in ours}:
                raise DatabaseUnusable(path, "is some other program's database; move it away")
        elif _number(link, "user_version") > SCHEMA_VERSION:
            raise DatabaseUnusable(path, "was made by a newer zdo; upgrade this one")


def is_older(link: sqlite3.Connection) -> bool:
    """Whether the file is a whole one of an older version, only to be brought up to date."""
    version, names = 0, set[object]()
    with _complaining([]):
        version = _number(link, "user_version")
        names = {name for name, _ in _tables_in(link)}
    return "line" in names and version == tables.version_of(names) < SCHEMA_VERSION


def complaints(link: sqlite3.Connection, path: str) -> tuple[str, ...]:
    """What is wrong with the file as a file; empty when SQLite and we find it sound."""
    said: list[str] = []
    with _complaining(said):
        if _tables_in(link) != _our_tables():
            said.append("its tables are not as zdo makes them")
        if (_number(link, "user_version"), _number(link, "application_id")) != (
            SCHEMA_VERSION,
            APPLICATION_ID,
        ):
            said.append("its header names another version or another program")
        checked = link.execute(f"PRAGMA integrity_check({MOST_COMPLAINTS})").fetchall()
        said += [
            line for row in checked if (line := bytes(row[0]).decode(errors="replace")) != "ok"
        ]
        said += _counters(link)
    said += _header(path)
    return tuple(said[:MOST_COMPLAINTS])


def rows(
    link: sqlite3.Connection, table: str, columns: tuple[str, ...], said: list[str]
) -> Iterator[dict[str, Any]]:
    """The rows of *table* in their order, *columns* from `id` on; what ends it early is *said*.

    Of two with the same id only the first is given.
    """
    seen: set[int] = set()
    with _complaining(said):
        for row in link.execute(f"{_select(table, columns)} NOT INDEXED ORDER BY id"):
            if row[0] not in seen:
                seen.add(row[0])
                yield _plain(columns, row)


def rest(
    link: sqlite3.Connection, table: str, columns: tuple[str, ...], seen: set[int]
) -> Iterator[dict[str, Any] | None]:
    """The rows of *table* that are not *seen* and that its index names; None for an unreadable."""
    for number in sorted(_named(link, table) - seen):
        found = None
        with _complaining([]):
            found = link.execute(f"{_select(table, columns)} WHERE id = ?", (number,)).fetchone()
        yield None if found is None else _plain(columns, found)


def place_of(link: sqlite3.Connection, key: str) -> int | None:
    """The id that the index of keys has for the line *key*; None where it cannot say."""
    found = None
    index, _ = _INDEX["line"]
    with _complaining([]):
        found = link.execute(
            f"SELECT id FROM line INDEXED BY {index} WHERE key = ?",  # noqa: S608 - ours
            (key,),
        ).fetchone()
    return None if found is None else int(found[0])


def counter(link: sqlite3.Connection, table: str) -> int:
    """The highest id that *table* ever had, as far as SQLite's own counter can be believed."""
    found: list[Any] = []
    with _complaining([]):
        found = _counts(link, table)
    return max(filter(_is_count, found), default=0)


def story(link: sqlite3.Connection, key: str) -> list[tuple[Any, Any]]:
    """What the journal in *link* tells of the line *key*: kind and class of each entry."""
    told = link.execute("SELECT kind, class FROM event WHERE delivery = ? ORDER BY id", (key,))
    return [(_decoded(kind), _decoded(name)) for kind, name in told]


@contextlib.contextmanager
def _complaining(said: list[str]) -> Iterator[None]:
    """Damage becomes an entry of *said*; other trouble stays an error."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_DAMAGE:
            raise
        said.append(str(error))
    except UnicodeDecodeError:
        said.append("it holds text that is not UTF-8")


def _select(table: str, columns: tuple[str, ...]) -> str:
    return f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - both are ours


def _plain(columns: tuple[str, ...], row: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _decoded(value) for name, value in zip(columns, row, strict=True)}


def _decoded(value: object) -> object:
    """A TEXT as str where it is one; what is not stays Text, which no column may be."""
    if isinstance(value, Text):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return value


def _number(link: sqlite3.Connection, pragma: str) -> int:
    return int(link.execute(f"PRAGMA {pragma}").fetchone()[0])


def _tables_in(link: sqlite3.Connection) -> set[tuple[object, object]]:
    found = link.execute("SELECT name, sql FROM sqlite_schema").fetchall()
    return {(_decoded(name), _decoded(sql)) for name, sql in found}


def _our_tables() -> set[tuple[object, object]]:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as link:
        tables.create(link)
        return _tables_in(link)


def _named(link: sqlite3.Connection, table: str) -> set[int]:
    """The ids of the rows of *table* as far as its index can be read, from both ends."""
    index, column = _INDEX[table]
    found: set[int] = set()
    for order in ("ASC", "DESC"):
        select = f"SELECT id FROM {table} INDEXED BY {index} ORDER BY {column} {order}"  # noqa: S608
        with _complaining([]):
            found.update(row[0] for row in link.execute(select))
    return found


def _counters(link: sqlite3.Connection) -> list[str]:
    """Complaints about SQLite's own counters: one at its end would refuse every new row."""
    said = []
    for table in ("line", "event"):
        top = link.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]  # noqa: S608
        if not all(_is_count(seq) and top <= seq for seq in _counts(link, table) or [0]):
            said.append(f"the counter of table {table} is wrong")
    return said


def _counts(link: sqlite3.Connection, table: str) -> list[Any]:
    found = link.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,))
    return [row[0] for row in found]


def _is_count(seq: object) -> bool:
    return isinstance(seq, int) and 0 <= seq < 1 << 48


def _header(path: str) -> list[str]:
    """Complaints about what SQLite does not say: a file that nobody may write, half a page."""
    # Outside of a transaction: closing the file would let go of this process's locks on it.
    with open(path, "rb") as file:
        header = file.read(_HEADER)
    size, page = os.path.getsize(path), int.from_bytes(header[16:18], "big")
    said = []
    if not {*header[18:20]} <= {1, 2}:
        said.append("its header says that it may not be written, or not be read")
    if int.from_bytes(header[28:32], "big") * page != size:
        said.append(f"it is {size} bytes long, which its header does not say")
    return said
