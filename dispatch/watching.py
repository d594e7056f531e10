"""Everything at a glance: what needs somebody, who runs, what waits, what happened last.

Only looks, with a connection that cannot write, and each time anew.  What cannot be read
now is told in its place, and the rest is shown.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from dispatch import kept, pulse
from dispatch.database import told
from dispatch.errors import DispatchError
from dispatch.present import meet
from registry.errors import RegistryError
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from dispatch.house import House
    from dispatch.present import Presence

MOST: Final = 8  # of each kind; the rest is counted
HELD, DOUBT, DEAD = "held", "doubt", "dead"
_RECENT: Final = 10_000  # the newest lines, among which dead letters are looked for
_PATIENCE_S: Final = 0.5
# Cron's finest habit is a minute, and a pass may take one.
_LATE_S: Final = 180.0

_CLASS: Final = (
    "(SELECT class FROM event WHERE delivery = key AND kind <> 'refused' ORDER BY id DESC LIMIT 1)"
)
_NEEDING: Final = (
    f"SELECT key, target, state, created_at, {_CLASS} FROM line"  # noqa: S608 - ours
    # Of a plain id SQLite would read the whole table, to spare itself the sorting.
    " WHERE state < 20 AND state = ? ORDER BY +id LIMIT ?"
)
_GIVEN_UP: Final = (
    f"SELECT key, target, state, created_at, {_CLASS} FROM line"  # noqa: S608 - ours
    " WHERE kept = 1 AND state = ? AND id > (SELECT max(id) FROM line) - ?"
    " ORDER BY id DESC LIMIT ?"
)
_WAITING: Final = (
    "SELECT target, count(*), min(created_at) FROM line WHERE state < 20 AND state = ?"
    " GROUP BY target ORDER BY min(id)"
)
_LATEST: Final = (
    "SELECT delivery, at, class, json_extract(body, '$.result.target.id') FROM event"
    " WHERE kind IN ('judged', 'verified', 'refused') ORDER BY id DESC LIMIT ?"
)


class Need(Record):
    """A line that somebody has to decide about."""

    kind: str  # held, doubt or dead
    delivery: str
    target: str
    name: str | None  # its class
    age_s: float
    do: tuple[str, ...]  # what to run next, one command each


class Queue(Record):
    """The lines that wait for one target."""

    target: str
    waiting: int
    age_s: float  # of the oldest


class Latest(Record):
    """One of the last verdicts."""

    delivery: str
    ago_s: float
    name: str
    target: str | None


class View(Record):
    """All of it, at the moment *at*."""

    at: float
    sessions: tuple[Presence, ...]
    skipped: int  # rows of sessions that are none
    needs: tuple[Need, ...]
    more_needs: bool  # there are more than these
    queues: tuple[Queue, ...]
    waiting: int  # lines in all queues
    latest: tuple[Latest, ...]
    relay_ago_s: float | None  # None: no relay has ever served this queue
    troubles: tuple[str, ...]  # what could not be read, each a clause

    @property
    def relay_is_late(self) -> bool:
        """Whether lines wait and no relay has come for them."""
        return self.waiting > 0 and (self.relay_ago_s is None or self.relay_ago_s > _LATE_S)


def look(house: House) -> View:
    """The view as it is now; it takes no lease and no turn, and never waits long."""
    now, troubles = house.clock.now(), []
    sessions: tuple[Presence, ...] = ()
    skipped = 0
    try:
        company = meet(house)
        sessions, skipped = company.present, len(company.listing.skipped)
    except RegistryError as error:
        troubles.append(f"sessions: {error}")
    spool = _Spool((), (), (), None)
    try:
        spool = _spool(house.places.database, now)
    except DispatchError as error:
        troubles.append(f"lines: {error}")
    return View(
        at=now,
        sessions=sessions,
        skipped=skipped,
        needs=spool.needs[:MOST],
        more_needs=len(spool.needs) > MOST,
        queues=spool.queues,
        waiting=sum(each.waiting for each in spool.queues),
        latest=spool.latest,
        relay_ago_s=spool.relay_ago_s,
        troubles=tuple(troubles),
    )


class _Spool(Record):
    needs: tuple[Need, ...]
    queues: tuple[Queue, ...]
    latest: tuple[Latest, ...]
    relay_ago_s: float | None


def _spool(path: str, now: float) -> _Spool:
    if not os.path.isfile(path):
        return _Spool((), (), (), None)  # nothing was ever kept
    with told(path), contextlib.closing(_connected(path)) as link:
        needing = link.execute(_NEEDING, (kept.UNCERTAIN, MOST + 1)).fetchall()
        needing += link.execute(_GIVEN_UP, (kept.DEAD, _RECENT, MOST + 1)).fetchall()
        waiting = link.execute(_WAITING, (kept.QUEUED,)).fetchall()
        latest = link.execute(_LATEST, (MOST,)).fetchall()
        at = pulse.last_step(link)
    return _Spool(
        needs=tuple(_need(row, now) for row in needing),
        queues=tuple(Queue(target, count, max(now - at_, 0.0)) for target, count, at_ in waiting),
        latest=tuple(
            Latest(delivery, max(now - at_, 0.0), name or "-", target)
            for delivery, at_, name, target in latest
        ),
        relay_ago_s=None if at is None else max(now - at, 0.0),
    )


def _connected(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    return sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=_PATIENCE_S)


def _need(row: tuple[str, str, int, float, str | None], now: float) -> Need:
    key, target, state, at, name = row
    again = f"zdo spool requeue {key}"
    if state == kept.DEAD:
        kind, do = DEAD, (again, f"zdo spool drop {key}")
    elif name == "door-held":
        kind, do = HELD, ("approve it in the session", f"zdo verify {key}")
    else:
        kind, do = DOUBT, (f"zdo verify {key}", f"{again} --i-have-looked")
    return Need(kind, key, target, name, max(now - at, 0.0), do)
