"""One postbox served: all that is due through it, in one carrier run under its lease."""

from __future__ import annotations

import contextlib
import os

from carrier.errors import AttemptExists, CarrierLive
from dispatch import due, journal, keep, kept, outcome, pace, post, recover, rounds, spool
from dispatch.aim import refuse_live_postbox
from dispatch.errors import ClaimLost, DispatchError
from dispatch.judge import class_of_error
from dispatch.keep import Settled
from dispatch.verdict import QUEUE, TABLE
from dispatch.verify import patience
from registry.errors import LeaseBusy, RegistryError
from registry.locks import take_lease
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from carrier.attempt import Evidence
    from dispatch.due import Ready
    from dispatch.post import Letter
    from dispatch.result import Result
    from dispatch.station import Station
    from registry.locks import Lease

LEASE_S = 5.0  # a kiss through the same postbox is over by then
MOST = 1_000  # lines in one carrier run


def serve(station: Station, postbox: str, patience_s: float) -> int:
    """How many lines of *postbox* were dealt with; trouble is told and stops no other postbox.

    One that is in use is waited for, *patience_s* long.  Killed in the middle, the
    keeper ends the run under the lease, and the next pass judges what it left.
    """
    house = station.house
    try:
        lease = take_lease(house.places.locks, postbox, timeout_s=patience_s, clock=house.clock)
        with contextlib.closing(lease):
            recover.judge_claimed(station, lease)
            return _serve(station, lease)
    except (LeaseBusy, ClaimLost):
        return 0  # somebody else is at it; the next pass comes
    except (CarrierLive, RegistryError, DispatchError) as error:
        station.tally.broken(class_of_error(error), str(error))
        return 0


def _serve(station: Station, lease: Lease) -> int:
    """As `serve`, with everything resolved and bound again, because the world has moved on."""
    house, config = station.house, station.config
    scene = house.queue_scene(config)
    refuse_live_postbox(lease.postbox, scene.listing)
    with station.database.reading() as link:
        plan = due.plan(link, scene, house.clock.now(), station.tried)
    ready = [each for each in plan.ready if each.aim.binding.postbox == lease.postbox][:MOST]
    damaged = [each for each in ready if not each.line.is_whole]
    if damaged:
        _bury(station, damaged)
        return len(damaged)
    return _carry(station, lease, ready) if ready else 0


def _carry(station: Station, lease: Lease, ready: Sequence[Ready]) -> int:
    """How many of *ready* have a verdict now."""
    letters = [
        post.letter(
            replace(each.result, attempt=each.line.next_attempt),
            each.aim.binding,
            station.config,
            station.house,
            each.line.body,
        )
        for each in ready
    ]

    def claim(timed: Sequence[Letter]) -> bool:
        _claim(station, lease, ready, timed)
        station.tried.update(each.line.key for each in ready)
        return True

    try:
        found = rounds.carry(letters, lease, station.config, station.house, claim)
    except AttemptExists as error:
        # The folder may be of any attempt of the line's, one that the journal lost.
        delivery = os.path.basename(error.folder).partition(".")[0]
        left = next(each.result for each in letters if each.result.delivery_id == delivery)
        _doubt(station, left, str(error))
        return 1
    station.tally.runs += any(evidence.run.spawn_error is None for _, evidence in found or [])
    _settle(station, ready, found or [])
    return len(ready)


def _claim(
    station: Station, lease: Lease, ready: Sequence[Ready], letters: Sequence[Letter]
) -> None:
    """All lines are claimed, counted and journaled in one commit, or none is: ClaimLost."""
    now = station.house.clock.now()
    sessions: dict[str, list[Ready]] = {}
    for each in ready:
        sessions.setdefault(each.aim.binding.target_session, []).append(each)
    with station.database.writing() as link:
        lines = [each.line for each in ready]
        spool.claim(link, lines, station.owner, lease.postbox, now)
        for session, its in sessions.items():
            pace.note(link, session, [each.line for each in its], now)
        for letter in letters:
            keep.begun(link, journal.CLAIMED, letter.result, letter.envelope, now)


def _settle(
    station: Station, ready: Sequence[Ready], found: Sequence[tuple[Result, Evidence]]
) -> None:
    """Every verdict is on disk, in one commit; then the folders of what is over are gone."""
    house = station.house
    now = house.clock.now()
    settled = []
    for each, (result, evidence) in zip(ready, found, strict=True):
        tries = each.line.tries + 1 - kept.FIRST
        becomes = outcome.of_kept(result, each.line, tries, patience(station.database, house, now))
        settled.append(Settled(result, post.evidence_facts(evidence), becomes))
    keep.settle(station.database, house, settled, station.owner, now)
    _take_back(station, ready, settled)
    for one in settled:
        post.forget_if_settled(one.result, house)
        station.tally.count(one.result, dead=one.outcome.state == kept.DEAD)
    station.told()


def _take_back(station: Station, ready: Sequence[Ready], settled: Sequence[Settled]) -> None:
    """What never got to its door does not count as gone there; what was dropped there does."""
    stayed = [
        each
        for each, one in zip(ready, settled, strict=True)
        if one.result.verdict.fate == QUEUE and one.result.verdict.name != "door-dropped"
    ]
    if stayed:
        with station.database.writing() as link:
            for each in stayed:
                pace.take_back(link, each.aim.binding.target_session, each.line)


def _doubt(station: Station, result: Result, reason: str) -> None:
    """A line that was tried before, as its folder shows and no row: a person decides."""
    doubtful = replace(result, verdict=TABLE["unknown"], reason=reason)
    now = station.house.clock.now()
    with station.database.writing() as link:
        spool.skip_attempt(link, str(result.delivery_id))
        spool.rest(link, str(result.delivery_id), outcome.of(doubtful), now)
        keep.note(link, journal.JUDGED, doubtful, {}, now)
    station.tally.count(doubtful, dead=False)


def _bury(station: Station, damaged: Sequence[Ready]) -> None:
    """Lines that are not what was accepted go nowhere."""
    reason = "its row in the spool is damaged; zdo fsck"
    now = station.house.clock.now()
    with station.database.writing() as link:
        for each in damaged:
            dead = replace(each.result, verdict=TABLE["spool-unwritable"], reason=reason)
            spool.rest(link, each.line.key, outcome.damaged(), now)
            keep.note(link, journal.JUDGED, dead, {}, now)
            station.tally.count(dead, dead=True)
