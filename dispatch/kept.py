"""The rows of the spool as they are read: a line, its state, and who is looking for which.

States only move forward, except that what provably never reached a door may be queued
again (docs/INTERNALS.md, the spool).
"""

from __future__ import annotations

from dispatch.seal import digest_of, seal_of
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

    from dispatch.spool import Draft

QUEUED, CLAIMED = 10, 11
SENT = 12  # at its start; the model has not been seen to have it
UNCERTAIN = 13
DELIVERED, DEAD = 20, 50
STATE_NAMES = {
    QUEUED: "queued",
    CLAIMED: "claimed",
    SENT: "sent",
    UNCERTAIN: "uncertain",
    DELIVERED: "delivered",
    DEAD: "dead",
}

# RFC 3463 class.subject.detail, padded to one width.
FRESH = "0.000.000"
DONE = "2.000.000"
AGAIN = "4.000.000"  # provably not delivered: trying again is safe
WAITING = "4.002.001"  # nothing was started: its target was not there, or not open
DOUBT = "4.005.000"
OUT_OF_TIME = "4.004.007"  # given up, and provably not delivered
REFUSED = "5.000.000"
DAMAGED = "5.006.000"  # its bytes are not what was accepted

_HARMLESS = (AGAIN, WAITING, OUT_OF_TIME)

# attempts and tries count from here, so that the value never changes width.
FIRST = 100


class Kept(Record):
    """A line as it stands in the spool, in the order of its columns."""

    id: int
    key: str
    digest: bytes
    target: str
    body: bytes
    sender: str
    given_key: str
    state: int
    status: str
    attempts: int
    tries: int
    due_at: float
    kept: int  # 1: a queue holds it, and the relay may try it
    idle: int  # 1: only while its target is idle
    owner: str
    postbox: str
    born: float  # on the relay's own clock, see dispatch/pulse.py
    created_at: float
    seal: bytes

    @property
    def is_settled(self) -> bool:
        """Whether its key has a verdict that stands: nobody is trying it, nobody may."""
        return self.state != CLAIMED and not self.may_be_tried

    @property
    def may_be_tried(self) -> bool:
        """Whether it provably never reached the door, and nobody is trying it or will."""
        return self.state == DEAD and self.status in _HARMLESS

    @property
    def is_whole(self) -> bool:
        """Whether nothing of it changed since it was accepted."""
        return self.seal == seal_of_line(self) and digest_of(self.body) == self.digest

    @property
    def next_attempt(self) -> int:
        """The number of its next attempt, from 1; none is ever used twice."""
        return self.attempts - FIRST + 1


def find(link: Connection, key: str) -> Kept | None:
    """The line with *key*, or None."""
    found = select(link, "WHERE key = ?", (key,))
    return found[0] if found else None


def select(link: Connection, where: str, values: tuple[object, ...]) -> tuple[Kept, ...]:
    """The lines that the clause *where* names."""
    rows = link.execute(f"SELECT {_COLUMNS} FROM line {where}", values)  # noqa: S608 - ours
    return tuple(Kept(*row) for row in rows)


# The order is of `+id`: of a plain one SQLite reads the whole table, to spare itself the sorting.


def open_ones(link: Connection) -> tuple[str, ...]:
    """The keys of all lines whose delivery a later look may say more about, oldest first."""
    rows = link.execute(
        "SELECT key FROM line WHERE state < 20 AND state IN (?, ?) ORDER BY +id", (SENT, UNCERTAIN)
    )
    return tuple(row[0] for row in rows)


def claimed_through(link: Connection) -> tuple[str, ...]:
    """The postboxes through which lines are being carried, or were when somebody died."""
    rows = link.execute(
        "SELECT DISTINCT postbox FROM line WHERE state < 20 AND state = ? ORDER BY postbox",
        (CLAIMED,),
    )
    return tuple(row[0] for row in rows)


def claimed(link: Connection, postbox: str) -> tuple[str, ...]:
    """The keys of the lines that are claimed through *postbox*, in the order of their arrival."""
    rows = link.execute(
        "SELECT key FROM line WHERE state < 20 AND state = ? AND postbox = ? ORDER BY +id",
        (CLAIMED, postbox),
    )
    return tuple(row[0] for row in rows)


def count(link: Connection, state: int) -> int:
    """How many lines that are not over are in *state*."""
    rows = link.execute("SELECT count(*) FROM line WHERE state < 20 AND state = ?", (state,))
    return int(rows.fetchone()[0])


def seal_of_line(line: Kept | Draft) -> bytes:
    """The seal over what never changes in *line*."""
    return seal_of(
        key=line.key,
        digest=line.digest,
        origin="",
        station="",
        target=line.target,
        sender=line.sender,
        given_key=line.given_key,
        idle=line.idle,
    )


_COLUMNS = ", ".join(Kept.__annotations__)
