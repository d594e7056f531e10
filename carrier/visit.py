"""One visit to the door: the row found afresh, the line written or not, the receipt made.

Before the door every trouble is a reason to stay away; after it nothing may hide
what was done.
"""

from __future__ import annotations

import os

from carrier.proof import DOOR_MISMATCH, TARGET_NOT_RUNNING, WRAPPER_TROUBLE, Receipt
from carrier.transcript import SURFACED, Follower, find_transcript
from registry.record import replace
from registry.rows import key_of, read_rows, row_of, rows_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.door import Door
    from carrier.envelope import Envelope
    from registry.processes import Processes
    from registry.rows import Listing, Row

# What the registry says of a session that lives behind a door not to be trusted.
_DISTRUSTED = ("not-a-socket", "foreign-owner")


class StayAway(Exception):
    """The door must not be touched; *found* is the receipt's word for it."""

    def __init__(self, found: str, detail: str, row: Row | None = None):
        self.found, self.detail, self.row = found, detail, row
        super().__init__(f"{found}: {detail}")


def visit(envelope: Envelope, processes: Processes, door: Door, at: str) -> Receipt:
    """The receipt of the one attempt at *door*; *at* is its time.

    Killed in the middle, the line may be in, and no receipt says so.
    """
    try:
        row, token, follower = _look_around(envelope, processes)
    except StayAway as away:
        return stayed_away(envelope, away, at)

    def surfaced() -> bool:
        return follower.look() == SURFACED

    answer = door.write(row, token, envelope, surfaced)
    seen = surfaced() if answer.wrote else False
    return replace(
        _blank(envelope, at),
        session_id=row.session_id,
        pid=row.pid,
        door=door.name,
        wrote=answer.wrote,
        eof=answer.eof,
        found=answer.found,
        detail=answer.detail,
        notices=answer.notices,
        surfaced=seen,
        moved_to=_moved_to(envelope, processes, row) if answer.wrote and not seen else None,
        transcript=follower.path,
        offset=follower.offset,
        reply=answer.reply,
    )


def stayed_away(envelope: Envelope, away: StayAway, at: str) -> Receipt:
    """The receipt of an attempt that left the door alone, and why."""
    receipt = replace(_blank(envelope, at), found=away.found, detail=away.detail)
    if away.row is None:
        return receipt
    return replace(receipt, session_id=away.row.session_id, pid=away.row.pid)


def find_row(envelope: Envelope, processes: Processes) -> Row:
    """The one running row of the envelope's session, read afresh; StayAway otherwise."""
    wanted = envelope.session_id
    listing = rows_with(envelope.claude_dir, (wanted.encode(),), processes)
    rows = _of_session(listing, wanted)
    if not rows:
        # The whole of the registry is only read to say why.
        listing = read_rows(envelope.claude_dir, processes)
        rows = _of_session(listing, wanted)
    if len(rows) == 1:
        return rows[0]
    if rows:
        raise StayAway(DOOR_MISMATCH, f"{len(rows)} running rows have the session's id")
    for other in listing.rows:
        if other.pid == envelope.pid:
            detail = f"pid {other.pid} now runs session {other.session_id}"
            raise StayAway(DOOR_MISMATCH, detail, other)
    reasons = [skip.reason for skip in listing.skipped if skip.session_id == wanted]
    wrong = any(reason in _DISTRUSTED for reason in reasons)
    detail = f"no running row: {', '.join(reasons) or 'none has the id'}"
    raise StayAway(DOOR_MISMATCH if wrong else TARGET_NOT_RUNNING, detail)


def _moved_to(envelope: Envelope, processes: Processes, row: Row) -> str | None:
    """The session that took over *row*'s process meanwhile: it drops our pinned line unread."""
    try:
        now = row_of(envelope.claude_dir, row.pid, processes)
    except OSError:
        return None  # after the write nothing may hide that it was made
    other = None if now is None else now.session_id
    return None if other == row.session_id else other


def _look_around(envelope: Envelope, processes: Processes) -> tuple[Row, str | None, Follower]:
    try:
        row = find_row(envelope, processes)
        return row, key_of(envelope.claude_dir, row), _follow(envelope, row)
    except StayAway:
        raise
    except BaseException as error:  # noqa: BLE001 - the door is untouched, whatever it is
        raise StayAway(WRAPPER_TROUBLE, type(error).__name__) from None


def _follow(envelope: Envelope, row: Row) -> Follower:
    def find() -> str | None:
        return find_transcript(envelope.claude_dir, row.session_id, row.cwd)

    path = find()
    size = os.stat(path).st_size if path else 0
    ids = {"msg_id": envelope.msg_id, "text": envelope.line, "session_id": row.session_id}
    return Follower(path, size, **ids, find=find)


def _of_session(listing: Listing, session_id: str) -> list[Row]:
    return [row for row in listing.rows if row.session_id == session_id]


def _blank(envelope: Envelope, at: str) -> Receipt:
    return Receipt(
        nonce=envelope.nonce,
        delivery_id=envelope.delivery_id,
        attempt=envelope.attempt,
        session_id=envelope.session_id,
        pid=None,
        msg_id=envelope.msg_id,
        door="inbox",
        at=at,
        wrote=False,
        eof=False,
        found=None,
        detail=None,
        notices=(),
        transcript=None,
        offset=0,
        surfaced=False,
        moved_to=None,
        reply=None,
    )
