"""Looks at what zdo keeps: its folder, its database, the relay's last pass, the room that is left.

A look changes nothing, except that SQLite takes back what a killed writer left half done.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat

from dispatch import kept, pulse, wreck
from dispatch.database import told, turn
from dispatch.errors import DatabaseDamaged, DatabaseUnusable
from dispatch.finding import ill, unknown, well
from registry.clock import iso
from registry.errors import StateUnsafe
from registry.filesystem import MOUNTINFO, refuse_network
from registry.home import refuse_unsafe
from registry.locks import refuse_without_locks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from dispatch.finding import Finding
    from dispatch.house import House

# A thousand of the longest lines.
ENOUGH_BYTES: Final = 64 << 20
# Cron's coarsest habit is an hour; one of its passes may be missed.
STALE_S: Final = 7200.0
# Two clocks of one machine do not differ by so much.
_AHEAD_S: Final = 60.0
_NEWEST: Final = "SELECT max(at) FROM (SELECT at FROM event ORDER BY id DESC LIMIT 100)"
_OLDEST: Final = "WHERE state < 20 AND state = ? ORDER BY +id LIMIT 1"


def state_folder(house: House, mountinfo: str = MOUNTINFO) -> Finding:
    """Whether lines can be kept safely in the state folder."""
    state = house.places.state
    if not os.path.lexists(state):
        return unknown(f"there is no {state} yet; the first kiss makes it")
    try:
        is_open = refuse_unsafe(house.places)
        refuse_network(state, mountinfo)
        refuse_without_locks(state)
    except StateUnsafe as error:
        return ill(str(error), _cure(error, state))
    if not os.access(state, os.W_OK | os.X_OK, effective_ids=True):
        return ill(f"{state}: cannot be written", f"chmod u+rwx {shlex.quote(state)}")
    how = "; open to others, which the next kiss mends" if is_open else ""
    return well(f"{state} is ours, local, and has native locks{how}")


def _cure(error: StateUnsafe, state: str) -> str | None:
    """The command after which the folder is safe; None where there is none to be sure of."""
    path = shlex.quote(error.path)
    if os.path.islink(error.path):
        real = shlex.quote(os.path.realpath(error.path))
        return f"export ZDO_STATE_DIR={real}" if error.path == state else f"rm {path}"
    if not os.path.isdir(error.path):
        return f"mv {path} {path}.odd"
    found = os.stat(error.path)
    if found.st_uid != os.geteuid():
        return f"sudo chown -R {os.geteuid()} {path}"
    return f"chmod 700 {path}" if stat.S_IMODE(found.st_mode) & 0o077 else None


def database(house: House) -> Finding:
    """Whether the file of spool and journal is a whole one of ours; `zdo fsck` asks each line."""
    path = house.places.database
    try:
        is_there = _is_there(path)
    except DatabaseUnusable as error:
        return ill(str(error), f"mv {shlex.quote(path)} {shlex.quote(path)}.odd")
    if not is_there:
        return unknown(f"there is no {path} yet; the first kiss makes it")
    # A writer in the middle would look like damage.
    with told(path), turn(path, house.clock), contextlib.closing(wreck.connect(path)) as link:
        wreck.refuse_others(link, path)
        if wreck.is_older(link):
            return well(f"{path} is an older zdo's; the next kiss brings it up to date")
        if said := wreck.complaints(link, path):
            raise DatabaseDamaged(path, said[0])
        waiting, doubtful = (kept.count(link, each) for each in (kept.QUEUED, kept.UNCERTAIN))
    return well(f"{path} is whole; waiting: {waiting}, in doubt: {doubtful}")


def relay_last_pass(house: House) -> Finding:
    """Whether a relay passes while lines wait; one that finds nothing leaves no trace."""
    path = house.places.database
    if not _is_there(path):
        return unknown("no line was ever kept here")
    with told(path), contextlib.closing(wreck.connect(path)) as link:
        at = pulse.last_step(link)
        waiting = kept.select(link, _OLDEST, (kept.QUEUED,))
    last = "no relay has served this queue" if at is None else f"the last one was at {iso(at)}"
    now, since = house.clock.now(), [line.created_at for line in waiting]
    if since and now - max([*since, at or 0.0]) > STALE_S:
        return ill(f"{last}, and lines wait")
    last += "" if since else "; no line waits"
    is_fresh = at is not None and 0 <= now - at <= STALE_S
    return well(last) if is_fresh else unknown(last)


def free_space(house: House, ask: Callable[[str], os.statvfs_result] = os.statvfs) -> Finding:
    """Whether there is room for lines where they are kept."""
    place = house.places.state
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    found = ask(place)
    free = found.f_bavail * found.f_frsize
    # A file system that counts no files says 0 of 0.
    is_full = found.f_files > 0 and found.f_favail == 0
    detail = f"{free >> 20} MiB are free at {place}" + "; no file can be made" * is_full
    return ill(detail) if is_full or free < ENOUGH_BYTES else well(detail)


def _is_there(database: str) -> bool:
    if not os.path.lexists(database):
        return False
    if not stat.S_ISREG(os.lstat(database).st_mode):
        # SQLite would wait at a pipe, and follow a link.
        raise DatabaseUnusable(database, "is not a plain file")
    return True


def clock(house: House) -> Finding:
    """Whether the clock is where it was: nothing that is on record may lie in the future."""
    path = house.places.database
    if not _is_there(path):
        return unknown("nothing is on record to compare it with")
    with told(path), contextlib.closing(wreck.connect(path)) as link:
        (newest,) = link.execute(_NEWEST).fetchone()
    now = house.clock.now()
    if newest is not None and newest > now + _AHEAD_S:
        return ill(f"it is {iso(now)}, and the journal has an entry of {iso(newest)}")
    return well(f"it is {iso(now)}")
