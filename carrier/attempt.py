"""One attempt: permit, run, report, receipt, transcript.  Facts, no judgement.

It never touches the door; only the wrapper under the carrier does.
"""

from __future__ import annotations

import os

from carrier import proof
from carrier.argv import settings
from carrier.errors import AttemptExists
from carrier.proof import Receipt
from carrier.report import parse_report
from carrier.run import run_carrier
from carrier.transcript import NONE, SURFACED, Follower, find_transcript
from registry.durable import sync_folder
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.envelope import Envelope
    from carrier.proof import TornReceipt
    from carrier.report import Report, Unreadable
    from carrier.run import Run
    from registry.clock import Clock

WRITTEN = "written"  # the door read it; between none and enqueued

# Claude Code ends a hook that is slower; the wrapper must always be the faster one.
_HOOK_MARGIN_S = 5


class Evidence(Record):
    """Everything that one attempt found."""

    run: Run
    report: Report | Unreadable
    intent: bool  # False: the door is untouched by this attempt, and stays so
    receipt: Receipt | TornReceipt | None
    proof: str  # none, written, enqueued or surfaced
    transcript: str | None  # where the proof was looked for
    offset: int | None  # its size before the write; None: no receipt of ours says so


def attempt(  # noqa: PLR0913 - the parts of one run
    envelope: Envelope,
    *,
    argv: list[str],
    env: dict[str, str],
    cwd: str,
    attempt_dir: str,
    lease_fd: int,
    deadline_s: float,
    clock: Clock,
) -> Evidence:
    """What came of carrying *envelope* once, from a folder that `prepare` has filled.

    Killed in the middle, the keeper goes on and `collect` finds the same evidence
    afterwards.
    """
    run = run_carrier(
        argv,
        env,
        cwd,
        lease_fd=lease_fd,
        attempt_dir=attempt_dir,
        deadline_s=deadline_s,
        wrapper_s=envelope.wrapper_s,
        clock=clock,
    )
    return collect(envelope, run, attempt_dir)


def collect(envelope: Envelope, run: Run, attempt_dir: str) -> Evidence:
    """The evidence of an attempt that is over; the permit is withdrawn from here on."""
    intent = not proof.withdraw(attempt_dir)
    receipt = proof.read_receipt(attempt_dir)
    ours = receipt if isinstance(receipt, Receipt) and is_ours(receipt, envelope) else None
    reached, transcript = _reached(envelope, ours) if intent else (NONE, None)
    offset = None if ours is None or not ours.wrote else ours.offset
    report = parse_report(run.stdout)
    return Evidence(run, report, intent, receipt, reached, transcript, offset)


def is_ours(receipt: Receipt, envelope: Envelope) -> bool:
    """Whether *receipt* is of this very attempt, at the session that the envelope names."""
    return (receipt.nonce, receipt.session_id) == (envelope.nonce, envelope.session_id)


def prepare(attempt_dir: str, wrapper: str, envelope: Envelope) -> None:
    """Everything that the carrier needs is on disk in a new folder, the permit last.

    Killed before the permit is out, nothing can happen to the door.
    """
    _refuse_later_attempts(attempt_dir, envelope)
    try:
        os.mkdir(attempt_dir, 0o700)
    except FileExistsError:
        raise AttemptExists(attempt_dir) from None
    timeout_s = int(envelope.wrapper_s) + _HOOK_MARGIN_S
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(f"{attempt_dir}/{proof.SETTINGS}", flags, 0o600)
    try:
        os.write(fd, settings(wrapper, timeout_s))
    finally:
        os.close(fd)
    # A folder that a power cut takes away would take the intent with it.
    sync_folder(os.path.dirname(attempt_dir))
    proof.issue(attempt_dir, envelope)


def _refuse_later_attempts(attempt_dir: str, envelope: Envelope) -> None:
    # The journal counts them; one with a higher number is from a journal that was lost.
    folder = os.path.dirname(attempt_dir)
    for name in os.listdir(folder):
        delivery, _, number = name.rpartition(".")
        later = number.isdecimal() and int(number) > envelope.attempt
        if later and delivery == envelope.delivery_id:
            raise AttemptExists(f"{folder}/{name}")


def _reached(envelope: Envelope, receipt: Receipt | None) -> tuple[str, str | None]:
    """How far the line is by the door's word and by the target's own transcript."""
    if receipt is not None and not receipt.wrote:
        return NONE, receipt.transcript
    path = receipt.transcript if receipt is not None else None
    path = path or find_transcript(envelope.claude_dir, envelope.session_id, None)
    follower = Follower(
        path,
        0 if receipt is None else receipt.offset,
        msg_id=envelope.msg_id,
        text=envelope.line,
        session_id=envelope.session_id,
    )
    seen = follower.look()
    if receipt is None:
        # Without the offset an older line of the same text cannot be told apart.
        return (SURFACED if seen == SURFACED else NONE), path
    return (WRITTEN if seen == NONE and receipt.eof else seen), path
