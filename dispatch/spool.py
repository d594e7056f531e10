"""The kept lines: an accepted line is on disk before anything is started for it.

A row is inserted once and then only changes state: queued, claimed by the one that
tries it, then sent, delivered, uncertain or dead.  Every change keeps its width and
adds to no index, so that a full disk cannot keep a line from being settled.
"""

from __future__ import annotations

from dispatch.errors import ClaimLost, KeyConflict
from dispatch.kept import (
    AGAIN,
    CLAIMED,
    DEAD,
    DELIVERED,
    FIRST,
    FRESH,
    QUEUED,
    SENT,
    UNCERTAIN,
    WAITING,
    find,
    seal_of_line,
)
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from sqlite3 import Connection

    from dispatch.kept import Kept
    from dispatch.outcome import Outcome


class Draft(Record):
    """A line that asks to be kept; *owner* is the claim token of the process that will try it."""

    key: str
    digest: bytes
    body: bytes
    target: str
    owner: str
    postbox: str
    spelled: str = ""  # the address as it was given
    sender: str = "anonymous"
    given_key: str = ""
    idle: int = 0


def accept(link: Connection, draft: Draft, now: float, born: float) -> int | Kept:
    """The number of the attempt that the owner of *draft* may begin now, counted from 1.

    A known key with the same bytes is the line already there, unless that one
    provably never reached the door: then it is claimed again.  Other bytes, or
    another target, are a KeyConflict: never silence, never a claim about the wrong one.
    """
    known = find(link, draft.key)
    if known is None:
        changes = {"state": CLAIMED, "attempts": FIRST + 1, "claimed_at": now, "born": born}
        _insert(link, draft, now, changes | {"owner": draft.owner, "postbox": draft.postbox})
        return 1
    refuse_conflict(known, draft)
    if not known.may_be_tried:
        return known
    link.execute(
        "UPDATE line SET state = ?, attempts = attempts + 1, tries = ?, claimed_at = ?, owner = ?,"
        " postbox = ?, born = ?, kept = 0 WHERE key = ?",
        (CLAIMED, FIRST, now, draft.owner, draft.postbox, born, draft.key),
    )
    return known.next_attempt


def enqueue(link: Connection, draft: Draft, now: float, born: float) -> Kept | None:
    """None when *draft* is queued now; else the line that has its key already.

    A line under the key that provably never reached the door is queued again.
    """
    known = find(link, draft.key)
    if known is None:
        _insert(link, draft, now, {"state": QUEUED, "kept": 1, "born": born})
        return None
    refuse_conflict(known, draft)
    if not known.may_be_tried:
        return known
    queue_again(link, known, born)
    return None


def queue_again(link: Connection, line: Kept, born: float) -> None:
    """*line* is due, with all its patience before it and its old place; ClaimLost as in `give_up`.

    Who queued again what is being tried meanwhile would have it delivered twice.
    """
    queued = link.execute(
        "UPDATE line SET state = ?, kept = 1, tries = ?, due_at = 1.5, status = ?, born = ?"
        " WHERE key = ? AND state = ? AND attempts = ?",
        (QUEUED, FIRST, FRESH, born, line.key, line.state, line.attempts),
    )
    if queued.rowcount != 1:
        raise ClaimLost(line.key)


def refuse_conflict(known: Kept, draft: Draft) -> None:
    """KeyConflict when *draft* is not the line that *known* is."""
    # A name that nobody bore when the line was kept may mean a session by now.
    if known.digest != draft.digest or known.target not in (draft.target, draft.spelled):
        raise KeyConflict(draft.key, known.target)


def claim(link: Connection, lines: Iterable[Kept], owner: str, postbox: str, now: float) -> None:
    """All of *lines* are *owner*'s to try, or ClaimLost: one of them is queued no more."""
    for line in lines:
        claimed = link.execute(
            "UPDATE line SET state = ?, attempts = attempts + 1, tries = tries + 1,"
            " claimed_at = ?, owner = ?, postbox = ?"
            " WHERE key = ? AND state = ? AND attempts = ? AND status IN (?, ?, ?)",
            # The status is the second witness that it may go: a damaged state is not enough.
            (CLAIMED, now, owner, postbox, line.key, QUEUED, line.attempts, FRESH, AGAIN, WAITING),
        )
        if claimed.rowcount != 1:
            raise ClaimLost(line.key)


def skip_attempt(link: Connection, key: str) -> None:
    """The next number of the line with *key* is taken: a folder shows it, though no row does."""
    link.execute("UPDATE line SET attempts = attempts + 1 WHERE key = ?", (key,))


def rest(link: Connection, key: str, outcome: Outcome, now: float) -> bool:
    """Record *outcome* for a queued line that nobody tried; a claimed one is left alone."""
    return _write(link, outcome, now, "key = ? AND state = ?", (key, QUEUED))


def give_up(link: Connection, line: Kept, outcome: Outcome, now: float) -> None:
    """*line* is kept no more, or ClaimLost: somebody else has decided about it meanwhile."""
    given = link.execute(
        "UPDATE line SET state = ?, status = ?, kept = 0, settled_at = ?"
        " WHERE key = ? AND state = ? AND attempts = ?",
        (outcome.state, outcome.status, now, line.key, line.state, line.attempts),
    )
    if given.rowcount != 1:
        raise ClaimLost(line.key)


def settle(link: Connection, key: str, owner: str, outcome: Outcome, now: float) -> bool:
    """Record *outcome* for the line if *owner* has claimed it; another's claim is left alone."""
    return _write(link, outcome, now, "key = ? AND owner = ? AND state = ?", (key, owner, CLAIMED))


def settle_doubt(link: Connection, key: str, outcome: Outcome, now: float) -> bool:
    """Record *outcome* for a line whose outcome was open; one that is settled stays.

    A delivery lifts a dead letter too, and one that is queued again: its key must not
    deliver once more.
    """
    open_states: tuple[int, ...] = (CLAIMED, UNCERTAIN)
    if outcome.state in (SENT, DELIVERED):
        open_states += (QUEUED, SENT, DEAD)
    marks = ", ".join("?" * len(open_states))
    return _write(link, outcome, now, f"key = ? AND state IN ({marks})", (key, *open_states))


def _write(
    link: Connection, outcome: Outcome, now: float, where: str, values: tuple[object, ...]
) -> bool:
    changes = "state = ?, status = ?, due_at = ?, kept = max(kept, ?), settled_at = ?"
    settled = link.execute(
        f"UPDATE line SET {changes} WHERE {where}",  # noqa: S608 - ours, both
        (outcome.state, outcome.status, outcome.due_at, outcome.kept, now, *values),
    )
    return settled.rowcount > 0


def _insert(link: Connection, draft: Draft, now: float, changes: dict[str, object]) -> None:
    # An empty station and origin are this machine, whatever its host name is today.
    row = {
        "key": draft.key,
        "digest": draft.digest,
        "origin": "",
        "station": "",
        "target": draft.target,
        "body": draft.body,
        "sender": draft.sender,
        "given_key": draft.given_key,
        "idle": draft.idle,
        "created_at": now,
        "seal": seal_of_line(draft),
    } | changes
    names, marks = ", ".join(row), ", ".join("?" * len(row))
    link.execute(f"INSERT INTO line({names}) VALUES({marks})", tuple(row.values()))
