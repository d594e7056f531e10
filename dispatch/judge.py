"""Evidence in, verdict out: the one producer of outcomes.  Pure and total.

Two ids are compared against two constants, each with its own class; a model's
words, `subtype` and the child's exit status prove nothing (INTERFACE 5 and 7).
"""

from __future__ import annotations

from carrier import errors as carrier_errors
from carrier.attempt import WRITTEN
from carrier.proof import Receipt, TornReceipt
from carrier.report import Report
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch import errors
from dispatch.verdict import TABLE, Verdict
from registry import errors as registry_errors
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.attempt import Evidence
    from carrier.binding import Binding
    from carrier.proof import Notice

# Weakest first; a later look never lowers a proof.
PROOFS = (NONE, WRITTEN, ENQUEUED, SURFACED)

_CLASS_OF_ERROR: dict[type[Exception], str] = {
    registry_errors.ConfigInvalid: "config-invalid",
    registry_errors.RegistryUnreadable: "config-invalid",
    registry_errors.AddressUnknown: "target-unknown",
    registry_errors.AddressAmbiguous: "target-ambiguous",
    registry_errors.TicketUnbound: "ticket-unbound",
    registry_errors.LeaseBusy: "carrier-busy",
    registry_errors.StateUnsafe: "spool-unwritable",
    carrier_errors.CarrierMisbound: "carrier-misbound",
    carrier_errors.CarrierUnbound: "carrier-unbound",
    carrier_errors.CarrierLive: "carrier-live",
    carrier_errors.NestedKiss: "nested-kiss",
    carrier_errors.AttemptExists: "unknown",
    errors.LineInvalid: "line-invalid",
    errors.KeyConflict: "key-conflict",
    errors.ClaimLost: "carrier-busy",
    errors.TargetNotRunning: "target-not-running",
    errors.TargetStatus: "target-status",
    errors.SpoolUnwritable: "spool-unwritable",
    errors.DatabaseUnusable: "spool-unwritable",
    errors.JournalUnwritable: "journal-unwritable",
    errors.JournalUnreadable: "journal-unwritable",
    errors.DeliveryUnknown: "target-unknown",
    errors.NobodyToAnswer: "target-unknown",
    errors.LineInDoubt: "unknown",
    errors.LineUnderWay: "carrier-busy",
    errors.NotOnShelf: "usage",
    errors.SessionMissing: "usage",
    errors.SessionInvalid: "usage",
    errors.SessionUnknown: "target-unknown",
    errors.SessionDeleted: "target-unknown",
    errors.CursorRefused: "usage",
    errors.UnitImpossible: "config-invalid",
}

# What the wrapper found when it did not write.
_CLASS_OF_FINDING = {
    "target-not-running": "target-not-running",
    "door-mismatch": "door-mismatch",
    "wrapper-trouble": "wrapper-not-run",
}

# Notices of the target, the gravest first; `expired` with the detail `refused`
# is how a closed door says no at once (CONTRACT f).
_CLASS_OF_NOTICE = {
    "refused": "door-refused",
    "denied": "door-denied",
    "expired": "expired",
    "dropped": "door-dropped",
    "held": "door-held",
}


class Finding(Record):
    """A verdict with the sentence that led to it; *reason* is None for a delivery."""

    verdict: Verdict
    proof: str
    reason: str | None


def judge(evidence: Evidence, binding: Binding, nonce: str) -> Finding:
    """What one attempt came to, from its *evidence* and the two sessions of *binding*."""
    name, reason = _weigh(evidence, binding, nonce)
    return Finding(TABLE[name], evidence.proof, reason)


def class_of_error(error: Exception) -> str:
    """The class of a refusal or of broken surroundings; a stranger is `internal`."""
    kinds = (kind for kind in type(error).__mro__ if kind in _CLASS_OF_ERROR)
    # Those of the tools say it themselves.
    named: str = getattr(error, "named", "internal")
    return next((_CLASS_OF_ERROR[kind] for kind in kinds), named)


def weigh_notices(notices: tuple[Notice, ...]) -> tuple[str, str] | None:
    """The class and reason that the target's notices amount to, or None when they are harmless.

    A status that no list knows is doubt, not consent.
    """
    said = {_status(notice): notice.reason for notice in notices}
    if "held" in said and "delivered" in said:
        return "unknown", "it was held, then approved; the transcript does not show it yet"
    for status, name in _CLASS_OF_NOTICE.items():
        if status in said:
            return name, said[status] or f"the target answered {status!r}"
    strange = sorted(said.keys() - {"delivered"})
    return ("unknown", f"the target answered {strange[0]!r}") if strange else None


def _weigh(evidence: Evidence, binding: Binding, nonce: str) -> tuple[str, str | None]:
    receipt, report = evidence.receipt, evidence.report
    if isinstance(receipt, Receipt) and receipt.nonce != nonce:
        return "receipt-foreign", "the receipt is not this attempt's"
    if isinstance(report, Report) and report.session_id != binding.postbox:
        return "carrier-mismatch", (
            f"the carrier answered as session {report.session_id}, not as {binding.postbox}"
        )
    if isinstance(receipt, Receipt):
        return _weigh_receipt(evidence, receipt, binding)
    if not evidence.intent:
        return _untouched(evidence)
    if not isinstance(report, Report):
        return _weigh_silence(evidence, "the wrapper took the permit and left no receipt")
    if evidence.proof == SURFACED:
        return "surfaced", None
    torn = isinstance(receipt, TornReceipt)
    return "receipt-missing", f"the receipt is {'torn' if torn else 'missing'}"


def _weigh_receipt(
    evidence: Evidence, receipt: Receipt, binding: Binding
) -> tuple[str, str | None]:
    if not receipt.wrote:
        return _CLASS_OF_FINDING.get(receipt.found or "", "wrapper-not-run"), (
            receipt.detail or f"the wrapper found {receipt.found} and did not write"
        )
    if receipt.session_id != binding.target_session:
        return "door-mismatch", (
            f"the door of session {receipt.session_id} was written, not {binding.target_session}'s"
        )
    if not isinstance(evidence.report, Report):
        return _weigh_silence(evidence, "the line was written")
    told = weigh_notices(receipt.notices)
    if evidence.proof == SURFACED:
        # Held, then approved: it is in, though not at the start.
        return ("surfaced" if told else "delivered-start"), None
    if told is not None:
        return told
    if receipt.moved_to is not None:
        return "door-mismatch", f"the target became session {receipt.moved_to} meanwhile"
    if not receipt.eof:
        return "unknown", f"the door did not confirm that it read the line ({receipt.detail})"
    return "delivered-start", None


def _weigh_silence(evidence: Evidence, done: str) -> tuple[str, str | None]:
    # A carrier that was ended says nothing, and the transcript decides; one that
    # ended by itself with unreadable output may have driven any session.
    run = evidence.run
    ended = run.timed_out or run.interrupted or run.exit is None or run.exit < 0
    if ended and evidence.proof == SURFACED:
        return "surfaced", None
    return "unknown", f"{done}, but {_ending(evidence)}"


def _untouched(evidence: Evidence) -> tuple[str, str]:
    run = evidence.run
    if run.interrupted:
        return "interrupted", "stopped by Ctrl-C; the door was not touched"
    if run.timed_out:
        return "carrier-timeout", f"the carrier was ended after {run.wall_ms} ms"
    if run.spawn_error is not None:
        return "carrier-spawn", run.spawn_error
    if isinstance(evidence.report, Report):
        return "wrapper-not-run", "the carrier answered, but its hook did not run"
    return ("carrier-output" if run.exit == 0 else "carrier-exit"), _ending(evidence)


def _ending(evidence: Evidence) -> str:
    run, report = evidence.run, evidence.report
    words = _last_words(run.stderr)
    if run.exit is None and not run.timed_out:
        return f"how the carrier ended is not on record{words}"
    how = "was ended" if run.timed_out else f"ended with {run.exit}"
    output = "" if isinstance(report, Report) else f", output unreadable ({report.why})"
    return f"the carrier {how}{output}{words}"


def _last_words(stderr: bytes) -> str:
    lines = stderr.decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[:200]}" if lines else ""


def _status(notice: Notice) -> str:
    return "refused" if notice.status_detail == "refused" else notice.status
