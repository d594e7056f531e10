"""What the kernel and `ps` tell of a session's process: arguments, pane, family.  An edge.

Total: what cannot be seen is None and has its clause among the *blind* ones.  A pid that
changes hands while it is looked at is nobody, so nothing of two processes is mixed.
"""

from __future__ import annotations

import os

from registry.clock import Clock
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    # Every running process: its parent and when it started.
    Table = dict[int, tuple[int, float]]

ENDED = "it has ended, or is hidden from us"
REPLACED = "it was replaced while it was looked at"
# What `ps` tells of a start is cut to whole seconds, once for parent and once for child.
ROUNDING_S = 2.0

_LONGEST_PANE = 1000
_CLOCK = Clock()


class Member(Record):
    """A process that belongs to a session."""

    pid: int
    started: float | None  # seconds since 1970


class Seen(Record):
    """One process of a session, and those that it started."""

    pid: int
    started: float | None  # seconds since 1970
    argv: tuple[str, ...] | None  # by `ps`: parted at the blanks
    tsid: str | None  # TERM_SESSION_ID of its environment
    family: tuple[Member, ...]  # itself first; nothing of another wanted session's
    blind: tuple[str, ...]  # one clause for each thing that could not be seen


class Look(Record):
    """What was seen of one process alone."""

    started: float | None = None
    argv: tuple[str, ...] | None = None
    tsid: str | None = None
    blind: tuple[str, ...] = ()


def see(
    wanted: Mapping[int, str],
    *,
    linux: bool,
    env: Mapping[str, str],
    proc: str = "/proc",
    clock: Clock = _CLOCK,
) -> dict[int, Seen]:
    """What is to be seen of each process of *wanted*, a pid with its start token or ''.

    Asks *proc* on Linux, else the `ps` on the PATH of *env*, for two seconds in all.
    Start tokens are those of *proc*; `ps` has none that compare.
    """
    if not wanted:
        return {}
    if linux and os.path.exists(proc + "/self/stat"):
        from registry.surroundings_proc import look_by_proc

        looks, table = look_by_proc(wanted, proc, clock)
    else:
        from registry.surroundings_ps import look_by_ps

        looks, table = look_by_ps(wanted, env, clock)
    children: dict[int, list[int]] = {}
    for pid in sorted(table):
        children.setdefault(table[pid][0], []).append(pid)
    return {pid: _seen(pid, looks[pid], _heirs(pid, children, table, wanted)) for pid in wanted}


def plain_pane(value: str) -> bool:
    """Whether *value* can be a pane's id: short and printable."""
    return len(value) <= _LONGEST_PANE and value.isprintable()


def _seen(pid: int, look: Look, heirs: list[Member]) -> Seen:
    known = look.started is not None
    family = (Member(pid, look.started), *heirs) if known else ()
    return Seen(pid, look.started, look.argv, look.tsid, family, look.blind)


def _heirs(
    pid: int, children: Mapping[int, list[int]], table: Table, wanted: Collection[int]
) -> list[Member]:
    """Everything that runs below *pid*, but for other sessions and what runs below them."""
    heirs, todo = [], [pid]
    while todo:
        parent = todo.pop()
        for child in children.get(parent, ()):
            if child not in wanted and _may_be_child(table.get(parent), table[child]):
                heirs.append(Member(child, table[child][1]))
                todo.append(child)
    return heirs


def _may_be_child(parent: tuple[int, float] | None, child: tuple[int, float]) -> bool:
    # The table is not read at one moment: a parent's pid may have come round meanwhile, and
    # then its new holder is younger than the children of the old one.
    return parent is not None and child[1] + ROUNDING_S >= parent[1]
