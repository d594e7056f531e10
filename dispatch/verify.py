"""Ask the target's transcript again, in a later process.  Raises or settles, never lowers."""

from __future__ import annotations

import contextlib
import json

from carrier.attempt import collect, may_be_at_the_door
from carrier.binding import Binding
from carrier.late import read_late
from carrier.layout import carrier_runs
from carrier.run import Run, read_run
from carrier.transcript import NONE, SURFACED, Follower, find_transcript
from dispatch import journal, keep, kept, outcome, post, pulse
from dispatch.keep import Settled
from dispatch.late import Look, regrade
from dispatch.outcome import Patience
from dispatch.story import (
    evidence_of,
    kept_result,
    last_begun,
    last_judged,
    story_of,
    while_queued,
)
from dispatch.verdict import OPEN, TABLE
from registry.errors import LeaseBusy
from registry.locks import take_lease
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.journal import Event
    from dispatch.kept import Kept
    from dispatch.result import Result

_LOOK_EVERY_S = 0.05


def verify(delivery: str, house: House) -> Result:
    """The verdict on *delivery* as the target's transcript shows it now.

    A delivery whose dispatcher died is judged here from what its attempt left.
    """
    with contextlib.closing(keep.open_database(house)) as database:
        return look_again(database, story_of(database, delivery), house)


def look_again(database: Database, events: tuple[Event, ...], house: House) -> Result:
    """The present verdict on the delivery that *events* tell of, kept when it is news."""
    if (last := last_judged(events)) is not None:
        result = _look_again(database, last, house)
    else:
        result = _under_lease(database, last_begun(events), house)
    return replace(while_queued(database, result) or result, command="verify")


def await_surface(database: Database, result: Result, house: House, wait_s: float) -> Result:
    """*result* raised to `surfaced` within *wait_s* seconds, else `not-surfaced`.

    Only a delivery is waited for; every other verdict is handed back as it is.
    """
    last = last_judged(story_of(database, str(result.delivery_id)))
    if last is None or result.verdict.name != "delivered-start":
        return result
    evidence = evidence_of(last)
    follower = _follower(result, evidence, _text(_line(database, result)), house)
    key = str(result.delivery_id)
    began = house.clock.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        # Ctrl-C ends the patience, not the delivery, which stays what it is.
        while _seen(follower, key) != SURFACED and house.clock.monotonic() - began < wait_s:
            house.clock.sleep(_LOOK_EVERY_S)
    found = regrade(result, Look(follower.states[key]))
    found = replace(found, reason=None)
    if found != result:
        settled = Settled(found, evidence, outcome.of(found))
        keep.settle_doubt(database, house, settled, house.clock.now())
    if found.proof == SURFACED:
        return found
    # An answer to this caller's patience; the delivery's own verdict stays what it is.
    waited = house.clock.monotonic() - began
    reason = f"not in the model's input after {waited:.1f} s"
    return replace(found, verdict=TABLE["not-surfaced"], reason=reason)


def judge_orphan(database: Database, delivery: str, leased: str, house: House) -> Result:
    """The verdict that a dead dispatcher owes, from what its keeper and wrapper left.

    The lease on *leased* is ours, so nobody is delivering through it.  A delivery
    that was concluded meanwhile is looked up again; one of another postbox is left,
    and so is one whose wrapper may still be at the door.
    """
    events = story_of(database, delivery)
    if (last := last_judged(events)) is not None:
        return _look_again(database, last, house)
    begun = last_begun(events)
    body = json.loads(begun.body)
    result = replace(kept_result(begun), attempt=body["attempt"])
    if result.carrier.session_id != leased:
        return result
    line, now = _line(database, result), house.clock.now()
    folder = post.folder_of(house, result)
    envelope = post.envelope_of(result, house.config(), _text(line).encode(), body["nonce"])
    if may_be_at_the_door(folder, body.get("wrapper_s", envelope.wrapper_s), now):
        return replace(result, reason="its wrapper may still be at the door; ask again later")
    if carrier_runs(house.places.attempts, leased):
        return replace(result, reason="a carrier still drives the postbox; ask again later")
    run = read_run(folder) or Run(None, False, None, b"", b"", 0)  # noqa: FBT003 - by position
    evidence = collect(envelope, run, folder)
    binding = Binding(envelope.session_id, envelope.postbox)
    found = post.conclude(result, evidence, binding, envelope.nonce)
    _settle(database, line, found, post.evidence_facts(evidence), house)
    post.forget_if_settled(found, house)
    return found


def patience(database: Database, house: House, now: float) -> Patience:
    """What the next try of a queued line depends on, *now*."""
    with database.reading() as link:
        return Patience(now, house.draw(), pulse.watched(link))


def _look_again(database: Database, last: Event, house: House) -> Result:
    result, evidence = kept_result(last), evidence_of(last)
    if last.kind not in journal.VERDICTS:
        return result
    line = _line(database, result)
    found = regrade(result, _look(result, evidence, _text(line), house))
    # What only tells how long it waits is news to the caller, not to the journal.
    if replace(found, reason=result.reason) != result:
        _settle(database, line, found, evidence, house)
    post.forget_if_settled(found, house)
    return found


def _settle(
    database: Database, line: Kept | None, found: Result, evidence: dict[str, Any], house: House
) -> None:
    """Keep that *found* is what became of *line*, and let go of what is needed no more."""
    now = house.clock.now()
    if found.verdict.name == "not-surfaced":
        # A target that ended has nothing more to show: the delivery is over as it is.
        becomes = outcome.closed()
    elif line is None:
        becomes = outcome.of(found)
    else:
        tries = line.tries - kept.FIRST
        becomes = outcome.of_kept(found, line, tries, patience(database, house, now))
    keep.settle_doubt(database, house, Settled(found, evidence, becomes), now)


def _look(result: Result, evidence: dict[str, Any], text: str, house: House) -> Look:
    # First whether it ended, then its transcript: what it wrote last must not be missed.
    ended = _has_ended(evidence, house)
    follower = _follower(result, evidence, text, house)
    proof = _seen(follower, str(result.delivery_id))
    if evidence.get("offset") is None and proof != SURFACED:
        # Without the offset an older line of the same text cannot be told apart.
        proof = NONE
    is_open = result.verdict.fate == OPEN
    late = read_late(post.folder_of(house, result)) if is_open else ()
    return Look(proof, turn_after=follower.turn_after, ended=ended, late=late)


def _has_ended(evidence: dict[str, Any], house: House) -> bool:
    """Whether the process behind the door that was written is gone for certain."""
    receipt = evidence.get("receipt")
    pid = receipt.get("pid") if isinstance(receipt, dict) and receipt.get("wrote") else None
    return isinstance(pid, int) and house.processes.start_token(pid) is None


def _under_lease(database: Database, begun: Event, house: House) -> Result:
    """The verdict on a delivery that had none when it was asked for."""
    attempt = json.loads(begun.body)["attempt"]
    result = replace(kept_result(begun), attempt=attempt)
    postbox = str(result.carrier.session_id)
    try:
        lease = take_lease(house.places.locks, postbox, timeout_s=0, clock=house.clock)
    except LeaseBusy:
        return replace(result, reason="a carrier still holds the postbox; ask again later")
    with contextlib.closing(lease):
        return judge_orphan(database, begun.delivery, postbox, house)


def _follower(result: Result, evidence: dict[str, Any], text: str, house: House) -> Follower:
    """A fresh reading of the target's transcript, from where it stood before the write."""
    session = str(result.target.session_id)
    claude_dir = house.config().claude_dir
    return Follower(
        evidence.get("transcript"),
        evidence.get("offset") or 0,
        {str(result.delivery_id): text},
        session,
        find=lambda: find_transcript(claude_dir, session, None),
    )


def _seen(follower: Follower, key: str) -> str:
    follower.look()
    return follower.states[key]


def _line(database: Database, result: Result) -> Kept | None:
    with database.reading() as link:
        return kept.find(link, str(result.delivery_id))


def _text(line: Kept | None) -> str:
    """The text of *line*; of one that is gone the journal alone tells, and only its id is known."""
    return "" if line is None else line.body.decode(errors="replace")
