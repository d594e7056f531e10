"""One kiss in one straight line, from an address to a verdict.

Nothing is started before the line is on disk, and everything is resolved and
bound again under the lease, because the world may change while we wait.
"""

from __future__ import annotations

import contextlib
import hashlib

from carrier.errors import CarrierError, CarrierUnbound, NestedKiss
from dispatch import keep, post
from dispatch.aim import gate, is_leased, refuse_live_postbox, take_aim
from dispatch.errors import (
    DatabaseUnusable,
    DispatchError,
    JournalUnreadable,
    JournalUnwritable,
)
from dispatch.judge import class_of_error
from dispatch.result import LineFacts, Result
from dispatch.spool import Draft
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from dispatch.verify import await_surface, judge_orphan, known_verdict, present_verdict
from registry.errors import RegistryError, StateUnsafe
from registry.ids import key_to_msg_id, new_uuid
from registry.locks import still_ours, take_lease
from registry.record import Record, fields
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dispatch.aim import Aim
    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.spool import Kept
    from registry.locks import Lease
    from registry.targets import Config

NESTED = "ZDO_CARRIER_DOOR_TARGET"
LOCK_TIMEOUT_S = 60.0
WAIT_S = 30.0


class Order(Record):
    """What the caller asks for; *take_line* reads the line or raises LineInvalid."""

    address: str
    take_line: Callable[[], bytes]
    sender: str
    key: str | None = None
    dry_run: bool = False
    until_surfaced: bool = False
    wait_s: float = WAIT_S
    if_idle: bool = False
    lock_timeout_s: float = LOCK_TIMEOUT_S


class Errand(Record):
    """One kiss under way: the order, where it happens, and what is known of it."""

    order: Order
    house: House
    telling: Telling
    owner: str  # the claim token of this process
    nonce: str  # what this attempt's receipt must carry


class Leased(Record):
    """Who is meant and carries, and the right to let the carrier run."""

    aim: Aim
    lease: Lease


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
    errand = Errand(order, house, Telling(start), owner=new_uuid(), nonce=new_uuid())
    try:
        return _kiss(errand)
    except JournalUnwritable as error:
        # The carrier has run; what it came to is said, though it could not be kept.
        return errand.telling.add(verdict=TABLE["journal-unwritable"], reason=str(error))
    except (RegistryError, CarrierError, DispatchError) as error:
        if errand.telling.started:
            return _cut_short(errand, str(error))
        name, reason = class_of_error(error), str(error)
        if isinstance(error, DatabaseUnusable):
            # Asking it a second time would only double the wait.
            return errand.telling.add(verdict=TABLE[name], reason=reason)
    except KeyboardInterrupt:
        if errand.telling.started:
            return _cut_short(errand, "stopped by Ctrl-C while a carrier ran")
        name, reason = "interrupted", "stopped by Ctrl-C before anything was started"
    return _refuse(errand, name, reason)


def _refuse(errand: Errand, name: str, reason: str) -> Result:
    """The refusal, kept; or the verdict that stands for the key already."""
    if (known := _known(errand)) is not None:
        return known
    house, result = errand.house, errand.telling.add(verdict=TABLE[name], reason=reason)
    keep.refuse(house, result, errand.owner, house.clock.now())
    if result.attempt is not None:
        # Ours alone and never started: nobody will look for it.
        post.forget_if_settled(result, house)
    return result


def _known(errand: Errand) -> Result | None:
    """What the key of a refused kiss stands for already; None when the refusal is all there is.

    The line may be at the door since an earlier kiss, and then "not delivered" is
    not this one's to say.
    """
    result = errand.telling.result
    if errand.order.key is None or result.attempt is not None:
        return None
    with contextlib.suppress(StateUnsafe, DatabaseUnusable, JournalUnreadable):
        return known_verdict(result, errand.house)
    return None


def _cut_short(errand: Errand, reason: str) -> Result:
    """What is known when trouble came after the start: the verdict, or an honest doubt.

    The row stays claimed until `zdo verify` judges what the keeper leaves.
    """
    result = errand.telling.result
    if not errand.telling.concluded:
        return errand.telling.add(verdict=TABLE["unknown"], reason=reason)
    if errand.order.until_surfaced and result.verdict.name == "delivered-start":
        return errand.telling.add(verdict=TABLE["not-surfaced"], reason="not waited for: " + reason)
    return result


def _kiss(errand: Errand) -> Result:
    order, house, telling = errand.order, errand.house, errand.telling
    if NESTED in house.env:
        raise NestedKiss(house.env[NESTED])
    line = order.take_line()
    digest = hashlib.sha256(line)
    telling.add(line=LineFacts(bytes=len(line), sha256=digest.hexdigest()))
    config = house.config()
    aim = _aim(errand, config)
    if order.dry_run:
        if not is_leased(house, aim.binding.postbox):
            refuse_live_postbox(aim.binding.postbox, read_rows(config.claude_dir, house.processes))
        parcel = post.pack(aim, config, house, telling.result)
        return telling.add(verdict=TABLE["dry-run"], plan=post.plan_of(parcel))
    draft = Draft(
        key=str(telling.result.delivery_id),
        digest=digest.digest(),
        body=line,
        station=config.station,
        target=aim.target.id,
        owner=errand.owner,
    )
    with contextlib.closing(keep.open_database(house)) as database:
        result = _deliver(errand, config, database, draft)
        if order.until_surfaced:
            return await_surface(database, result, house, order.wait_s)
        return result


def _aim(errand: Errand, config: Config, leased: str | None = None) -> Aim:
    """Who is meant, by the rows as they stand now; *leased* is the postbox we hold, if any."""
    listing = read_rows(config.claude_dir, errand.house.processes)
    aim = take_aim(errand.order.address, config, listing, errand.telling)
    gate(aim, if_idle=errand.order.if_idle)
    if leased is not None:
        if aim.binding.postbox != leased:
            raise CarrierUnbound(aim.target.id, "its postbox changed meanwhile; repeat")
        refuse_live_postbox(leased, listing)
    return aim


def _deliver(errand: Errand, config: Config, database: Database, draft: Draft) -> Result:
    """The verdict on *draft*: the one it has already, or that of an attempt under the lease."""
    house, telling = errand.house, errand.telling
    known = keep.find(database, draft)
    if known is not None and known.is_settled:
        return present_verdict(database, telling.result)
    postbox = str(telling.result.carrier.session_id)
    patience = errand.order.lock_timeout_s
    lease = take_lease(house.places.locks, postbox, timeout_s=patience, clock=house.clock)
    with contextlib.closing(lease):
        aim = _aim(errand, config, leased=postbox)
        claim = _claim(errand, database, draft)
        if not isinstance(claim, int):
            return present_verdict(database, telling.result)
        telling.add(attempt=claim)
        return _attempt(errand, config, database, draft, Leased(aim, lease))


def _claim(errand: Errand, database: Database, draft: Draft) -> int | Kept:
    """The number of our attempt; before it, what a dead owner of the line left is judged."""
    house, result = errand.house, errand.telling.result
    claim = keep.accept(database, draft, result, errand.nonce, house.clock.now())
    if isinstance(claim, int) or claim.is_settled:
        return claim
    judge_orphan(database, draft.key, str(result.carrier.session_id), house)
    return keep.accept(database, draft, result, errand.nonce, house.clock.now())


def _attempt(
    errand: Errand, config: Config, database: Database, draft: Draft, leased: Leased
) -> Result:
    """The verdict of one attempt, settled before the lease is let go."""
    house, telling = errand.house, errand.telling
    envelope = post.envelope_of(telling.result, config, draft.body, errand.nonce)
    parcel = post.pack(leased.aim, config, house, telling.result)
    post.lay_out(parcel, envelope)
    if not still_ours(leased.lease):
        raise StateUnsafe(leased.lease.path, "was replaced while we held it; nothing was started")
    telling.started = True
    evidence = post.post(parcel, envelope, leased.lease, config, house)
    result = post.conclude(telling.result, evidence, leased.aim.binding, errand.nonce)
    telling.add(**fields(result))
    telling.concluded = True
    keep.settle(database, result, post.evidence_facts(evidence), errand.owner, house.clock.now())
    post.forget_if_settled(result, house)
    return result
