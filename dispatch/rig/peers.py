"""What the kernel knows: a process's start and parents, its name space, who is at the other end."""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Any


def start_of(pid: int) -> str:
    """Field 22 of the process's stat, "" where there is no such file."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def pid_domain() -> str | None:
    """The pid name space as a row spells it; None where this machine has none."""
    try:
        with open("/etc/machine-id", encoding="ascii") as file:
            return f"linux:{file.read().strip()}:{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def ancestry(pid: int) -> list[dict[str, Any]]:
    """*pid* and its parents, nearest first, each with its argv."""
    line = []
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                argv = file.read().decode("utf-8", "replace").split("\0")[:-1]
        except (OSError, IndexError):
            break
        line.append({"pid": pid, "argv": argv})
        pid = parent
    return line


def peer_of(conn: socket.socket) -> tuple[int, int | None]:
    """Pid and user at the other end; macOS tells the pid alone."""
    if sys.platform == "darwin":
        return struct.unpack("i", conn.getsockopt(0, 2, 4))[0], None
    pid, uid, _ = struct.unpack("3i", conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, uid
