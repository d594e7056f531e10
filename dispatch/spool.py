"""The kept lines: an accepted line is on disk before anything is started for it.

A row is inserted once and then only settled.  Killed in the middle of a kiss,
the row stays claimed until `zdo verify`, or a kiss with its key, judges it.
"""

from __future__ import annotations

from dispatch.errors import KeyConflict
from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

QUEUED, CLAIMED, SENT, UNCERTAIN, DELIVERED, DEAD = 10, 11, 12, 13, 20, 50

# A kiss without a queue keeps nothing for later: what may be repeated is the
# caller's to repeat, and the row is a dead letter with its reason.
_STATE_OF_FATE = {DONE: DELIVERED, OPEN: UNCERTAIN}

# RFC 3463 class.subject.detail, padded to one width.  QUEUE and NONE are both
# provably not delivered, so the same key may be tried again.
_AGAIN = "4.000.000"
_STATUS_OF_FATE = {
    DONE: "2.000.000",
    OPEN: "4.005.000",
    QUEUE: _AGAIN,
    NONE: _AGAIN,
    FAILED: "5.000.000",
}

# attempts counts from here, so that the value never changes width.
_FIRST_ATTEMPT = 100


class Kept(Record):
    """A line as it stands in the spool."""

    key: str
    digest: bytes
    target: str
    body: bytes
    state: int
    status: str
    attempts: int

    @property
    def is_settled(self) -> bool:
        """Whether its key has a verdict that stands: nobody is trying it, nobody may."""
        return self.state != CLAIMED and not self.may_be_tried

    @property
    def may_be_tried(self) -> bool:
        """Whether it provably never reached the door, and nobody is trying it."""
        return (self.state, self.status) == (DEAD, _AGAIN)


class Draft(Record):
    """A line that asks to be kept; *owner* is the claim token of the process that will try it."""

    key: str
    digest: bytes
    body: bytes
    station: str
    target: str
    owner: str


def accept(link: Connection, draft: Draft, now: float) -> int | Kept:
    """The number of the attempt that the owner of *draft* may begin now, counted from 1.

    A known key with the same bytes is the line already there, unless that one
    provably never reached the door: then it is claimed again.  Other bytes, or
    another target, are a KeyConflict: never silence, never a claim about the wrong one.
    """
    known = find(link, draft.key)
    if known is None:
        link.execute(
            "INSERT INTO line(key, digest, origin, station, target, body, state, attempts,"
            " claimed_at, owner, created_at) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                draft.key,
                draft.digest,
                draft.station,
                draft.station,
                draft.target,
                draft.body,
                CLAIMED,
                _FIRST_ATTEMPT + 1,
                now,
                draft.owner,
                now,
            ),
        )
        return 1
    refuse_conflict(known, draft)
    if not known.may_be_tried:
        return known
    link.execute(
        "UPDATE line SET state = ?, attempts = attempts + 1, claimed_at = ?, owner = ?"
        " WHERE key = ?",
        (CLAIMED, now, draft.owner, draft.key),
    )
    return known.attempts - _FIRST_ATTEMPT + 1


def refuse_conflict(known: Kept, draft: Draft) -> None:
    """KeyConflict when *draft* is not the line that *known* is."""
    if (known.digest, known.target) != (draft.digest, draft.target):
        raise KeyConflict(draft.key, known.target)


def find(link: Connection, key: str) -> Kept | None:
    """The line with *key*, or None."""
    row = link.execute(
        "SELECT key, digest, target, body, state, status, attempts FROM line WHERE key = ?", (key,)
    ).fetchone()
    return None if row is None else Kept(*row)


def settle(link: Connection, key: str, owner: str, fate: str, now: float) -> bool:
    """Record *fate* for the line if *owner* has claimed it; another's claim is left alone."""
    settled = link.execute(
        "UPDATE line SET state = ?, settled_at = ?, status = ?"
        " WHERE key = ? AND owner = ? AND state = ?",
        (_STATE_OF_FATE.get(fate, DEAD), now, _STATUS_OF_FATE[fate], key, owner, CLAIMED),
    )
    return settled.rowcount > 0


def settle_doubt(link: Connection, key: str, fate: str, now: float) -> None:
    """Record *fate* for a line whose outcome was open; one that is settled stays.

    A proven delivery lifts a dead letter too: its key must not deliver again.
    """
    lifted = (CLAIMED, UNCERTAIN, DEAD if fate == DONE else UNCERTAIN)
    link.execute(
        "UPDATE line SET state = ?, settled_at = ?, status = ?"
        " WHERE key = ? AND state IN (?, ?, ?)",
        (_STATE_OF_FATE.get(fate, DEAD), now, _STATUS_OF_FATE[fate], key, *lifted),
    )
