"""A process written down by pid and start time, so that no other is ever taken for it."""

from __future__ import annotations

import os

from registry.durable import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from registry.processes import Processes

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def write_down(path: str, pid: int, processes: Processes) -> None:
    """Name *pid* in the file at *path*; killed in the middle, it names nobody."""
    token = processes.start_token(pid) or ""
    fd = os.open(path, _FLAGS, 0o600)
    try:
        os.write(fd, f"{pid} {token}".encode())
    finally:
        os.close(fd)


def still_runs(path: str, processes: Processes) -> int | None:
    """The process that the file at *path* names, if it is the same one and runs."""
    try:
        number, _, token = read_plain(path).decode("ascii").partition(" ")
        pid = int(number)
    except (OSError, ValueError):
        return None
    return pid if pid > 1 and token and processes.start_token(pid) == token else None
