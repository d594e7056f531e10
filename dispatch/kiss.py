"""One kiss in one straight line, from an address to a verdict.

Nothing is started before the line is on disk, and everything is resolved and
bound again under the lease, because the world may change while we wait.
"""

from __future__ import annotations

import contextlib

from carrier.errors import CarrierError, CarrierUnbound, NestedKiss
from dispatch import keep, outcome, post, rounds, waiting
from dispatch.aim import gate, is_leased, refuse_live_postbox, take_aim
from dispatch.errand import Errand, draft_of, heed_deletions
from dispatch.errors import (
    DatabaseUnusable,
    DispatchError,
    JournalUnreadable,
    JournalUnwritable,
)
from dispatch.intake import take_in
from dispatch.judge import class_of_error
from dispatch.keep import Settled
from dispatch.result import Result
from dispatch.story import known_verdict, present_verdict
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from dispatch.verify import await_surface, judge_orphan
from registry.errors import RegistryError, StateUnsafe
from registry.ids import key_to_msg_id, new_uuid
from registry.locks import take_lease
from registry.record import Record, fields, replace
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dispatch.aim import Aim
    from dispatch.database import Database
    from dispatch.errand import Order
    from dispatch.house import House
    from dispatch.post import Letter
    from dispatch.spool import Draft
    from registry.locks import Lease
    from registry.targets import Config

NESTED = "ZDO_CARRIER_DOOR_TARGET"


class Refusal(Record):
    """Why nothing was started: its class and its sentence."""

    name: str
    reason: str


def kiss(order: Order, house: House) -> Result:
    """What became of the line: a verdict for every ending, never an exception of ours.

    Killed before the line is on disk, nothing was started.  Killed later, the
    keeper ends the carrier, and `zdo verify` judges what it left.
    """
    delivery = new_uuid() if order.key is None else key_to_msg_id(order.key)
    start = Result(
        command="kiss",
        verdict=TABLE["unknown"],
        delivery_id=delivery,
        key=order.key or delivery,
        sender=order.sender,
    )
    errand = Errand(order, house, Telling(start, order.address or ""), owner=new_uuid())
    ended = _ended(errand, lambda: _kiss(errand))
    if isinstance(ended, Refusal) and order.or_queue and waiting.takes(TABLE[ended.name]):
        why = f"{ended.name}: {ended.reason}"
        ended = _ended(errand, lambda: waiting.store(errand, why))
    result = _refuse(errand, ended) if isinstance(ended, Refusal) else ended
    # Also where an earlier kiss with this key has the verdict already.
    return replace(result, warning=errand.telling.result.warning)


def _ended(errand: Errand, act: Callable[[], Result]) -> Result | Refusal:
    """The result of *act*, or the refusal that it ended with before anything was started."""
    try:
        return act()
    except JournalUnwritable as error:
        # The carrier has run; what it came to is said, though it could not be kept.
        return errand.telling.add(verdict=TABLE["journal-unwritable"], reason=str(error))
    except (RegistryError, CarrierError, DispatchError) as error:
        if errand.telling.started:
            return _cut_short(errand, str(error))
        name, reason = class_of_error(error), str(error)
        errand.telling.add(attempt=None)
        if isinstance(error, DatabaseUnusable):
            # Asking it a second time would only double the wait.
            return errand.telling.add(verdict=TABLE[name], reason=reason)
        return Refusal(name, reason)
    except KeyboardInterrupt:
        if errand.telling.started:
            return _cut_short(errand, "stopped by Ctrl-C while a carrier ran")
        return Refusal("interrupted", "stopped by Ctrl-C before anything was started")


def _refuse(errand: Errand, refusal: Refusal) -> Result:
    """The refusal, kept; or the verdict that stands for the line already."""
    if (known := _known(errand)) is not None:
        return known
    house = errand.house
    result = errand.telling.add(verdict=TABLE[refusal.name], reason=refusal.reason)
    written = keep.refuse(house, result, errand.owner, house.clock.now())
    if written and result.attempt is not None:
        # Ctrl-C came before the start: the attempt is ours alone, and settled.
        post.forget_if_settled(result, house)
    return result


def _known(errand: Errand) -> Result | None:
    """What the line of a refused kiss stands for already; None when the refusal is all there is.

    With a key it may be at the door since an earlier kiss; one for the relay may be kept
    though Ctrl-C came.  "Not delivered" is then not this kiss's to say.
    """
    order = errand.order
    if order.key is None and not (order.queue or order.or_queue):
        return None
    if not errand.telling.address:
        return None  # an answer whose sender was not found: it is no line to anybody
    with contextlib.suppress(StateUnsafe, DatabaseUnusable, JournalUnreadable):
        return known_verdict(errand.telling.result, errand.owner, errand.house)
    return None


def _cut_short(errand: Errand, reason: str) -> Result:
    """What is known when trouble came after the start: the verdict, or an honest doubt.

    The row stays claimed until `zdo verify` judges what the keeper leaves.
    """
    order, result = errand.order, errand.telling.result
    if not errand.telling.concluded:
        return errand.telling.add(verdict=TABLE["unknown"], reason=reason)
    if order.or_queue and waiting.takes(result.verdict):
        # It may be kept for the relay by now: not the caller's to repeat.
        reason = f"{reason}; {result.verdict.name}: {result.reason}"
        return errand.telling.add(verdict=TABLE["interrupted"], reason=reason)
    if order.until_surfaced and result.verdict.name == "delivered-start":
        return errand.telling.add(verdict=TABLE["not-surfaced"], reason="not waited for: " + reason)
    return result


def _kiss(errand: Errand) -> Result:
    order, house, telling = errand.order, errand.house, errand.telling
    if NESTED in house.env:
        raise NestedKiss(house.env[NESTED])
    config = take_in(errand)
    if order.queue:
        waiting.check_address(telling.address, config, house, telling)
        return waiting.store(errand)
    aim = _aim(errand, config)
    if order.dry_run:
        keep.refuse_deleted(house, aim.row.session_id)
        if not is_leased(house, aim.binding.postbox):
            refuse_live_postbox(aim.binding.postbox, read_rows(config.claude_dir, house.processes))
        plan = post.plan_of(telling.result, aim.binding, config, house)
        return telling.add(verdict=TABLE["dry-run"], plan=plan)
    with contextlib.closing(keep.open_database(house)) as database:
        result = _deliver(errand, config, database, draft_of(errand))
        if order.until_surfaced:
            return await_surface(database, result, house, order.wait_s)
        return result


def _aim(errand: Errand, config: Config, leased: str | None = None) -> Aim:
    """Who is meant, by the rows as they stand now; *leased* is the postbox we hold, if any."""
    scene = errand.house.scene(config)
    aim = take_aim(errand.telling.address, scene, errand.telling)
    gate(aim, if_idle=errand.order.if_idle)
    if leased is not None:
        if aim.binding.postbox != leased:
            raise CarrierUnbound(aim.target.id, "its postbox changed meanwhile; repeat")
        refuse_live_postbox(leased, scene.listing)
    return aim


def _deliver(errand: Errand, config: Config, database: Database, draft: Draft) -> Result:
    """The verdict on *draft*: the one it has already, or that of an attempt under the lease."""
    house, telling = errand.house, errand.telling
    heed_deletions(errand, database)
    known = keep.find(database, draft)
    if known is not None and known.is_settled:
        return present_verdict(database, telling.result)
    patience = errand.order.lock_timeout_s
    lease = take_lease(house.places.locks, draft.postbox, timeout_s=patience, clock=house.clock)
    with contextlib.closing(lease):
        aim = _aim(errand, config, leased=draft.postbox)
        number = _next_attempt(errand, database, draft)
        if number is None:
            return present_verdict(database, telling.result)
        # From here on Ctrl-C may leave a folder, and then a claimed line.
        result = telling.add(attempt=number)
        letter = post.letter(result, aim.binding, config, house, draft.body)
        return _attempt(errand, config, database, draft, letter, lease)


def _next_attempt(errand: Errand, database: Database, draft: Draft) -> int | None:
    """The number of our attempt, or None when the key has a verdict.

    Under the lease: what a dead owner of the line left is judged first.
    """
    known = keep.find(database, draft)
    if known is not None and not known.is_settled and not known.may_be_tried:
        judge_orphan(database, draft.key, draft.postbox, errand.house)
        known = keep.find(database, draft)
    if known is None:
        return 1
    return known.next_attempt if known.may_be_tried else None


def _attempt(  # noqa: PLR0913, PLR0917 - one attempt is all of these
    errand: Errand, config: Config, database: Database, draft: Draft, letter: Letter, lease: Lease
) -> Result:
    """The verdict of one attempt, settled before the lease is let go."""
    house, telling = errand.house, errand.telling

    def claim(letters: Sequence[Letter]) -> bool:
        envelope, now = letters[0].envelope, house.clock.now()
        claimed = keep.accept(database, draft, telling.result, envelope, now)
        telling.started = isinstance(claimed, int)
        return telling.started

    carried = rounds.carry([letter], lease, config, house, claim)
    if carried is None:
        return present_verdict(database, telling.add(attempt=None))
    ((result, evidence),) = carried
    telling.add(**fields(result))
    telling.concluded = True
    later = errand.order.or_queue and waiting.takes(result.verdict)
    becomes = outcome.queued() if later else outcome.of(result)
    settled = Settled(result, post.evidence_facts(evidence), becomes)
    keep.settle(database, house, [settled], errand.owner, house.clock.now())
    if later:
        telling.add(verdict=TABLE["queued"], reason=f"{result.verdict.name}: {result.reason}")
    post.forget_if_settled(result, house)
    return telling.result
