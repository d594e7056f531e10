"""One pass over what is due: every session its next lines, every postbox one carrier run.

Killed at any moment, nothing is lost and nothing goes twice: what was claimed is
judged by the next pass from what its keeper and wrapper left.
"""

from __future__ import annotations

import contextlib

from dispatch import due, journal, keep, kept, outcome, prune, pulse, recover, spool
from dispatch.ballast import lay_ballast
from dispatch.schedule import gave_up
from dispatch.serve import LEASE_S, serve
from dispatch.station import Station
from dispatch.verdict import NONE, QUEUE, TABLE
from registry.errors import StateUnsafe
from registry.filesystem import MOUNTINFO, refuse_network
from registry.home import open_state
from registry.ids import new_uuid
from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from sqlite3 import Connection

    from dispatch.due import Halt, Plan
    from dispatch.house import House
    from dispatch.tally import Tally

_FOR_A_PERSON = (TABLE["carrier-misbound"].exit, TABLE["config-invalid"].exit)

# No carrier is started after so long, so that a pass a minute does not pile up.
PASS_S = 50.0


class RelayBusy(Exception):
    """Another relay of this state folder is at work."""


@contextlib.contextmanager
def alone(house: House, mountinfo: str = MOUNTINFO) -> Iterator[None]:
    """The only relay of its state folder, or RelayBusy.

    The lock is not inherited by a carrier: a relay that was killed frees it at once,
    and the lease of the postbox is what its carrier still holds.
    """
    from filelock import FileLock, Timeout

    open_state(house.places)
    refuse_network(house.places.state, mountinfo)
    lock = FileLock(house.places.relay_lock, timeout=0, mode=0o600, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise RelayBusy from None
    except OSError as error:
        why = error.strerror or str(error)
        raise StateUnsafe(house.places.relay_lock, why) from error
    try:
        yield
    finally:
        lock.release()


def relay(house: House, seconds: float, tally: Tally, told: Callable[[Tally], None]) -> Plan:
    """One pass: orphans judged, open deliveries looked at again, all that is due carried.

    Bounded: no carrier run is started when *seconds* are over, one that runs is waited
    for.  *tally* has what was done, also of a pass that is broken off; *told* hears of
    it whenever it has grown.
    """
    until = house.clock.monotonic() + seconds
    with contextlib.closing(keep.open_database(house)) as database:
        lay_ballast(house.places)
        station = Station(
            house=house,
            config=house.config(),
            database=database,
            tally=tally,
            owner=new_uuid(),
            tried=set(),
            told=lambda: told(tally),
        )
        recover.judge_all_claimed(station)
        recover.regrade(station)
        plan = _deliver(station, until)
        _count_left(station)
        prune.once_a_day(database, house.places.attempts, house.clock.now())
    return plan


def _deliver(station: Station, until: float) -> Plan:
    """The plan that is left when nothing more can be done before *until*."""
    while True:
        dead = station.tally.dead
        plan = _plan(station)
        given_up = station.tally.dead - dead  # and those behind them may have waited as long
        _count_left(station)
        # A postbox in use is waited for when nothing else is left: it delays no other.
        gone = _sweep(station, plan, 0.0, until) or _sweep(station, plan, LEASE_S, until)
        if not (gone or given_up) or _is_over(station, until):
            return plan


def _sweep(station: Station, plan: Plan, patience_s: float, until: float) -> int:
    """How many lines of *plan* were dealt with, postbox by postbox."""
    gone = 0
    for postbox in _postboxes(plan):
        if not _is_over(station, until):
            gone += serve(station, postbox, patience_s)
    return gone


def _is_over(station: Station, until: float) -> bool:
    return station.tally.stopped or station.house.clock.monotonic() >= until


def _count_left(station: Station) -> None:
    with station.database.reading() as link:
        station.tally.left = kept.count(link, kept.QUEUED)
        station.tally.doubtful = kept.count(link, kept.UNCERTAIN)
    station.told()


def _plan(station: Station) -> Plan:
    """What may go now; what newly waits for its target, or has waited too long, is noted."""
    house = station.house
    scene = house.queue_scene(station.config)
    now = house.clock.now()
    with station.database.reading() as link:
        if not due.targets_with_work(link):
            return due.Plan((), ())
        watched = pulse.watched_by(link, now)
        plan = due.plan(link, scene, now, station.tried)
        is_due = pulse.is_due(link, now)
        news = [halt for halt in plan.halts if _is_news(link, halt, watched)]
    for halt in plan.halts:
        # Time mends an absence, and only a person what the configuration says.
        if halt.result.verdict.exit in _FOR_A_PERSON:
            station.tally.broken(halt.result.verdict.name, str(halt.result.reason))
    if not (news or is_due):
        return plan  # a pass that finds nothing new writes nothing
    with station.database.writing() as link:
        pulse.beat(link, now)
        for halt in news:
            _note(station, link, halt, watched, now)
    return plan


def _is_news(link: Connection, halt: Halt, watched: float) -> bool:
    """Whether the line waits, and the journal does not say so, or why; or has waited too long."""
    if halt.line.state != kept.QUEUED or halt.result.verdict.fate not in (NONE, QUEUE):
        return False
    name, _ = journal.newest(link, halt.line.key)
    told = (halt.line.status, name) == (kept.WAITING, halt.result.verdict.name)
    return not told or _has_waited_long(halt, watched)


def _has_waited_long(halt: Halt, watched: float) -> bool:
    waited = watched - halt.line.born
    return gave_up(outcome.SCHEDULE, tries=halt.line.tries - kept.FIRST, waited_s=waited)


def _note(station: Station, link: Connection, halt: Halt, watched: float, now: float) -> None:
    result, over = halt.result, _has_waited_long(halt, watched)
    if over:
        days = outcome.SCHEDULE.lifetime_s / 86_400
        result = replace(result, reason=f"given up after {days:g} days: {result.reason}")
    becomes = outcome.given_up() if over else outcome.queued(status=kept.WAITING)
    spool.rest(link, halt.line.key, becomes, now)
    keep.note(link, journal.JUDGED if over else journal.DEFERRED, result, {}, now)
    station.tally.count(result, dead=over)


def _postboxes(plan: Plan) -> list[str]:
    """The postboxes with work; those whose lines were tried least come first.

    A postbox whose carriers hang costs every pass its deadline, so it comes last.
    """
    tries: dict[str, int] = {}
    for ready in plan.ready:
        postbox = ready.aim.binding.postbox
        tries[postbox] = min(tries.get(postbox, ready.line.tries), ready.line.tries)
    return sorted(tries, key=lambda postbox: tries[postbox])
