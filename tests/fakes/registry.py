"""A folder of rows as Claude Code 2.1.332 writes it: valid by construction, damaged on request.

Rows are made for processes that really run, with their true start time and the true
pid name space, so that what is under test may ask the kernel.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, Self

from registry.ids import new_uuid
from registry.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

VERSION = "2.1.332"
_FEATURES = ["notify_idle", "reply_across_default_dirs", "artifact_yield"]
_BORN_MS = 1_796_048_620_517


class Strangers(Processes):
    """A machine on which every file belongs to somebody else."""

    def own_uid(self) -> int:
        """Answer with a user that owns nothing here."""
        return os.geteuid() + 1


class FakeSession:
    """What stands on disk for one session, and the listener behind it if there is one."""

    def __init__(self, row: dict[str, Any], file: str, listener: socket.socket | None, token: str):
        self.row, self.file, self.listener, self.token = row, file, listener, token

    @property
    def pid(self) -> int:
        """The process that the row is for."""
        return int(os.path.basename(self.file).removesuffix(".json"))

    @property
    def session_id(self) -> str:
        """The id in the row."""
        return str(self.row["sessionId"])

    @property
    def socket(self) -> str:
        """The path of the inbox socket."""
        return str(self.row["messagingSocketPath"])


class FakeRegistry:
    """`<root>/.claude` with its rows, a short folder of sockets, and living processes."""

    def __init__(self, root: str, processes: Processes | None = None):
        self.claude_dir = root + "/.claude"
        self.sessions = self.claude_dir + "/sessions"
        self.processes = processes or Processes()
        os.makedirs(self.sessions, 0o700)
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
        self._sleepers.append(subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL))
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
        _write(file, _json(key | fields), 0o600)
        return file

    def _listen(self, path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listeners.append(listener)
        listener.bind(path)
        os.chmod(path, 0o700)
        listener.listen(16)
        return listener


def row_for(pid: int, path: str, processes: Processes) -> dict[str, Any]:
    """The row of *pid* with its door at *path*, field by field in Claude Code's order."""
    return {
        "pid": pid,
        "sessionId": new_uuid(),
        "cwd": "/home/u/fable",
        "startedAt": _BORN_MS,
        "procStart": processes.start_token(pid) or "1",
        "version": VERSION,
        "peerProtocol": 1,
        "peerFeatures": list(_FEATURES),
        "kind": "interactive",
        "entrypoint": "cli",
        "pidDomain": processes.domain(),
        "asksForConvertedSkills": None,
        "messagingSocketPath": path,
        "name": f"fable-{pid % 256:02x}",
        "nameSource": "derived",
        "nameSince": _BORN_MS,
        "status": "idle",
        "updatedAt": _BORN_MS,
        "statusUpdatedAt": _BORN_MS,
    }


def write_row(file: str, row: Mapping[str, Any]) -> None:
    """Write *row* in place, as Claude Code does."""
    _write(file, _json(row), 0o644)


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _write(file: str, content: bytes, mode: int) -> None:
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def _rewritten(**changes: Any) -> Callable[[FakeSession], None]:
    return lambda session: write_row(session.file, session.row | changes)


def _torn(session: FakeSession) -> None:
    os.truncate(session.file, os.path.getsize(session.file) // 2)


def _too_large(session: FakeSession) -> None:
    write_row(session.file, session.row | {"cwd": "/" + "x" * (1 << 19)})


def _not_a_file(session: FakeSession) -> None:
    os.unlink(session.file)
    os.mkfifo(session.file)


def _unreadable(session: FakeSession) -> None:
    os.unlink(session.file)
    # A plain file by its mode, whose first byte nobody can read, not even root.
    os.symlink("/proc/self/mem", session.file)


def _no_socket(session: FakeSession) -> None:
    os.unlink(session.socket)


def _not_a_socket(session: FakeSession) -> None:
    real = session.socket + ".real"
    os.rename(session.socket, real)
    os.symlink(real, session.socket)


def _refused(session: FakeSession) -> None:
    if session.listener is not None:
        session.listener.close()


def _no_process(session: FakeSession) -> None:
    os.kill(session.pid, 9)
    os.waitid(os.P_PID, session.pid, os.WEXITED | os.WNOWAIT)


# One for each word of REASONS that stands on disk; `foreign-owner` is a matter of Strangers.
DAMAGES: dict[str, Callable[[FakeSession], None]] = {
    "not-a-file": _not_a_file,
    "too-large": _too_large,
    "unreadable": _unreadable,
    "torn": _torn,
    "name-mismatch": _rewritten(pid=1),
    "no-session-id": _rewritten(sessionId=None),
    "parked": _rewritten(parkedJobId="job-1"),
    "foreign-domain": _rewritten(pidDomain="linux:another-machine:pid:[1]"),
    "no-process": _no_process,
    "no-start-time": _rewritten(procStart=None),
    "recycled": _rewritten(procStart="1"),
    "no-socket": _no_socket,
    "not-a-socket": _not_a_socket,
    "refused": _refused,
}
