"""What a kiss was asked for, and one kiss under way."""

from __future__ import annotations

from dispatch import senders
from dispatch.spool import Draft
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.telling import Telling

LOCK_TIMEOUT_S = 60.0
WAIT_S = 30.0


class Order(Record):
    """What the caller asks for; *take_line* reads the line or raises LineInvalid."""

    address: str | None  # None: an answer goes to the sender of *reply*
    take_line: Callable[[], bytes]
    sender: str
    key: str | None = None
    dry_run: bool = False
    until_surfaced: bool = False
    wait_s: float = WAIT_S
    if_idle: bool = False
    queue: bool = False  # keep it for the relay, start nothing
    reply: str | None = None  # the delivery whose sender is answered
    sign: bool = False  # put a header in front that says who speaks
    or_queue: bool = False  # keep it for the relay where trying again is safe
    lock_timeout_s: float = LOCK_TIMEOUT_S


class Errand(Record):
    """One kiss under way: the order, where it happens, and what is known of it."""

    order: Order
    house: House
    telling: Telling
    owner: str  # the claim token of this process


def heed_deletions(errand: Errand, database: Database) -> None:
    """Refuse a target that was unregistered; a sender that was is warned, and goes on."""
    telling = errand.telling
    with database.reading() as link:
        if (session := telling.result.target.session_id) is not None:
            senders.refuse_deleted_target(link, session)
        telling.add(warning=senders.warning_for(link, errand.order.sender))


def draft_of(errand: Errand) -> Draft:
    """The line of *errand* as it asks to be kept, by what is known of its target now."""
    order, telling = errand.order, errand.telling
    result, address = telling.result, telling.address
    return Draft(
        key=str(result.delivery_id),
        digest=bytes.fromhex(str(result.line.sha256)),
        body=telling.line,
        target=result.target.id or address,
        owner=errand.owner,
        spelled=address,
        postbox=result.carrier.session_id or "",
        # What no UTF-8 can spell is kept as it is written out; it is never an error.
        sender=order.sender.encode(errors="backslashreplace").decode(),
        given_key=order.key or "",
        idle=int(order.if_idle),
    )
