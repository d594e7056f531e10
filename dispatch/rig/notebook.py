"""What a fake `claude` writes down: how it was started, and what it did."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any


def record(me: str, event: str, **more: Any) -> None:
    """One line of the log of the program *me*; whole, also beside other writers."""
    entry = {"event": event, "pid": os.getpid(), "at": time.time(), **more}
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    fd = os.open(me + ".log.jsonl", flags, 0o600)
    os.write(fd, json.dumps(entry).encode() + b"\n")
    os.close(fd)


def open_files() -> dict[str, str]:
    """What every open descriptor is; the one of the listing itself is closed again."""
    found = {}
    for number in os.listdir("/dev/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            try:
                found[number] = str(os.fstat(int(number)).st_ino)
            except OSError:
                continue
    return found


def ancestors() -> list[int]:
    """The pids above this one, as far as /proc tells."""
    found, pid = [], os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def ignored() -> list[int]:
    """The signals that this process was started to ignore, by number."""
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGQUIT)
    return [int(number) for number in numbers if signal.getsignal(number) == signal.SIG_IGN]


def stdin() -> str | None:
    """All of stdin; None when it stays open and silent, as the real one waits 3 s."""
    if not select.select([0], [], [], 3.0)[0]:
        return None
    return os.read(0, 1 << 16).decode("utf-8", "replace")
