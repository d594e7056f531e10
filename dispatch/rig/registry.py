"""A folder of rows as Claude Code 2.1.332 writes it: valid by construction, damaged on request.

Rows are made for processes that really run, with their true start time and the true
pid name space, so that what is under test may ask the kernel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Self

from dispatch.rig.damage import DAMAGES
from dispatch.rig.rows import FakeSession, as_json, row_for, write, write_row
from registry.processes import Processes

if TYPE_CHECKING:
    from types import TracebackType


class Strangers(Processes):
    """A machine on which every file belongs to somebody else."""

    def own_uid(self) -> int:
        """Answer with a user that owns nothing here."""
        return os.geteuid() + 1


class FakeRegistry:
    """`<root>/.claude` with its rows, a short folder of sockets, and living processes."""

    def __init__(self, root: str, processes: Processes | None = None):
        self.claude_dir = root + "/.claude"
        self.sessions = self.claude_dir + "/sessions"
        self.processes = processes or Processes()
        os.makedirs(self.sessions, 0o700, exist_ok=True)
        # A path of more than 107 bytes cannot be bound, and test folders are deep.
        self.base = tempfile.mkdtemp(prefix="cc", dir="/tmp")
        self.sockets = self.base + "/cc-socks"
        os.mkdir(self.sockets, 0o700)
        self._sleepers: list[subprocess.Popen[bytes]] = []
        self._listeners: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what was started and remove the sockets; the rows stay."""
        for listener in self._listeners:
            listener.close()
        for sleeper in self._sleepers:
            sleeper.kill()
            sleeper.wait()
        shutil.rmtree(self.base, ignore_errors=True)

    def sleeper(self) -> int:
        """The pid of a process that runs until the end of the test."""
        self._sleepers.append(subprocess.Popen(["/bin/sleep", "600"], stdin=subprocess.DEVNULL))
        return self._sleepers[-1].pid

    def ended(self) -> int:
        """A pid that ran a moment ago and does not any more."""
        done = subprocess.Popen([sys.executable, "-IS", "-c", "pass"])
        done.wait()
        return done.pid

    def add(
        self,
        pid: int | None = None,
        *,
        damage: str | None = None,
        door: str | None = None,
        drop: tuple[str, ...] = (),
        **fields: Any,
    ) -> FakeSession:
        """Write a row, its key and its listening socket, with *damage* if one is named.

        *door* is a socket that somebody else serves; *fields* replace what Claude
        Code would write, *drop* leaves fields out.
        """
        pid = pid or self.sleeper()
        path = door or f"{self.sockets}/{pid}.sock"
        row = row_for(pid, path, self.processes) | fields
        row = {name: value for name, value in row.items() if name not in drop}
        listener = None if door else self._listen(path)
        token = hashlib.sha256(f"{pid} {path}".encode()).hexdigest()[:32]
        self.write_key(pid, path, token)
        session = FakeSession(row, f"{self.sessions}/{pid}.json", listener, token)
        write_row(session.file, row)
        if damage is not None:
            DAMAGES[damage](session)
        return session

    def write_key(self, pid: int, path: str, token: str, **fields: Any) -> str:
        """Write the key file for the socket *path*; its own path."""
        digest = hashlib.sha256(path.encode()).hexdigest()
        file = f"{self.sessions}/{pid}.{digest}.key"
        key = {
            "peerToken": token,
            "procStart": self.processes.start_token(pid) or "1",
            "pidDomain": self.processes.domain(),
        }
        write(file, as_json(key | fields), 0o600)
        return file

    def _listen(self, path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listeners.append(listener)
        listener.bind(path)
        os.chmod(path, 0o700)
        listener.listen(16)
        return listener
