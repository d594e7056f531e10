"""Keeping a line for the relay: which addresses may wait, and after which refusals."""

from __future__ import annotations

import contextlib

from carrier.binding import postbox_for
from dispatch import keep
from dispatch.aim import take_aim
from dispatch.errand import draft_of, heed_deletions
from dispatch.errors import TargetNotRunning
from dispatch.result import CarrierFacts
from dispatch.story import present_verdict
from dispatch.verdict import TABLE
from registry.errors import AddressUnknown, TicketUnbound
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.errand import Errand
    from dispatch.house import House
    from dispatch.result import Result
    from dispatch.telling import Telling
    from dispatch.verdict import Verdict
    from registry.targets import Config

BY_NAME = "name:"
_LONGEST_NAME = 256

# Provably not delivered, and time may mend it (INTERFACE 7, line).
_STATUSES = (75, 76)


def takes(verdict: Verdict) -> bool:
    """Whether `--or-queue` keeps a line that was refused with *verdict*."""
    return verdict.exit in _STATUSES or verdict.name == "target-not-running"


def _may_be_borne(address: str) -> bool:
    """Whether *address* is a name that a session may have one day."""
    name = address.removeprefix(BY_NAME)
    return address != name and name.isprintable() and 0 < len(name) <= _LONGEST_NAME


def check_address(address: str, config: Config, house: House, telling: Telling) -> None:
    """Refuse an address that can never be served; write what is known of it into *telling*.

    A configured target, a session id and `name:…` need not run yet.  A name that a
    running session bears now means that session: another one that takes the name
    later is not meant (docs/decisions/0008).
    """
    try:
        take_aim(address, house.scene(config), telling)
    except TargetNotRunning:
        return
    except (AddressUnknown, TicketUnbound):
        target = config.target(address)
        if target is None and not _may_be_borne(address):
            raise
        postbox = postbox_for(target, config, lambda _: None)
        facts = replace(telling.result.target, id=address)
        telling.add(target=facts, carrier=CarrierFacts(session_id=postbox))


def store(errand: Errand, reason: str | None = None) -> Result:
    """The line of *errand* on disk for the relay, or the verdict that its key has already.

    *reason* is the refusal after which it is kept.  Killed before it is on disk,
    nothing was accepted.
    """
    house, telling = errand.house, errand.telling
    result = telling.add(verdict=TABLE["queued"], reason=reason)
    with contextlib.closing(keep.open_database(house)) as database:
        heed_deletions(errand, database)
        if keep.enqueue(database, draft_of(errand), result, house.clock.now()) is None:
            return result
        return present_verdict(database, result)
