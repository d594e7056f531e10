"""Everything that a carrier started, found by parentage and group, never by name.

Where the kernel lets the keeper adopt orphans, none escapes; elsewhere a child
that leaves the group does (docs/INTERNALS.md, crash by crash).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from registry.processes import Processes

_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)
_STAT_BYTES = 4096


def adopt_orphans(function: str) -> bool:
    """True when orphans below this process become its children from now on."""
    try:
        import ctypes

        return bool(getattr(ctypes.CDLL(None), function)(_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def reap() -> bool:
    """Take every child that is over; whether one still lives."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if not pid:
            return True


def descendants(root: int, proc: str = "/proc") -> list[int]:
    """The processes below *root*; none where there is no *proc*."""
    below: dict[int, list[int]] = {}
    for pid in _pids(proc):
        parent = _parent(pid)
        if parent is not None:
            below.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        children = below.pop(todo.pop(), [])
        found += children
        todo += children
    return found


def signal_group(group: int, number: int) -> bool:
    """Send *number*, 0 only asks; False when the group is empty or not ours."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def signal_each(pids: Iterable[int], number: int) -> None:
    """Send *number* to each of *pids* that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue  # it ended meanwhile


def _pids(proc: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(proc) if name.isdigit()]
    except OSError:
        return []


def _parent(pid: int) -> int | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            # The name before the last bracket may itself hold brackets and blanks.
            return int(os.read(fd, _STAT_BYTES).rpartition(b")")[2].split()[1])
        finally:
            os.close(fd)
    except (OSError, IndexError):
        return None  # it ended meanwhile


class Orphans:
    """A carrier whose keeper was killed, and what is known to come from it.

    *named* is what the keeper wrote down: pid and start time.  A pid alone is not
    enough, its number may be somebody else's by now.  Whom *spared* names is left alone.
    """

    def __init__(
        self, named: str, processes: Processes, spared: Callable[[], int | None] = lambda: None
    ):
        pid, _, token = named.partition(" ")
        self.pid = int(pid)
        if self.pid <= 1:
            raise ValueError(f"{self.pid} is no carrier")
        self._token, self._processes = token, processes
        self._known: dict[int, str | None] = {self.pid: token}
        self._spared = spared

    def left(self) -> list[int]:
        """Those who still run, the carrier's group as the negative of its number."""
        token_of = self._processes.start_token
        for pid in descendants(self.pid) if token_of(self.pid) == self._token else ():
            self._known.setdefault(pid, token_of(pid))
        living = [pid for pid, token in self._known.items() if token and token_of(pid) == token]
        if token_of(self.pid) in (None, self._token) and signal_group(self.pid, 0):
            living.append(-self.pid)
        spared = self._spared()
        return [pid for pid in living if pid != spared]
