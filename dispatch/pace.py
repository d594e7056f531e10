"""How much a session takes: the receiver's own limits, kept from this side.

An inbox takes 30 lines at once from one sender, then one every two seconds, and drops
the rest; the same text within 30 s it drops as a duplicate (CONTRACT f, inbox limits).
So at most 30 lines go to a session in any minute, whatever carries them: never more
than it would take from one sender.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from dispatch.kept import Kept

BURST = 30
WINDOW_S = 60.0
SAME_TEXT_S = 31.0  # the receiver's 30, and one for the way there


def room(link: Connection, session: str, now: float) -> int:
    """How many lines may go to *session* now, 0 to BURST."""
    (gone,) = link.execute(
        "SELECT count(*) FROM sent WHERE session = ? AND at > ? AND at <= ?",
        (session, now - WINDOW_S, now),
    ).fetchone()
    return max(BURST - int(gone), 0)


def room_again_at(link: Connection, session: str, now: float) -> float:
    """When the oldest of the lines that fill *session*'s minute leaves it."""
    (oldest,) = link.execute(
        "SELECT min(at) FROM sent WHERE session = ? AND at > ? AND at <= ?",
        (session, now - WINDOW_S, now),
    ).fetchone()
    return now if oldest is None else float(oldest) + WINDOW_S


def said_until(link: Connection, session: str, digest: bytes, now: float) -> float:
    """Until when the text of *digest* would be a duplicate to *session*; *now* when it is none."""
    (latest,) = link.execute(
        "SELECT max(at) FROM sent WHERE session = ? AND digest = ? AND at > ? AND at <= ?",
        (session, digest, now - SAME_TEXT_S, now),
    ).fetchone()
    return now if latest is None else float(latest) + SAME_TEXT_S


def take_back(link: Connection, session: str, line: Kept) -> None:
    """*line* did not get to the door of *session* after all: its next try need not wait for it."""
    link.execute(
        "DELETE FROM sent WHERE rowid = (SELECT rowid FROM sent"
        " WHERE session = ? AND digest = ? ORDER BY at DESC LIMIT 1)",
        (session, line.digest),
    )


def note(link: Connection, session: str, lines: Iterable[Kept], now: float) -> None:
    """Count *lines* as gone to *session*; kept when the surrounding transaction is.

    What no longer matters is forgotten, and what a clock that was set back left in
    the future.
    """
    link.execute("DELETE FROM sent WHERE at <= ? OR at > ?", (now - WINDOW_S, now))
    link.executemany(
        "INSERT INTO sent(session, digest, at) VALUES(?, ?, ?)",
        [(session, line.digest, now) for line in lines],
    )
