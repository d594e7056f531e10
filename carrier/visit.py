"""The visits of one run: each row found afresh, lines written or not, the receipts made.

Before a door every trouble is a reason to stay away from that door; after it nothing
may hide what was done.
"""

from __future__ import annotations

import os

from carrier.proof import DOOR_MISMATCH, TARGET_NOT_RUNNING, WRAPPER_TROUBLE, Receipt
from carrier.transcript import SURFACED, Follower, find_transcript
from registry.clock import iso
from registry.record import Record, replace
from registry.rows import Row, key_of, read_rows, row_of, rows_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carrier.calls import Answer
    from carrier.door import Door
    from carrier.envelope import Envelope
    from registry.clock import Clock
    from registry.processes import Processes
    from registry.rows import Listing

# What the registry says of a session that lives behind a door not to be trusted.
_DISTRUSTED = ("not-a-socket", "foreign-owner")
_TOO_LATE = "the wrapper's time was over before the door"
_BEHIND = "an earlier line of this run did not get in"


class StayAway(Exception):
    """The door must not be touched; *found* is the receipt's word for it."""

    def __init__(self, found: str, detail: str, row: Row | None = None):
        self.found, self.detail, self.row = found, detail, row
        super().__init__(f"{found}: {detail}")


class Line(Record):
    """One line whose permit is taken, and the folder that its receipt goes to."""

    folder: str
    envelope: Envelope


class _Visit(Record):
    """Lines that were spoken at one door, with their receipts as far as they can be made."""

    row: Row
    follower: Follower
    begun: list[tuple[Line, Receipt]]


class Tour:
    """All visits of one run: door after door, and then one ear for all of them.

    *known* has the receipt of a line by its folder, and is true at every moment:
    what is being written is in nobody's hand, and not in there.
    """

    def __init__(self, door: Door, processes: Processes, clock: Clock):
        self.known: dict[str, Receipt] = {}
        self.trouble: Exception | None = None  # of a door of which nobody knows what it got
        self.sessions: tuple[str, ...] = ()  # whose rows the one scan of the registry is to find
        self._door, self._processes, self._clock = door, processes, clock
        self._listing: Listing | None = None
        self._visits: list[_Visit] = []

    def expect(self, line: Line) -> None:
        """From here on it is known that *line* was not written."""
        self.known[line.folder] = _not_begun(line.envelope, iso(self._clock.now()))

    def leave_out(self, lines: Sequence[Line], away: StayAway) -> None:
        """The receipts of *lines* say that the door was left alone, and why."""
        detail = away.detail
        for line in lines:
            receipt = replace(self.known[line.folder], found=away.found, detail=detail)
            if away.row is not None:
                receipt = replace(receipt, session_id=away.row.session_id, pid=away.row.pid)
            self.known[line.folder] = receipt
            detail = _BEHIND

    def call_on(self, lines: Sequence[Line]) -> None:
        """Write *lines*, all of one session, into its door, or leave it alone.

        Killed in the middle, lines may be in, and no receipt says so.
        """
        envelopes = [line.envelope for line in lines]
        try:
            row, token, follower = self._look_around(envelopes)
        except StayAway as away:
            self.leave_out(lines, away)
            return
        visit = _Visit(row, follower, [(line, self.known.pop(line.folder)) for line in lines])
        try:
            answer = self._door.speak(row, token, envelopes)
        except Exception as error:  # noqa: BLE001 - the wrapper raises it when the others are done
            self.trouble = error
            return
        if answer is None:
            self._visits.append(visit)
        else:
            self._settle(visit, {each.msg_id: answer for each in envelopes})

    def listen(self) -> None:
        """The receipt of every line that was spoken is known.

        Killed in the middle, lines are in, and no receipt says so.
        """
        answers = self._door.listen(self._look)
        self._look()
        for visit in self._visits:
            self._settle(visit, answers)

    def _look(self) -> dict[str, str]:
        """How far each spoken line is by its session's transcript."""
        states: dict[str, str] = {}
        for visit in self._visits:
            if not visit.follower.all_surfaced:
                visit.follower.look()
            states |= visit.follower.states
        return states

    def _look_around(self, envelopes: Sequence[Envelope]) -> tuple[Row, str | None, Follower]:
        first = envelopes[0]
        try:
            row = self._row_for(first)
            return row, key_of(first.claude_dir, row), _follow(envelopes, row)
        except StayAway:
            raise
        except BaseException as error:  # noqa: BLE001 - the door is untouched, whatever it is
            raise StayAway(WRAPPER_TROUBLE, type(error).__name__) from None

    def _row_for(self, envelope: Envelope) -> Row:
        """The row of the envelope's session: by one scan for all, then by its pid alone."""
        listing = self._listing
        if listing is None:
            needles = tuple(each.encode() for each in self.sessions or (envelope.session_id,))
            listing = rows_with(envelope.claude_dir, needles, self._processes)
            self._listing = listing
            return find_row(envelope, self._processes, listing)
        known = _of_session(listing, envelope.session_id)
        if len(known) == 1:
            row = row_of(envelope.claude_dir, known[0].pid, self._processes)
            if isinstance(row, Row) and row.session_id == envelope.session_id:
                return row
        return find_row(envelope, self._processes)

    def _settle(self, visit: _Visit, answers: Mapping[str, Answer]) -> None:
        row, follower = visit.row, visit.follower
        wrote = any(answers[line.envelope.msg_id].wrote for line, _ in visit.begun)
        moved = self._moved_to(visit) if wrote and not follower.all_surfaced else None
        behind = False
        for line, receipt in visit.begun:
            answer = answers[line.envelope.msg_id]
            surfaced = answer.wrote and follower.states[line.envelope.msg_id] == SURFACED
            self.known[line.folder] = replace(
                receipt,
                session_id=row.session_id,
                pid=row.pid,
                door=self._door.name,
                wrote=answer.wrote,
                eof=answer.eof,
                found=answer.found,
                detail=_BEHIND if behind else answer.detail,
                notices=answer.notices,
                surfaced=surfaced,
                moved_to=moved if answer.wrote and not surfaced else None,
                transcript=follower.path,
                offset=follower.offset,
                reply=answer.reply,
            )
            behind = behind or not answer.wrote

    def _moved_to(self, visit: _Visit) -> str | None:
        """The session that took over the row's process meanwhile: it drops our lines unread."""
        line, _ = visit.begun[0]
        try:
            now = row_of(line.envelope.claude_dir, visit.row.pid, self._processes)
        except OSError:
            return None  # after the write nothing may hide that it was made
        other = None if now is None else now.session_id
        return None if other == visit.row.session_id else other


def find_row(envelope: Envelope, processes: Processes, listing: Listing | None = None) -> Row:
    """The one running row of the envelope's session, read afresh; StayAway otherwise."""
    wanted = envelope.session_id
    if listing is None:
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


def _follow(envelopes: Sequence[Envelope], row: Row) -> Follower:
    claude_dir = envelopes[0].claude_dir

    def find() -> str | None:
        return find_transcript(claude_dir, row.session_id, row.cwd)

    path = find()
    size = os.stat(path).st_size if path else 0
    lines = {each.msg_id: each.line for each in envelopes}
    return Follower(path, size, lines, row.session_id, find=find)


def _of_session(listing: Listing, session_id: str) -> list[Row]:
    return [row for row in listing.rows if row.session_id == session_id]


def _not_begun(envelope: Envelope, at: str) -> Receipt:
    return Receipt(
        nonce=envelope.nonce,
        delivery_id=envelope.delivery_id,
        attempt=envelope.attempt,
        session_id=envelope.session_id,
        pid=None,
        msg_id=envelope.msg_id,
        sender=envelope.sender,
        door="inbox",
        at=at,
        wrote=False,
        eof=False,
        found=WRAPPER_TROUBLE,
        detail=_TOO_LATE,
        notices=(),
        transcript=None,
        offset=0,
        surfaced=False,
        moved_to=None,
        reply=None,
    )
