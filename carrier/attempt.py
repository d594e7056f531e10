"""One attempt: permits, run, report, receipts, transcripts.  Facts, no judgement.

A round of many lines is one run, and for each line an attempt in a folder of its
own.  It never touches the door; only the wrapper under the carrier does.
"""

from __future__ import annotations

import contextlib
import os

from carrier import proof
from carrier.layout import clear, prepare
from carrier.proof import Receipt
from carrier.report import parse_report
from carrier.run import run_carrier
from carrier.transcript import NONE, SURFACED, Follower, find_transcript
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from carrier.envelope import Envelope
    from carrier.order import Order
    from carrier.proof import TornReceipt
    from carrier.report import Report, Unreadable
    from carrier.run import Run
    from registry.clock import Clock

    # Session, transcript, and where in it the reading begins.
    _Place = tuple[str, str | None, int]

__all__ = ("WRITTEN", "Evidence", "attempt", "clear", "collect", "is_ours", "may_be_at_the_door",
           "prepare")  # fmt: skip

WRITTEN = "written"  # the door read it; between none and enqueued


class Evidence(Record):
    """Everything that one attempt found."""

    run: Run
    report: Report | Unreadable
    intent: bool  # False: the door is untouched by this attempt, and stays so
    receipt: Receipt | TornReceipt | None
    proof: str  # none, written, enqueued or surfaced
    transcript: str | None  # where the proof was looked for
    offset: int | None  # its size before the write; None: no receipt of ours says so


def attempt(order: Order, envelopes: Sequence[Envelope], clock: Clock) -> tuple[Evidence, ...]:
    """What came of carrying *envelopes* in one run, from the folders that `prepare` has filled.

    Killed in the middle, the keeper goes on and `collect` finds the same evidence
    afterwards, line by line.
    """
    try:
        run = run_carrier(order, clock)
    finally:
        # Its folder may stay as evidence, and would keep the postbox busy while we live.
        with contextlib.suppress(OSError):
            os.unlink(f"{order.lead}/{proof.DISPATCHER}")
    return _gather(envelopes, run, order.folders, parse_report(run.stdout))


def collect(
    envelope: Envelope, run: Run, folder: str, report: Report | Unreadable | None = None
) -> Evidence:
    """The evidence of an attempt that is over; the permit is withdrawn from here on.

    *report* is what *run* printed, where it has been parsed already.
    """
    report = parse_report(run.stdout) if report is None else report
    return _gather((envelope,), run, (folder,), report)[0]


def is_ours(receipt: Receipt, envelope: Envelope) -> bool:
    """Whether *receipt* is of this very attempt, at the session that the envelope names."""
    return (receipt.nonce, receipt.session_id) == (envelope.nonce, envelope.session_id)


def may_be_at_the_door(folder: str, wrapper_s: float, now: float) -> bool:
    """Whether a wrapper that took the permit may still write: no receipt, and time is left.

    An intent from the future, because the clock was set back, is dated *now*: that
    costs one more wait and never an endless one.
    """
    from carrier.ward import wrapper_time

    intent = f"{folder}/{proof.INTENT}"
    try:
        taken = os.stat(intent).st_mtime
    except OSError:
        return False  # none, or none to be seen: what is there to be read decides
    if taken > now:
        with contextlib.suppress(OSError):
            os.utime(intent, (now, now))
    done = os.path.lexists(f"{folder}/{proof.RECEIPT}")
    return not done and wrapper_time(folder, wrapper_s, now) > 0


def _gather(
    envelopes: Sequence[Envelope], run: Run, folders: Sequence[str], report: Report | Unreadable
) -> tuple[Evidence, ...]:
    """The evidence of each line; each file that lines share is read once."""
    taken = set(proof.withdraw_all(folders))
    receipts = [proof.read_receipt(folder) for folder in folders]
    readings, whose = _Readings(), list(zip(folders, envelopes, receipts, strict=True))
    for folder, envelope, receipt in whose:
        if folder in taken:
            readings.add(envelope, _own(receipt, envelope))
    found = []
    for folder, envelope, receipt in whose:
        intent, ours = folder in taken, _own(receipt, envelope)
        reached, path = readings.reached(envelope, ours) if intent else (NONE, None)
        offset = None if ours is None or not ours.wrote else ours.offset
        found.append(Evidence(run, report, intent, receipt, reached, path, offset))
    return tuple(found)


def _own(receipt: Receipt | TornReceipt | None, envelope: Envelope) -> Receipt | None:
    return receipt if isinstance(receipt, Receipt) and is_ours(receipt, envelope) else None


class _Readings:
    """How far lines are by the door's word and by their targets' own transcripts.

    All lines have to be added first: those of one session, written at one offset,
    are looked for in one reading.
    """

    def __init__(self) -> None:
        self._paths: dict[tuple[str, str], str | None] = {}
        self._lines: dict[_Place, dict[str, str]] = {}
        self._states: dict[_Place, dict[str, str]] = {}

    def add(self, envelope: Envelope, receipt: Receipt | None) -> None:
        """Let *envelope* be looked for, where the door may have been touched."""
        if receipt is None or receipt.wrote:
            lines = self._lines.setdefault(self._place(envelope, receipt), {})
            lines[envelope.msg_id] = envelope.line

    def reached(self, envelope: Envelope, receipt: Receipt | None) -> tuple[str, str | None]:
        """How far the line is, and the transcript that was asked."""
        if receipt is not None and not receipt.wrote:
            return NONE, receipt.transcript
        session_id, path, offset = place = self._place(envelope, receipt)
        if place not in self._states:
            follower = Follower(path, offset, self._lines[place], session_id)
            follower.look()
            self._states[place] = follower.states
        seen = self._states[place][envelope.msg_id]
        if receipt is None:
            # Without the offset an older line of the same text cannot be told apart.
            return (SURFACED if seen == SURFACED else NONE), path
        return (WRITTEN if seen == NONE and receipt.eof else seen), path

    def _place(self, envelope: Envelope, receipt: Receipt | None) -> _Place:
        session_id = envelope.session_id
        if receipt is not None and receipt.transcript:
            return session_id, receipt.transcript, receipt.offset
        asked = (envelope.claude_dir, session_id)
        if asked not in self._paths:
            self._paths[asked] = find_transcript(*asked, None)
        return session_id, self._paths[asked], 0 if receipt is None else receipt.offset
