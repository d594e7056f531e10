"""Many fake sessions for the price of one interpreter: each a forked process with its own door.

A door takes every line, writes it down at once, and lets it surface in its transcript
after a random while, in order; a forgetful one lets a share of them never surface.
Nothing is dropped, held or recognised: what comes twice is there twice.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Self

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dispatch.rig.peers import peer_of, pid_domain, start_of
from dispatch.rig.transcript import Transcript, write_file
from tests.torture.luck import luck

CWD = "/home/u/w"

# How long until a line surfaces: chance, the least and the most seconds, busy or idle.
PACES = (
    (0.70, 0.0, 0.01, False),
    (0.20, 0.03, 0.30, False),
    (0.10, 0.02, 0.20, True),
)
LONGEST_EOF_S = 0.015


class Session:
    """One session process and its door."""

    def __init__(self, told: dict[str, Any], name: str):
        config, base = told["config"], told["base"]
        socks, self.record = f"{base}/cc-socks", f"{base}/{name}.jsonl"
        self.pid, self.session_id, self.name = os.getpid(), told["sessions"][name], name
        self.forgets: float = told["forgets"]
        self.random = luck(os.getpid())
        self.transcript = Transcript(config, self.session_id, CWD)
        self.path = f"{socks}/{self.pid}.sock"
        self.heard: dict[socket.socket, bytes] = {}
        self.due: list[tuple[float, Any]] = []
        self.last = 0.0  # when the latest line will have surfaced
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o700)
        self.listener.listen(64)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        write_file(f"{config}/sessions/{self.pid}.json", json.dumps(self.row()), 0o644)

    def row(self) -> dict[str, Any]:
        """The row that Claude Code would write."""
        born = int(time.time() * 1000)
        return {
            "pid": self.pid, "sessionId": self.session_id, "cwd": CWD, "startedAt": born,
            "procStart": start_of(self.pid), "version": "2.1.332", "peerProtocol": 1,
            "kind": "interactive", "entrypoint": "cli", "pidDomain": pid_domain(),
            "messagingSocketPath": self.path, "name": self.name, "nameSource": "derived",
            "status": "idle", "updatedAt": born, "statusUpdatedAt": born,
        }  # fmt: skip

    def serve(self) -> None:
        """Until a signal ends it."""
        while True:
            now = time.monotonic()
            ready, self.due = _split(self.due, now)
            for _, act in ready:
                act()
            soonest = min((at for at, _ in self.due), default=now + 60)
            for key, _ in self.selector.select(max(soonest - time.monotonic(), 0)):
                if key.fileobj is self.listener:
                    conn, _ = self.listener.accept()
                    self.heard[conn] = b""
                    self.selector.register(conn, selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket):
                    self.hear(key.fileobj)

    def hear(self, conn: socket.socket) -> None:
        """Take what came, line by line; close a while after the end."""
        try:
            part = conn.recv(1 << 16)
        except OSError:
            part = b""
        *lines, self.heard[conn] = (self.heard[conn] + part).split(b"\n")
        for line in lines:
            self.take(line, conn)
        if not part:
            del self.heard[conn]
            self.selector.unregister(conn)
            self.later(self.random.uniform(0, LONGEST_EOF_S), conn.close)

    def take(self, line: bytes, conn: socket.socket) -> None:
        """Write down a user frame, and let its line surface later."""
        frame = json.loads(line)
        if frame.get("type") != "user" or frame.get("session_id") != self.session_id:
            return
        text, peer = frame["message"]["content"], peer_of(conn)[0]
        entry = {"msg_id": frame["msg_id"], "text": text, "peer": peer, "at": time.monotonic()}
        _append(self.record, json.dumps(entry))
        origin = {"kind": "peer", "from": frame["from"], "verifiedPeerPid": peer}
        origin |= {"msg_id": frame["msg_id"]}
        if self.random.random() < self.forgets:
            return
        weights = [pace[0] for pace in PACES]
        _, least, most, busy = self.random.choices(PACES, weights)[0]
        if busy:
            self.transcript.queue("enqueue", content=text)
        # A session takes its queue in order, however long each line lies there.
        self.last = max(self.last, time.monotonic() + self.random.uniform(least, most))
        self.due.append((self.last, lambda: self.surface(text, origin, busy=busy)))

    def surface(self, text: str, origin: dict[str, Any], *, busy: bool) -> None:
        """The rows of one line in the model's input."""
        if busy:
            ids = (str(uuid.uuid4()), str(uuid.uuid4()))
            self.transcript.remove(text, ids)
            self.transcript.attach(text, origin, ids)
        else:
            self.transcript.queue("enqueue", content=text)
            self.transcript.queue("dequeue")
            self.transcript.surface(text, origin)

    def later(self, seconds: float, act: Any) -> None:
        """Do *act* after *seconds*."""
        self.due.append((time.monotonic() + seconds, act))


def _split(due: list[tuple[float, Any]], now: float) -> tuple[list[Any], list[Any]]:
    ready = sorted((task for task in due if task[0] <= now), key=lambda task: task[0])
    return ready, [task for task in due if task[0] > now]


def _append(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


class Doors:
    """Running sessions, one for each of *sessions* (name to id); a context manager."""

    def __init__(self, config: str, sessions: dict[str, str], forgets: float = 0.0):
        self.base = tempfile.mkdtemp(prefix="zdo-doors-", dir="/tmp")
        self.config, self.sessions, self.forgets = config, sessions, forgets

    def __enter__(self) -> Self:
        os.makedirs(f"{self.config}/sessions", 0o700, exist_ok=True)
        os.mkdir(f"{self.base}/cc-socks", 0o700)
        told = json.dumps(
            {
                "config": self.config,
                "base": self.base,
                "sessions": self.sessions,
                "forgets": self.forgets,
            }
        )
        argv = [sys.executable, "-S", __file__, told]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True)
        if self.process.stdout is None or self.process.stdout.readline() != "ready\n":
            raise AssertionError("the fake sessions did not start")
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(10)
        for path in Path(self.base).rglob("*"):
            if not path.is_dir():
                path.unlink(missing_ok=True)
        os.rmdir(f"{self.base}/cc-socks")
        os.rmdir(self.base)

    def taken(self, name: str) -> list[dict[str, Any]]:
        """What came to the session *name*, in order."""
        try:
            with open(f"{self.base}/{name}.jsonl", encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def all_taken(self) -> dict[str, list[dict[str, Any]]]:
        """What came, by session."""
        return {name: self.taken(name) for name in self.sessions}


def main() -> None:
    """Fork the sessions that argv tells, and end them when stdin ends."""
    told = json.loads(sys.argv[1])
    ready, tell = os.pipe()
    pids = []
    for name in told["sessions"]:
        pid = os.fork()
        if pid == 0:
            os.close(0)
            session = Session(told, name)
            os.write(tell, b".")
            session.serve()
        pids.append(pid)
    heard = 0
    while heard < len(pids):
        heard += len(os.read(ready, len(pids)))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.read(0, 64):
        pass
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
