"""One kiss in one straight line, from an address to a verdict.

Nothing is started before the line is on disk, and everything is resolved and
bound again under the lease, because the world may change while we wait.
"""

from __future__ import annotations

import hashlib

from carrier.errors import CarrierError, CarrierUnbound, NestedKiss
from dispatch import keep, post
from dispatch.aim import gate, refuse_live_postbox, take_aim
from dispatch.errors import ClaimLost, DispatchError, JournalUnwritable
from dispatch.judge import class_of_error
from dispatch.result import LineFacts, Result
from dispatch.spool import Draft
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from dispatch.verify import await_surface, present_verdict
from registry.errors import RegistryError, StateUnsafe
from registry.ids import key_to_msg_id, new_uuid
from registry.locks import still_ours, take_lease
from registry.record import Record, fields
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from carrier.attempt import Evidence
    from dispatch.aim import Aim
    from dispatch.database import Database
    from dispatch.house import House
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
            return _cut_short(errand.telling, str(error))
        name, reason = class_of_error(error), str(error)
    except KeyboardInterrupt:
        if errand.telling.started:
            return _cut_short(errand.telling, "stopped by Ctrl-C while a carrier ran")
        name, reason = "interrupted", "stopped by Ctrl-C before anything was started"
    result = errand.telling.add(verdict=TABLE[name], reason=reason)
    keep.refuse(house, result, errand.owner, house.clock.now())
    if result.attempt is not None:
        # Ours alone and never started: nobody will look for it.
        post.forget_if_settled(result, house)
    return result


def _cut_short(telling: Telling, reason: str) -> Result:
    """What is known when trouble came after the start: the verdict, or an honest doubt.

    The row stays claimed until `zdo verify` judges what the keeper leaves.
    """
    if telling.concluded:
        return telling.result
    return telling.add(verdict=TABLE["unknown"], reason=reason)


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
        parcel = post.pack(aim, config, house, telling.result)
        return telling.add(verdict=TABLE["dry-run"], plan=post.plan_of(parcel))
    database = keep.open_database(house)
    try:
        draft = Draft(
            key=str(telling.result.delivery_id),
            digest=digest.digest(),
            body=line,
            station=config.station,
            target=aim.target.id,
            owner=errand.owner,
        )
        return _deliver(errand, config, database, draft)
    finally:
        database.close()


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
    telling, clock = errand.telling, errand.house.clock
    claim = keep.accept(database, draft, telling.result, errand.nonce, clock.now())
    if isinstance(claim, int):
        telling.add(attempt=claim)
        result = _attempt(errand, config, database, draft)
    else:
        result = present_verdict(database, telling.result)
    if errand.order.until_surfaced:
        return await_surface(database, result, errand.house, errand.order.wait_s)
    return result


def _attempt(errand: Errand, config: Config, database: Database, draft: Draft) -> Result:
    """The verdict of one attempt, settled."""
    telling, clock = errand.telling, errand.house.clock
    aim, evidence = _under_lease(errand, config, database, draft)
    result = post.conclude(telling.result, evidence, aim.binding, errand.nonce)
    telling.add(**fields(result))
    telling.concluded = True
    keep.settle(database, result, post.evidence_facts(evidence), errand.owner, clock.now())
    post.forget_if_settled(result, errand.house)
    return result


def _under_lease(
    errand: Errand, config: Config, database: Database, draft: Draft
) -> tuple[Aim, Evidence]:
    """Everything that happens under the lease on the postbox, and only there."""
    house, telling = errand.house, errand.telling
    postbox = str(telling.result.carrier.session_id)
    lease = take_lease(
        house.places.locks,
        postbox,
        timeout_s=errand.order.lock_timeout_s,
        clock=house.clock,
    )
    try:
        aim = _aim(errand, config, leased=postbox)
        if not keep.still_claimed(database, draft):
            raise ClaimLost(draft.key)
        envelope = post.envelope_of(telling.result, config, draft.body, errand.nonce)
        parcel = post.pack(aim, config, house, telling.result)
        post.lay_out(parcel, envelope)
        if not still_ours(lease):
            raise StateUnsafe(lease.path, "was replaced while we held it; nothing was started")
        telling.started = True
        return aim, post.post(parcel, envelope, lease, config, house)
    finally:
        lease.close()
