"""What a later look makes of an open delivery.  Pure; it never lowers a proof.

Denied and expired leave no row in the target's transcript: only the notices tell, or
the target's end.  A target that ended takes what it held or had waiting with it
(CONTRACT f).
"""

from __future__ import annotations

from carrier.transcript import ENQUEUED, SURFACED
from dispatch.judge import PROOFS, weigh_notices
from dispatch.verdict import TABLE
from registry.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.proof import Notice
    from dispatch.result import Result

# The target's transcript cannot tell which session a carrier drove.
_ABOUT_THE_CARRIER = ("carrier-mismatch",)


class Look(Record):
    """What can be seen of a delivery now."""

    proof: str  # what the target's transcript shows
    turn_after: bool = False  # a model turn came after it, without it
    ended: bool = False  # the target's process is certainly gone
    late: tuple[Notice, ...] = ()  # what the target said after the attempt was over


def regrade(result: Result, look: Look) -> Result:
    """*result* as *look* shows it now; equal where nothing new is known."""
    found = replace(result, proof=max(result.proof, look.proof, key=PROOFS.index))
    name = result.verdict.name
    if name in _ABOUT_THE_CARRIER:
        return found
    if look.proof == SURFACED:
        return replace(found, verdict=TABLE["surfaced"], reason=None)
    if found.proof == SURFACED:
        return found  # it was seen, though the transcript is gone by now
    if name == "door-held":
        return _held(found, look)
    if name == "delivered-start":
        return _started(found, look)
    return found


def _held(found: Result, look: Look) -> Result:
    said = {notice.status for notice in look.late}
    approved = "delivered" in said and said <= {"held", "delivered"}
    told = None if approved else weigh_notices(look.late)
    if told is not None and told[0] != "door-held":
        return replace(found, verdict=TABLE[told[0]], reason=told[1])
    # What is enqueued was let through; its text is a weaker witness than a notice.
    if approved or found.proof == ENQUEUED:
        return _approved(found, look)
    if look.ended:
        reason = "the target ended before anybody approved the line"
        return replace(found, verdict=TABLE["expired"], reason=reason)
    return found


def _approved(found: Result, look: Look) -> Result:
    if look.ended:
        reason = "it was held, then approved; the target ended before its transcript showed it"
        return replace(found, verdict=TABLE["not-surfaced"], reason=reason)
    reason = "it was held, then approved; the transcript does not show it yet"
    return replace(found, reason=reason)


def _started(found: Result, look: Look) -> Result:
    if look.ended:
        reason = "the target ended before its transcript showed the line to the model"
        return replace(found, verdict=TABLE["not-surfaced"], reason=reason)
    if look.proof == ENQUEUED:
        turns = "turns without it since" if look.turn_after else "no model turn since"
        return replace(found, reason=f"the target has it waiting; {turns}")
    return found
