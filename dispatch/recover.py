"""What the dead left: claimed lines are judged, open deliveries looked at again."""

from __future__ import annotations

import contextlib

from dispatch import kept
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.judge import class_of_error
from dispatch.story import last_judged, story_of
from dispatch.verdict import OPEN, TABLE
from dispatch.verify import judge_orphan, look_again
from registry.errors import LeaseBusy
from registry.locks import take_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.station import Station
    from registry.locks import Lease

REGRADE_S = 10.0  # of one pass; the next one goes on somewhere else


def judge_all_claimed(station: Station) -> None:
    """Every claimed line whose dispatcher is gone has its verdict; one under way is left."""
    house = station.house
    with station.database.reading() as link:
        postboxes = kept.claimed_through(link)
    for postbox in postboxes:
        try:
            lease = take_lease(house.places.locks, postbox, timeout_s=0, clock=house.clock)
        except LeaseBusy:
            continue
        with contextlib.closing(lease):
            judge_claimed(station, lease)


def judge_claimed(station: Station, lease: Lease) -> None:
    """Claimed lines under our own lease are orphans: the transcript first, then the permit."""
    with station.database.reading() as link:
        keys = kept.claimed(link, lease.postbox)
    for key in keys:
        with _told(station):
            result = judge_orphan(station.database, key, lease.postbox, station.house)
            state = _state_of(station, key)
            if state != kept.CLAIMED:
                station.tally.recovered += 1
                station.tally.count(result, dead=state == kept.DEAD)


def regrade(station: Station) -> None:
    """Open deliveries were asked for again, as many as the time allows, each pass from elsewhere.

    Looks without a lease: only rows that nobody delivers any more are open.
    """
    house = station.house
    with station.database.reading() as link:
        keys = kept.open_ones(link)
    start = int(house.draw() * len(keys))
    until = house.clock.monotonic() + REGRADE_S
    for key in keys[start:] + keys[:start]:
        if house.clock.monotonic() >= until:
            return
        with _told(station):
            _regrade(station, key)


def _regrade(station: Station, key: str) -> None:
    events = story_of(station.database, key)
    before = last_judged(events)
    found = look_again(station.database, events, station.house)
    if before is None or before.name in (None, found.verdict.name):
        return
    station.tally.regraded += 1
    # A delivery whose target ended without having shown it is told of once, too.
    if (
        found.verdict.name == "not-surfaced"
        or TABLE[before.name].fate == OPEN != found.verdict.fate
    ):
        station.tally.count(found, dead=_state_of(station, key) == kept.DEAD)


@contextlib.contextmanager
def _told(station: Station) -> Iterator[None]:
    """A line whose story is lost or cannot be read is told of, and stops no other."""
    try:
        yield
    except DeliveryUnknown as error:
        why = f"the story of delivery {error.delivery} is lost; zdo spool drop it, or requeue it"
        station.tally.broken("unknown", why)
    except JournalUnreadable as error:
        station.tally.broken(class_of_error(error), str(error))


def _state_of(station: Station, key: str) -> int | None:
    with station.database.reading() as link:
        line = kept.find(link, key)
    return None if line is None else line.state
