"""Processes as the kernel knows them: alive, since when, in which domain.  An edge.

A pid alone names nobody: numbers come round again.  Pid and start time together do.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from registry.surroundings import Seen

# Positions in /proc/<pid>/stat after the name in brackets (proc(5): fields 3 and 22).
_STATE: Final = 0
_START: Final = 19
_DEAD: Final = (b"Z", b"X", b"x")
_STAT_BYTES: Final = 4096
_PS_SECONDS: Final = 5.0
_LARGEST_PID: Final = (1 << 31) - 1


class Processes:
    """What this machine knows about processes; tests hand in their own subclass."""

    def __init__(self, platform: str = sys.platform, proc: str = "/proc", etc: str = "/etc"):
        # Where /proc is hidden, every process would look ended: ps is asked instead.
        self._linux = platform == "linux" and os.path.lexists(proc + "/self")
        self._proc, self._etc = proc, etc
        self._domain: str | None = None
        self._ps_hangs = False  # one that took too long once is not waited for again

    def start_token(self, pid: int) -> str | None:
        """When *pid* started, as text that only equals itself; None when it does not run."""
        if not 0 < pid <= _LARGEST_PID:
            return None
        if self._linux:
            return _start_by_proc(f"{self._proc}/{pid}/stat")
        if not _runs(pid):
            return None
        if self._ps_hangs:
            return ""
        try:
            return _start_by_ps(pid)
        except TimeoutError:
            self._ps_hangs = True
            return ""

    def domain(self) -> str | None:
        """The pid name space in Claude Code's spelling (CONTRACT e); None where unknown."""
        if self._domain is None and self._linux:
            self._domain = _domain(self._etc + "/machine-id", self._proc + "/self/ns/pid")
        return self._domain

    def comparable(self) -> bool:
        """Whether a row's `procStart` is in the same spelling as `start_token`."""
        return self._linux

    def own_uid(self) -> int:
        """The user whose files and sockets are ours."""
        return os.geteuid()

    def see(self, wanted: Mapping[int, str], env: Mapping[str, str]) -> dict[int, Seen]:
        """What is to be seen of each process of *wanted*, a pid with its start token or ''."""
        from registry.surroundings import see

        return see(wanted, linux=self._linux, proc=self._proc, env=env)


def _start_by_proc(path: str) -> str | None:
    fields = stat_fields(path)
    return None if fields is None else fields[_START].decode("ascii", "replace")


def stat_fields(path: str) -> list[bytes] | None:
    """The fields after the name in a `/proc/<pid>/stat`; None when it does not run."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None  # not there, or hidden from us; anything else is no answer
    try:
        stat = os.read(fd, _STAT_BYTES)
    except OSError:
        return None  # it ended between the open and the read
    finally:
        os.close(fd)
    # The name may hold blanks and brackets, so the fields are counted from its last bracket.
    after = stat.rpartition(b")")[2].split()
    if len(after) <= _START or after[_STATE] in _DEAD:
        return None
    return after


def _domain(machine_id: str, name_space: str) -> str | None:
    try:
        fd = os.open(machine_id, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            machine = os.read(fd, _STAT_BYTES).decode("ascii", "replace").strip()
        finally:
            os.close(fd)
        return f"linux:{machine}:{os.readlink(name_space)}" if machine else None
    except OSError:
        return None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's, and alive
    return True


def _start_by_ps(pid: int) -> str | None:
    """The start time that `ps` prints, empty when it does not say; None for a zombie.

    TimeoutError when it hangs.
    """
    import subprocess

    # One -o for each: after `=` some take the rest of the argument as the heading.
    command = ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)]
    quiet = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        shown = subprocess.run(  # noqa: S603 - a fixed argv
            command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_PS_SECONDS, check=False,
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    except OSError:
        return ""
    state, _, start = shown.decode("ascii", "replace").strip().partition(" ")
    return None if state.startswith("Z") else " ".join(start.split())
