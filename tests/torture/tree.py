"""The processes below one process, what each is, and the end of those that nobody waits for.

The root adopts every orphan, so that a keeper whose relay was killed is still below it.
Linux alone tells all this.
"""

from __future__ import annotations

import ctypes
import os

_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, prctl(2)

# What a process can be, below a harness.
ROLES = ("sender", "kisser", "relay", "driver", "keeper", "carrier", "wrapper")


def is_possible() -> bool:
    """Whether this kernel lists the children of a process."""
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def adopt_orphans() -> None:
    """Make orphans below this process its children from now on."""
    if ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError("this process cannot adopt orphans")


def children(pid: int) -> list[int]:
    """The children of *pid*, which has one thread; none when it is gone."""
    return list(map(int, _read(f"/proc/{pid}/task/{pid}/children").split()))


def words(pid: int) -> list[str]:
    """The argv of *pid*; empty for one that is over and not yet reaped."""
    return _read(f"/proc/{pid}/cmdline").decode("utf-8", "replace").split("\0")[:-1]


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


class Tree:
    """Everything below this process.

    *servants* are the harness's own processes by pid, each with the role of its
    children, or with None when it has none to be killed.
    """

    def __init__(self, servants: dict[int, str | None], claude: str):
        self.servants, self.claude = servants, claude

    def living(self) -> dict[str, list[int]]:
        """The running processes by role; the harness's own are not among them."""
        found: dict[str, list[int]] = {}
        for pid in children(os.getpid()):
            if pid not in self.servants:
                self._add(pid, "keeper", found)
            elif (role := self.servants[pid]) is not None:
                for child in children(pid):
                    # Whoever has a keeper drives a postbox at this moment.
                    self._add(child, "driver" if children(child) else role, found)
        return found

    def _add(self, pid: int, role: str, found: dict[str, list[int]]) -> None:
        argv = words(pid)
        if argv:
            found.setdefault(self._role(argv, role), []).append(pid)
        for child in children(pid):
            self._add(child, "keeper", found)

    def _role(self, argv: list[str], otherwise: str) -> str:
        if any("carrier.wrapper" in word for word in argv):
            # The shell in front of it is no role of its own: it only waits.
            return "shell" if argv[0].endswith("sh") else "wrapper"
        return "carrier" if self.claude in argv else otherwise

    def below(self, pid: int) -> list[int]:
        """*pid* and all its descendants, parents first."""
        found = [pid]
        for child in children(pid):
            found += self.below(child)
        return found

    def bury(self) -> None:
        """Reap the adopted who are over; a servant's end is left to who started it."""
        for pid in children(os.getpid()):
            if pid not in self.servants:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    continue
