"""Which kept lines may go now: in strict order per session, none waiting for another's.

The first line of a session that is not delivered holds back those behind it, whatever
the reason.  It looks and claims nothing.
"""

from __future__ import annotations

import math

from carrier.errors import CarrierError
from dispatch import journal, kept, pace, senders
from dispatch.aim import OPEN_STATUSES, gate, take_aim
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.result import LineFacts, Result, TargetFacts
from dispatch.schedule import Schedule, is_due
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from registry.errors import AddressUnknown, RegistryError
from registry.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from sqlite3 import Connection

    from dispatch.aim import Aim
    from dispatch.kept import Kept
    from registry.resolve import Scene

SCHEDULE = Schedule()

_WITH_WORK = """
WITH RECURSIVE work(target) AS (
  SELECT min(target) FROM line WHERE state < 20 AND station = ''
  UNION ALL
  SELECT (SELECT min(target) FROM line
          WHERE state < 20 AND station = '' AND target > work.target)
  FROM work WHERE work.target IS NOT NULL)
SELECT target FROM work WHERE target IS NOT NULL
"""


class Ready(Record):
    """One line that may go now: to whom, and what is known of it so far."""

    line: Kept
    aim: Aim
    result: Result


class Halt(Record):
    """Why a session's next line cannot go now, and when it may, where that is known."""

    line: Kept
    result: Result  # with the class that a kiss would have been refused with
    due_at: float | None = None  # None: when its target changes


class Plan(Record):
    """What a pass may do now."""

    ready: tuple[Ready, ...]
    halts: tuple[Halt, ...]


def plan(
    link: Connection,
    scene: Scene,
    now: float,
    tried: Container[str] = (),
) -> Plan:
    """The lines that may go *now* by the rows of *scene*, and what holds the others.

    Those of *tried* have had their turn in this pass, however short their back-off is.
    """
    ready: list[Ready] = []
    halts: list[Halt] = []
    for queue in _queues(link, scene, halts):
        for found in _prefix(link, queue, now, tried):
            if isinstance(found, Ready):
                ready.append(found)
            else:
                halts.append(found)
    ready.sort(key=lambda each: each.line.id)
    return Plan(tuple(ready), tuple(halts))


def targets_with_work(link: Connection) -> tuple[str, ...]:
    """Every address that has a line which is not over, in one probe of the index each."""
    return tuple(row[0] for row in link.execute(_WITH_WORK))


def first_lines(link: Connection, target: str, limit: int = pace.BURST + 1) -> tuple[Kept, ...]:
    """The first lines of *target* that are not at their door yet, oldest first."""
    return kept.select(
        link,
        "WHERE state < 20 AND station = '' AND target = ? AND state <> ? ORDER BY id LIMIT ?",
        (target, kept.SENT, limit),
    )


def start_of(line: Kept, command: str) -> Result:
    """What is known of *line* before anything is tried."""
    return Result(
        command=command,
        verdict=TABLE["unknown"],
        delivery_id=line.key,
        key=line.given_key or line.key,
        sender=line.sender,
        target=TargetFacts(id=line.target),
        line=LineFacts(bytes=len(line.body), sha256=line.digest.hex()),
    )


def _queues(link: Connection, scene: Scene, halts: list[Halt]) -> Iterator[list[Ready]]:
    """The next lines of each session, by whatever addresses they were queued, in order of arrival.

    A line whose address cannot be aimed at now becomes a halt, and holds back what came
    later for its session by another address.  So does one that was begun: in the session
    where that was, whatever its address means now.
    """
    sessions: dict[str, list[Ready]] = {}
    held: dict[str | None, int] = {}
    for found in _by_address(link, scene):
        if isinstance(found, Halt):
            halts.append(found)
            session = found.result.target.session_id
            held[session] = min(held.get(session, found.line.id), found.line.id)
        else:
            sessions.setdefault(found[0].aim.binding.target_session, []).extend(found)
    for session, queue in sessions.items():
        first = held.get(session, math.inf)
        if before := [each for each in queue if each.line.id < first]:
            yield sorted(before, key=lambda each: each.line.id)


def _by_address(link: Connection, scene: Scene) -> Iterator[Halt | list[Ready]]:
    """What stops lines of each address, and the lines that it stands for now."""
    for target in targets_with_work(link):
        waiting: list[Kept] = []
        for line in first_lines(link, target):
            if (begun := _begun(link, line)) is None:
                waiting.append(line)
            else:
                yield begun
        if waiting:
            yield _aimed(link, waiting, scene)


def _aimed(link: Connection, lines: list[Kept], scene: Scene) -> Halt | list[Ready]:
    """*lines*, all of one address, each with the aim of the first; or why there is none."""
    aimed = _aim_at(link, lines[0], scene)
    if isinstance(aimed, Halt):
        return aimed
    told = aimed.result
    return [
        Ready(
            line,
            aimed.aim,
            replace(start_of(line, "relay"), target=told.target, carrier=told.carrier),
        )
        for line in lines
    ]


def _begun(link: Connection, line: Kept) -> Halt | None:
    """The halt that *line* is in the session that it may be in; None when there is none."""
    if line.state == kept.QUEUED:
        return None
    session = journal.session_of(link, line.key)
    if session is None:
        return None  # saved without its story: its address is all that is known
    start = start_of(line, "relay")
    return Halt(line, replace(start, target=replace(start.target, session_id=session)))


def _aim_at(link: Connection, line: Kept, scene: Scene) -> Ready | Halt:
    telling = Telling(start_of(line, "relay"))
    try:
        aim = take_aim(line.target, scene, telling)
        if aim.target.route == "name" and not line.target.startswith("name:"):
            # Its configured target is gone; a session that happens to have the name is another.
            telling.result = start_of(line, "relay")
            raise AddressUnknown(line.target)
        senders.refuse_deleted_target(link, aim.row.session_id)
        gate(aim, if_idle=bool(line.idle))
    except (RegistryError, CarrierError, DispatchError) as error:
        name = class_of_error(error)
        return Halt(line, telling.add(verdict=TABLE[name], reason=str(error)))
    return Ready(line, aim, telling.result)


def _prefix(
    link: Connection, queue: list[Ready], now: float, tried: Container[str]
) -> Iterator[Ready | Halt]:
    """The lines of one session's *queue* that may go now; what stops the rest comes last."""
    session = queue[0].aim.binding.target_session
    room = pace.room(link, session, now)
    said: set[bytes] = set()
    for each in queue:
        halt = _halt(link, each, now)
        if halt is None and each.line.key in tried:
            halt = Halt(each.line, each.result, now)
        if halt is None and each.aim.binding != queue[0].aim.binding:
            halt = Halt(each.line, each.result, now)  # another postbox: in the next round
        if halt is None and len(said) >= room:
            halt = Halt(each.line, each.result, pace.room_again_at(link, session, now))
        if halt is None and each.line.digest in said:
            halt = Halt(each.line, each.result, now + pace.SAME_TEXT_S)
        if halt is not None:
            yield halt
            return
        said.add(each.line.digest)
        yield each


def _halt(link: Connection, each: Ready, now: float) -> Halt | None:
    """What stops this very line now, or None."""
    line, session = each.line, each.aim.binding.target_session
    if line.state != kept.QUEUED:
        return Halt(line, each.result)
    # A target that appears is served at once, whatever its back-off says.
    if line.status != kept.WAITING and not is_due(line.due_at, now, SCHEDULE.longest_s):
        return Halt(line, each.result, line.due_at)
    if line.idle and each.aim.row.status != OPEN_STATUSES[0]:
        return Halt(line, each.result)
    clear_at = pace.said_until(link, session, line.digest, now)
    return None if clear_at <= now else Halt(line, each.result, clear_at)


def due_next(halts: Iterable[Halt]) -> float | None:
    """The first moment at which one of *halts* is over by time alone."""
    moments = [halt.due_at for halt in halts if halt.due_at is not None]
    return min(moments, default=None)
