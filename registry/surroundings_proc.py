"""Surroundings of a process as Linux keeps them under /proc.  An edge.

Environment and arguments are those that it was started with; a process that paints over
its own memory can change what is seen.  Nothing here waits.
"""

from __future__ import annotations

import os

from registry.processes import stat_fields
from registry.record import replace
from registry.surroundings import ENDED, REPLACED, Look, plain_pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from registry.clock import Clock
    from registry.surroundings import Table

    Birth = tuple[int, str, float]  # parent, start token, seconds since 1970

# Positions in /proc/<pid>/stat after the name in brackets (proc(5): fields 4 and 22).
_PARENT: Final = 1
_START: Final = 19

_PANE: Final = b"TERM_SESSION_ID="
# More than the kernel lets a process be started with.
_LONGEST: Final = 8 << 20
_BLOCK: Final = 1 << 16


def look_by_proc(
    wanted: Mapping[int, str], proc: str, clock: Clock
) -> tuple[dict[int, Look], Table]:
    """A look at each process of *wanted*, and the table of all that run."""
    booted = clock.now() - clock.since_boot()
    births = {pid: _birth(f"{proc}/{pid}", booted) for pid in wanted}
    looks = {pid: _look(f"{proc}/{pid}", births[pid], wanted[pid]) for pid in wanted}
    table, fault = _table(proc, booted)
    for pid, look in looks.items():
        if look.started is None:
            continue
        birth, again = births[pid], _birth(f"{proc}/{pid}", booted)
        # Asked at the very end, so that all was seen of one process.
        if birth is None or again is None or again[1] != birth[1]:
            looks[pid] = Look(blind=(REPLACED,))
        elif fault is not None:
            looks[pid] = replace(look, blind=(*look.blind, fault))
    return looks, table


def _look(folder: str, birth: Birth | None, expected: str) -> Look:
    if birth is None:
        return Look(blind=(ENDED,))
    _, token, started = birth
    if expected not in ("", token):
        return Look(blind=("another process has got its pid since",))
    argv, tsid, blind = None, None, []
    arguments = _read(folder + "/cmdline")
    if isinstance(arguments, bytes):
        argv = tuple(arguments.decode("utf-8", "replace").rstrip("\0").split("\0"))
    else:
        blind.append(f"its arguments {arguments}")
    environment = _read(folder + "/environ")
    if isinstance(environment, bytes):
        tsid, fault = _pane_in(environment)
    else:
        fault = f"its environment {environment}"
    if fault is not None:
        blind.append(fault)
    return Look(started, argv, tsid, tuple(blind))


def _pane_in(environment: bytes) -> tuple[str | None, str | None]:
    """The pane's id in a block of NUL-ended variables, or why it cannot be told."""
    if environment and not environment.endswith(b"\0"):
        return None, "its environment breaks off"
    if environment and not environment.strip(b"\0"):
        return None, "its environment was written over"
    found = {each for each in environment.split(b"\0") if each.startswith(_PANE)}
    if len(found) > 1:
        return None, "its environment has two different TERM_SESSION_ID"
    value = found.pop().removeprefix(_PANE).decode("utf-8", "replace") if found else ""
    if "\ufffd" in value or not plain_pane(value):
        return None, "its TERM_SESSION_ID is not plain text"
    return value or None, None


def _table(proc: str, booted: float) -> tuple[Table, str | None]:
    """Every process that runs, and why the list is not whole."""
    try:
        pids = [int(name) for name in os.listdir(proc) if name.isascii() and name.isdigit()]
    except OSError as error:
        return {}, f"its descendants could not be listed: {error.strerror}"
    births = ((pid, _birth(f"{proc}/{pid}", booted)) for pid in pids)
    return {pid: (birth[0], birth[2]) for pid, birth in births if birth is not None}, None


def _birth(folder: str, booted: float) -> Birth | None:
    """Whose child a running process is and since when; None: not to be seen."""
    try:
        fields = stat_fields(folder + "/stat")
        if fields is None:
            return None
        ticks = int(fields[_START])
        return int(fields[_PARENT]), str(ticks), booted + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, OverflowError):
        return None


def _read(path: str) -> bytes | str:
    """All of a file of /proc, or why not, as the end of a clause."""
    parts, size = [], 0
    try:
        # Never waits, whatever stands there.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            while size <= _LONGEST and (part := os.read(fd, _BLOCK)):
                parts.append(part)
                size += len(part)
        finally:
            os.close(fd)
    except OSError as error:
        return f"could not be read: {error.strerror}"
    return b"".join(parts) if size <= _LONGEST else "is longer than 8 MiB"
