"""From an address to two sessions side by side, or a refusal.  Starts nothing.

The order is the contract: misbound is judged before the target is found dead or
its status wrong, and a postbox that runs is judged last, under the lease.
"""

from __future__ import annotations

from carrier.binding import bind, postbox_for
from carrier.errors import CarrierLive
from dispatch.errors import TargetNotRunning, TargetStatus
from dispatch.result import CarrierFacts, TargetFacts
from registry.errors import LeaseBusy, StateUnsafe
from registry.locks import take_lease
from registry.record import Record
from registry.resolve import find_again, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.binding import Binding
    from dispatch.house import House
    from dispatch.telling import Telling
    from registry.resolve import DoorTarget, Scene
    from registry.rows import Listing, Row

# The statuses that take a line; busy and waiting targets read it later.
OPEN_STATUSES = ("idle", "busy", "waiting")


class Aim(Record):
    """A target that may be written now, and the postbox that carries to it."""

    target: DoorTarget
    row: Row
    binding: Binding


def take_aim(address: str, scene: Scene, telling: Telling) -> Aim:
    """Who is meant and who carries, judged by what *scene* shows now.

    Writes what it learns into *telling* as it goes, so a refusal names both ids.
    """
    listing, config = scene.listing, scene.config
    target = resolve(address, scene)
    telling.add(target=_facts(target))

    def session_of(other: str) -> str | None:
        return resolve(other, scene).session_id

    postbox = postbox_for(target.target, config, session_of)
    telling.add(carrier=CarrierFacts(session_id=postbox))
    if target.session_id is None:
        raise TargetNotRunning(target.id, _nobody(target) + _unread(listing))
    binding = bind(target.id, target.session_id, postbox)
    if target.row is None:
        why = f"no running session has the id {target.session_id}"
        raise TargetNotRunning(target.id, why + _unread(listing))
    return Aim(target, target.row, binding)


def gate(aim: Aim, *, if_idle: bool) -> None:
    """Refuse a target whose status does not take a line (INTERFACE 3)."""
    wanted = ("idle",) if if_idle else OPEN_STATUSES
    if aim.row.status not in wanted:
        raise TargetStatus(aim.target.id, aim.row.status, " or ".join(wanted))


def is_leased(house: House, postbox: str) -> bool:
    """Whether a carrier of ours may be running through *postbox* right now.

    For those who only look: takes the lease and lets it go again at once.
    """
    try:
        take_lease(house.places.locks, postbox, timeout_s=0, clock=house.clock).close()
    except LeaseBusy:
        return True
    except StateUnsafe:
        return False  # no state folder yet, so no carrier either
    return False


def refuse_live_postbox(postbox: str, listing: Listing) -> None:
    """Refuse a postbox that runs: somebody drives it.

    Only meaningful under the lease; before it, the row may be our own carrier's.
    """
    for row in find_again(postbox, listing):
        raise CarrierLive(postbox, row.pid)


def _nobody(target: DoorTarget) -> str:
    in_pane = target.target is not None and target.target.kind == "tsid"
    return "no running session is in that pane" if in_pane else "no running session has that name"


def _unread(listing: Listing) -> str:
    count = sum(skipped.reason == "unreadable" for skipped in listing.skipped)
    return f" ({count} rows could not be read: zdo sessions)" if count else ""


def _facts(target: DoorTarget) -> TargetFacts:
    row = target.row
    return TargetFacts(
        id=target.id,
        session_id=target.session_id,
        pid=None if row is None else row.pid,
        status=None if row is None else row.status,
        route=target.route,
    )
