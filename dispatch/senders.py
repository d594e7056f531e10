"""Registered senders: who may have a cursor, where it stands, and who was unregistered.

A session is kept in one spelling.  Deletion is soft: the row stays, with its cursor, and
registering again takes the session back to where it stood.
"""

from __future__ import annotations

from dispatch.errors import SessionDeleted, SessionUnknown, TargetDeleted
from dispatch.sender import ANONYMOUS
from registry.clock import iso
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

LONGEST_ID = 200

# What a row holds keeps its width: a whole second would lie in the file as a shorter
# number than any other time, and so would a cursor that counts from 0.
NEVER = 1.5
CURSOR_0 = 1 << 48
NO_CURSOR = CURSOR_0 - 1
LOST_CURSOR = CURSOR_0 - 2  # of a row that was damaged: nobody knows where it stood


class Registered(Record):
    """A session that was registered once."""

    session: str
    name: str | None
    registered_at: float
    deleted_at: float | None  # None: it is registered now
    cursor: int | None  # the last entry that it has seen; None: fresh; below 0: nobody knows


def canonical(session: str) -> str | None:
    """The one spelling of *session*, or None when no session can have that id."""
    if (known := parse_uuid(session)) is not None:
        return known
    # What is not printable has lone surrogates, and those have no bytes at all.
    if session == ANONYMOUS or not session.isprintable() or not session.strip():
        return None
    return session if len(session.encode()) <= LONGEST_ID else None


def find(link: Connection, session: str) -> Registered | None:
    """The row of *session* in any spelling, deleted or not; None when it never registered."""
    found = link.execute(f"{_SELECT} WHERE session = ?", (canonical(session) or "",)).fetchone()
    return None if found is None else _registered(*found)


def named(link: Connection, session: str) -> Registered:
    """The row of *session*, deleted or not; SessionUnknown for a stranger."""
    known = find(link, session)
    if known is None:
        raise SessionUnknown(session)
    return known


def present(link: Connection, session: str) -> Registered | None:
    """The row of *session*; None for a stranger, SessionDeleted for one that was unregistered."""
    known = find(link, session)
    if known is not None and known.deleted_at is not None:
        raise SessionDeleted(known.session, known.deleted_at)
    return known


def every(link: Connection) -> tuple[Registered, ...]:
    """All of them, also the deleted ones, in the order of their first registration."""
    return tuple(_registered(*row) for row in link.execute(f"{_SELECT} ORDER BY id"))


def register(link: Connection, session: str, name: str | None, now: float) -> bool:
    """Whether *session*, which `canonical` knows, is new or taken back; its cursor is kept.

    A *name* replaces the one it had.  Kept when the surrounding transaction is.
    """
    known = find(link, session)
    if known is None:
        link.execute(
            "INSERT INTO reader(session, name, registered_at) VALUES(?, ?, ?)",
            (canonical(session), name or "", now),
        )
        return True
    is_back = known.deleted_at is not None
    since = now if is_back else known.registered_at
    link.execute(
        "UPDATE reader SET name = ?, registered_at = ?, deleted_at = ? WHERE session = ?",
        (name or known.name or "", since, NEVER, known.session),
    )
    return is_back


def unregister(link: Connection, session: str, now: float) -> bool:
    """Whether *session* is deleted by this; False when it already was, or was never there.

    Kept when the surrounding transaction is.
    """
    deleted = link.execute(
        "UPDATE reader SET deleted_at = ? WHERE session = ? AND deleted_at = ?",
        (now, canonical(session) or "", NEVER),
    )
    return deleted.rowcount == 1


def move(link: Connection, reader: Registered, cursor: int) -> bool:
    """Whether the cursor of *reader* stands at *cursor* now.

    False when somebody else has moved it since *reader* was read, or unregistered it: what
    they said is newer.  Kept when the surrounding transaction is.
    """
    moved = link.execute(
        "UPDATE reader SET cursor = ? WHERE session = ? AND cursor = ? AND deleted_at = ?",
        (CURSOR_0 + cursor, reader.session, _kept_as(reader.cursor), NEVER),
    )
    return moved.rowcount == 1


def warning_for(link: Connection, sender: str) -> str | None:
    """One sentence when *sender* was unregistered: its kiss goes all the same."""
    known = find(link, sender)
    if known is None or known.deleted_at is None:
        return None
    return f"the sender {known.session} was unregistered at {iso(known.deleted_at)}"


def refuse_deleted_target(link: Connection, session_id: str) -> None:
    """TargetDeleted when the session *session_id* was unregistered: it takes no lines."""
    known = find(link, session_id)
    if known is not None and known.deleted_at is not None:
        raise TargetDeleted(known.session, known.deleted_at)


def _registered(
    session: str, name: str, registered_at: float, deleted_at: float, cursor: int
) -> Registered:
    return Registered(
        session=session,
        name=name or None,
        registered_at=registered_at,
        deleted_at=None if deleted_at == NEVER else deleted_at,
        cursor=None if cursor == NO_CURSOR else cursor - CURSOR_0,
    )


def _kept_as(cursor: int | None) -> int:
    return NO_CURSOR if cursor is None else CURSOR_0 + cursor


_SELECT = "SELECT session, name, registered_at, deleted_at, cursor FROM reader"
