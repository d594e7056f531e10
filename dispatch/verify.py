"""Ask the target's transcript again, in a later process.  Raises or settles, never lowers."""

from __future__ import annotations

import contextlib
import json

from carrier.attempt import collect
from carrier.binding import Binding
from carrier.run import Run, read_run
from carrier.transcript import NONE, SURFACED, Follower, find_transcript
from dispatch import journal, keep, post, spool
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.judge import PROOFS
from dispatch.verdict import TABLE
from registry.errors import LeaseBusy
from registry.ids import parse_uuid
from registry.locks import take_lease
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.journal import Event
    from dispatch.result import Result

_LOOK_EVERY_S = 0.05

# The target's transcript cannot tell which session a carrier drove.
_ABOUT_THE_CARRIER = ("carrier-mismatch",)


def verify(delivery: str, house: House) -> Result:
    """The verdict on *delivery* as the target's transcript shows it now.

    A delivery whose dispatcher died is judged here from what its attempt left.
    """
    with contextlib.closing(keep.open_database(house)) as database:
        events = story_of(database, delivery)
        if (last := _last_judged(events)) is not None:
            result = _look_again(database, last, house)
        else:
            accepted = next(e for e in reversed(events) if e.kind == journal.ACCEPTED)
            result = _under_lease(database, accepted, house)
    return replace(result, command="verify")


def known_verdict(asked: Result, house: House) -> Result | None:
    """The verdict of the line that has the key of *asked*, if it is this line and may be in."""
    with contextlib.closing(keep.open_database(house)) as database:
        with database.reading() as link:
            kept = spool.find(link, str(asked.delivery_id))
        if kept is None or kept.may_be_tried or kept.digest.hex() != asked.line.sha256:
            return None
        if asked.target.id not in (None, kept.target):
            return None
        return present_verdict(database, asked)


def present_verdict(database: Database, asked: Result) -> Result:
    """What became of the line that already has the key of *asked*."""
    with database.reading() as link:
        events = journal.story(link, str(asked.delivery_id))
    if (last := _last_judged(events)) is None:
        reason = "a kiss with this key is under way, or its dispatcher died"
        return replace(asked, verdict=TABLE["unknown"], reason=reason)
    return _kept_result(last)


def await_surface(database: Database, result: Result, house: House, wait_s: float) -> Result:
    """*result* raised to `surfaced` within *wait_s* seconds, else `not-surfaced`.

    Only a delivery is waited for; every other verdict is handed back as it is.
    """
    last = _last_judged(story_of(database, str(result.delivery_id)))
    if last is None or result.verdict.name != "delivered-start":
        return result
    evidence = _evidence(last)
    follower = _follower(database, result, evidence, house)
    began = house.clock.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        # Ctrl-C ends the patience, not the delivery, which stays what it is.
        while follower.look() != SURFACED and house.clock.monotonic() - began < wait_s:
            house.clock.sleep(_LOOK_EVERY_S)
    proof = follower.state
    found = replace(result, proof=_stronger(result.proof, proof))
    if proof == SURFACED:
        found = replace(found, verdict=TABLE["surfaced"])
    if found != result:
        keep.settle_doubt(database, found, evidence, house.clock.now())
    if proof == SURFACED:
        return found
    # An answer to this caller's patience; the delivery's own verdict stays what it is.
    waited = house.clock.monotonic() - began
    reason = f"not in the model's input after {waited:.1f} s"
    return replace(found, verdict=TABLE["not-surfaced"], reason=reason)


def _look_again(database: Database, last: Event, house: House) -> Result:
    result, evidence = _kept_result(last), _evidence(last)
    if last.kind == journal.REFUSED:
        return result
    proof = _follower(database, result, evidence, house).look()
    if evidence.get("offset") is None and proof != SURFACED:
        # Without the offset an older line of the same text cannot be told apart.
        proof = NONE
    found = replace(result, proof=_stronger(result.proof, proof))
    if proof == SURFACED and result.verdict.name not in _ABOUT_THE_CARRIER:
        found = replace(found, verdict=TABLE["surfaced"], reason=None)
    if found != result:
        keep.settle_doubt(database, found, evidence, house.clock.now())
    post.forget_if_settled(found, house)
    return found


def _under_lease(database: Database, accepted: Event, house: House) -> Result:
    """The verdict on a delivery that had none when it was asked for."""
    attempt = json.loads(accepted.body)["attempt"]
    result = replace(_kept_result(accepted), attempt=attempt)
    postbox = str(result.carrier.session_id)
    try:
        lease = take_lease(house.places.locks, postbox, timeout_s=0, clock=house.clock)
    except LeaseBusy:
        return replace(result, reason="a carrier still holds the postbox; ask again later")
    with contextlib.closing(lease):
        return judge_orphan(database, accepted.delivery, postbox, house)


def judge_orphan(database: Database, delivery: str, leased: str, house: House) -> Result:
    """The verdict that a dead dispatcher owes, from what its keeper and wrapper left.

    The lease on *leased* is ours, so nobody is delivering through it.  A delivery
    that was concluded meanwhile is looked up again; one of another postbox is left.
    """
    events = story_of(database, delivery)
    if (last := _last_judged(events)) is not None:
        return _look_again(database, last, house)
    accepted = next(e for e in reversed(events) if e.kind == journal.ACCEPTED)
    body = json.loads(accepted.body)
    result = replace(_kept_result(accepted), attempt=body["attempt"])
    if result.carrier.session_id != leased:
        return result
    folder = post.folder_of(house, result)
    envelope = post.envelope_of(result, house.config(), _body(database, result), body["nonce"])
    run = read_run(folder) or Run(None, False, None, b"", b"", 0)  # noqa: FBT003 - by position
    evidence = collect(envelope, run, folder)
    binding = Binding(envelope.session_id, envelope.postbox)
    found = post.conclude(result, evidence, binding, envelope.nonce)
    keep.settle_doubt(database, found, post.evidence_facts(evidence), house.clock.now())
    post.forget_if_settled(found, house)
    return found


def story_of(database: Database, delivery: str) -> tuple[Event, ...]:
    """All events of *delivery*, in any spelling of its id; DeliveryUnknown when there is none."""
    with database.reading() as link:
        events = journal.story(link, parse_uuid(delivery) or "")
    if not events:
        raise DeliveryUnknown(delivery)
    return events


def _last_judged(events: tuple[Event, ...]) -> Event | None:
    """The newest verdict on the newest acceptance; without any acceptance, the newest refusal.

    None while an accepted attempt has no verdict: it is under way or an orphan.
    """
    accepted = [e.id for e in events if e.kind == journal.ACCEPTED]
    if not accepted:
        return events[-1] if events else None
    judged = (journal.JUDGED, journal.VERIFIED)
    return next((e for e in reversed(events) if e.kind in judged and e.id > accepted[-1]), None)


def _kept_result(event: Event) -> Result:
    # pydantic reads our own file back strictly; a kiss never comes here.
    from dispatch.schema import result_from

    try:
        return result_from(json.loads(event.body)["result"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JournalUnreadable(event.delivery, event.id) from error


def _evidence(event: Event) -> dict[str, Any]:
    evidence: dict[str, Any] = json.loads(event.body).get("evidence", {})
    return evidence


def _follower(
    database: Database, result: Result, evidence: dict[str, Any], house: House
) -> Follower:
    """A fresh reading of the target's transcript, from where it stood before the write."""
    session = str(result.target.session_id)
    claude_dir = house.config().claude_dir
    return Follower(
        evidence.get("transcript"),
        evidence.get("offset") or 0,
        msg_id=str(result.delivery_id),
        text=_body(database, result).decode(),
        session_id=session,
        find=lambda: find_transcript(claude_dir, session, None),
    )


def _body(database: Database, result: Result) -> bytes:
    with database.reading() as link:
        kept = spool.find(link, str(result.delivery_id))
    return b"" if kept is None else kept.body


def _stronger(one: str, other: str) -> str:
    return max(one, other, key=PROOFS.index)
