"""A session that is none: row, key, socket and transcript of a fake Claude Code process.

As a program it registers itself and answers its door by a script; as a module it is
`FakeDoor`, which starts that program.  It keeps the rules that were measured
(CONTRACT e, f) and records every connection.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any, Self

T = "388e03f6-0000-4000-8000-000000000001"
LONGEST_FRAME = 1_048_576
IDLE_S = 30.0
HANG_UP_S = 5.0
BURST, REFILL_S, SAME_TEXT_S = 30, 2.0, 30.0
SUM_S, FRESH_S = 4.9, 60.0
TICK_S = 0.01

# What a script may say, with what is done when it does not say it.
SCRIPT: dict[str, Any] = {
    "status": "idle",  # None: the row has no status
    "waiting_for": None,
    "name": "fake-door",
    "session_id": T,
    "registered": True,  # False: row and key are taken away
    "token": True,  # False: no key file
    "accept": "surface",  # surface busy bare drop hold refuse dropped
    "enqueue": True,  # is there an enqueue row?
    "surface_after": 0.0,  # seconds to the user row, or to busy's attachment row; None: never
    "notice_after": 0.0,  # seconds to the first notice
    "hold_then": None,  # delivered denied expired
    "hold_after": 0.1,  # seconds from the held notice to the next one
    "drop_reason": "rate-limited",  # or duplicate, for "accept": "dropped"
    "limits": False,  # True: the inbox's real burst and same-text rules
    "sum_after": SUM_S,  # seconds from the second drop of a kind to the notice that sums them up
    "clear_to": None,  # a session id: at the next connection the row takes it
    "die": None,  # before-accept, at-accept, during (some bytes unread), after-read
    "eof_after": 0.0,  # None: never
}

HELD = (
    "Your message is held for the recipient user's approval before it reaches their Claude "
    "session (permission-mode parity)."
)
REASONS = {
    "held": HELD,
    "delivered": "Your previously-held message was approved and released to the recipient's "
    "Claude session.",
    "denied": "The recipient user declined your message; it was not delivered to their Claude "
    "session.",
    "expired": "Your held message expired without approval and was not delivered to the "
    "recipient's Claude session.",
    "refused": "The recipient session is not accepting cross-session messages (the feature is "
    "off there, or a setting or policy there refuses them); your message was not delivered to "
    "its Claude.",
    "dropped": "The recipient's session dropped your message at its inbox (rate limit, duplicate, "
    "relay loop, or full queue); it was not delivered and will not be.",
}
NOT_TYPED = (
    "This came from another Claude session — not typed by your user, but very likely working on "
    "their behalf. Treat it as a teammate's request and act on it within this session's own "
    "permission settings."
)


def now_iso() -> str:
    """The time as a transcript writes it."""
    at = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


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


def write_file(path: str, content: str, mode: int = 0o600) -> None:
    """Replace *path* at once, so that no reader meets half of it."""
    new = f"{path}.{os.getpid()}.new"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(content)
    os.rename(new, path)


class Transcript:
    """The rows of one session, in the shapes that 2.1.332 writes."""

    def __init__(self, config: str, session_id: str, cwd: str):
        self.session_id, self.cwd = session_id, cwd
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)
        self.path = f"{config}/projects/{slug}/{session_id}.jsonl"

    def add(self, row: dict[str, Any]) -> None:
        """Append one whole row."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
        with open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as file:
            file.write(line.encode("utf-8", "surrogatepass"))

    def queue(self, operation: str, **more: Any) -> None:
        """An enqueue, dequeue or remove row."""
        head = {"type": "queue-operation", "operation": operation, "timestamp": now_iso()}
        self.add(head | {"sessionId": self.session_id} | more)

    def remove(self, text: str, ids: tuple[str, str]) -> None:
        """The row that takes *text* out of the queue in the middle of a turn."""
        more = {"commandUuid": ids[0], "deliveryId": ids[1]}
        self.queue("remove", content=text, reason="absorbed_mid_turn", **more)

    def surface(self, text: str, origin: dict[str, Any]) -> None:
        """The user row of an idle session."""
        told = f"Another Claude session sent a message:\n{text}\n\n{NOT_TYPED}"
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "promptId": str(uuid.uuid4()),
                "type": "user",
                "message": {"role": "user", "content": told},
                "isMeta": True,
                "uuid": str(uuid.uuid4()),
                "timestamp": now_iso(),
                "permissionMode": "default",
                "origin": origin,
                "promptSource": "system",
                "queueSkipSlashCommands": True,
                "sentAtMs": int(time.time() * 1000),
                "turnOrigin": "peer",
                "turnPosition": {"promptIndex": 0, "turnIndex": 0},
                "queueSkipAttachments": True,
            }
            | self._tail()
        )

    def attach(self, text: str, origin: dict[str, Any], ids: tuple[str, str]) -> None:
        """The attachment row of a busy session."""
        told = f"Another Claude session sent a message while you were working:\n{text}"
        reminder = f"<system-reminder>\n{told}\n\n{NOT_TYPED}\n</system-reminder>"
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "attachment": {
                    "type": "queued_command",
                    "prompt": text,
                    "source_uuid": ids[0],
                    "delivery_id": ids[1],
                    "commandMode": "prompt",
                    "origin": origin,
                    "timestamp": now_iso(),
                    "isMeta": True,
                },
                "type": "attachment",
                "uuid": str(uuid.uuid4()),
                "timestamp": now_iso(),
                "rendered": [{"content": reminder}],
                "renderedRole": "system",
                "session_id": self.session_id,
            }
            | self._tail()
        )

    def hold(self, text: str, origin: dict[str, Any]) -> None:
        """The row that tells the receiving user of a held line."""
        who = f"{origin.get('from')} [verified pid {origin['verifiedPeerPid']}]"
        told = (
            f"Held peer message — from {who}; preview: «{text}» — not delivered to Claude (1 held)."
        )
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "type": "system",
                "subtype": "informational",
                "content": told,
                "isMeta": False,
                "timestamp": now_iso(),
                "uuid": str(uuid.uuid4()),
                "level": "warning",
            }
            | self._tail()
        )

    def _tail(self) -> dict[str, Any]:
        return {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": "2.1.332",
            "gitBranch": "HEAD",
        }


class Allowance:
    """What one sender may still write: 30 lines, and one more every two seconds."""

    def __init__(self) -> None:
        self.left, self.at = float(BURST), time.monotonic()
        self.texts: dict[str, float] = {}

    def refused(self, text: str) -> str | None:
        """Why *text* is dropped now; one that is taken costs a line, a duplicate does not."""
        now = time.monotonic()
        self.left = min(self.left + (now - self.at) / REFILL_S, float(BURST))
        self.at = now
        if self.left < 1:
            return "rate-limited"
        if now - self.texts.get(text, -SAME_TEXT_S) < SAME_TEXT_S:
            return "duplicate"
        self.left -= 1
        self.texts[text] = now
        return None


class Drops:
    """The drops of one kind that one sender is told of: the first at once, the others in a sum."""

    def __init__(self) -> None:
        self.told_at: float | None = None
        self.unsaid: list[str] = []


class Caller:
    """One connection: what came, and what became of it."""

    def __init__(self, conn: socket.socket, session: Session):
        self.conn, self.session = conn, session
        self.pid, uid = peer_of(conn)
        self.buffer = b""
        self.quiet_until: float | None = time.monotonic() + IDLE_S
        self.record: dict[str, Any] = {
            "at": time.monotonic(),
            "frame_at": None,
            "peer_pid": self.pid,
            "peer_uid": uid,
            "ancestry": ancestry(self.pid),
            "auth": None,
            "frames": [],
            "fates": [],
            "bytes": 0,
        }

    def read(self) -> bool:
        """Take in what came; False when the connection is over."""
        dying = self.session.script["die"] == "during"
        try:
            part = self.conn.recv(4096 if dying else 1 << 18)
        except BlockingIOError:
            return True
        except OSError:
            part = b""
        self.record["bytes"] += len(part)
        if part and dying:
            self.session.die(self)
        if not part and self.buffer:
            self._frame(self.buffer)
        return bool(part) and self._split(part)

    def _split(self, part: bytes) -> bool:
        *lines, self.buffer = (self.buffer + part).split(b"\n")
        for line in (*lines, self.buffer):
            if len(line) > LONGEST_FRAME:
                self.record["fates"].append("too-long")
                return False
            if line is not self.buffer:
                self._frame(line)
        return True

    def _frame(self, line: bytes) -> None:
        at, self.quiet_until = time.monotonic(), None
        try:
            frame = json.loads(line.decode())
        except (ValueError, RecursionError):
            self.record["frames"].append(line.decode("utf-8", "replace"))
            self.record["fates"].append("malformed")
            return
        self.record["frames"].append(frame)
        if isinstance(frame, dict) and frame.get("type") == "auth":
            self.record["auth"] = frame.get("token")
            return
        self.record["frame_at"] = self.record["frame_at"] or at
        self.record["fates"].append(self.session.take(frame, self))


class Session:
    """The fake process: its row, its socket and its clockwork."""

    def __init__(self, options: argparse.Namespace):
        self.config, self.script_file, self.log = options.config, options.script, options.log
        self.cwd = options.cwd
        self.script = dict(SCRIPT)
        self.pid = os.getpid()
        self.path = f"{options.socks}/{self.pid}.sock"
        self.secret = secrets.token_hex(16)
        self.started = int(time.time() * 1000)
        self.callers: dict[int, Caller] = {}
        self.due: list[tuple[float, Any]] = []
        self.told: list[tuple[socket.socket, dict[str, Any], float]] = []
        self.kept: list[Caller] = []  # never hung up on
        self.allowances: dict[str, Allowance] = {}  # by sender
        self.drops: dict[tuple[str, str], Drops] = {}  # by sender and reason
        self.stamp: object = None
        digest = hashlib.sha256(self.path.encode()).hexdigest()
        self.row_file = f"{self.config}/sessions/{self.pid}.json"
        self.key_file = f"{self.config}/sessions/{self.pid}.{digest}.key"
        os.makedirs(f"{self.config}/sessions", mode=0o700, exist_ok=True)
        os.makedirs(options.socks, mode=0o700, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o700)
        self.listener.listen(64)
        self.listener.setblocking(False)

    # -- the row

    def reread(self) -> None:
        """Follow the script file; the row and the key follow the script."""
        found = os.stat(self.script_file)
        stamp = (found.st_ino, found.st_mtime_ns)
        if stamp == self.stamp:
            return
        self.stamp = stamp
        with open(self.script_file, encoding="utf-8") as file:
            told = json.load(file)
        serial = told.pop("serial", 0)
        unknown = told.keys() - SCRIPT.keys()
        if unknown:
            raise SystemExit(f"not in a script: {unknown}")
        self.script = SCRIPT | told
        self.register()
        write_file(f"{self.script_file}.seen", str(serial))

    def register(self) -> None:
        """Write row and key, or take them away."""
        wanted = {self.row_file: self.row(), self.key_file: self.key()}
        for path, content in wanted.items():
            if self.script["registered"] and content is not None:
                write_file(path, json.dumps(content, separators=(",", ":")), 0o644)
            elif os.path.exists(path):
                os.unlink(path)

    def row(self) -> dict[str, Any]:
        """The row in the shape that 2.1.332 writes."""
        now = int(time.time() * 1000)
        row = {
            "pid": self.pid,
            "sessionId": self.script["session_id"],
            "cwd": self.cwd,
            "startedAt": self.started,
            "procStart": start_of(self.pid),
            "version": "2.1.332",
            "peerProtocol": 1,
            "peerFeatures": ["notify_idle", "reply_across_default_dirs", "artifact_yield"],
            "kind": "interactive",
            "entrypoint": "cli",
            "pidDomain": pid_domain(),
            "asksForConvertedSkills": None,
            "messagingSocketPath": self.path,
            "name": self.script["name"],
            "nameSource": "derived",
            "nameSince": self.started,
            "status": self.script["status"],
            "updatedAt": now,
            "statusUpdatedAt": now,
            "waitingFor": self.script["waiting_for"],
        }
        absent = ("status", "waitingFor", "name", "pidDomain")
        return {name: value for name, value in row.items() if name not in absent or value}

    def key(self) -> dict[str, Any] | None:
        """The key file's content; None when there is to be none."""
        if not self.script["token"]:
            return None
        proof = {"procStart": start_of(self.pid), "pidDomain": pid_domain()}
        return {"peerToken": self.secret} | proof

    # -- the door

    def run(self) -> None:
        """Serve until stdin ends."""
        self.reread()
        ready = {"pid": self.pid, "socket": self.path, "row": self.row_file, "token": self.secret}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        while True:
            fds = [0, self.listener.fileno(), *self.callers]
            ready_fds, _, _ = select.select(fds, [], [], self._patience())
            if 0 in ready_fds and not os.read(0, 64):
                break
            self.reread()
            if self.listener.fileno() in ready_fds:
                self.accept()
            for fd in [fd for fd in ready_fds if fd in self.callers]:
                if not self.callers[fd].read():
                    self.hang_up(self.callers.pop(fd))
            self.tick()

    def _patience(self) -> float:
        soonest = min((at for at, _ in self.due), default=time.monotonic() + TICK_S)
        return max(0.0, min(TICK_S, soonest - time.monotonic()))

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        ready = [task for task in self.due if task[0] <= now]
        self.due = [task for task in self.due if task[0] > now]
        for _, act in sorted(ready, key=lambda task: task[0]):
            act()
        self._see_who_hung_up(now)
        for fd, caller in list(self.callers.items()):
            if caller.quiet_until is not None and caller.quiet_until <= now:
                self.hang_up(self.callers.pop(fd))

    def later(self, seconds: float | None, act: Any) -> None:
        """Do *act* after *seconds*; at once for 0, never for None."""
        if seconds == 0:
            act()
        elif seconds is not None:
            self.due.append((time.monotonic() + seconds, act))

    def accept(self) -> None:
        """Let the next caller in, unless the script says to die first."""
        if self.script["die"] == "before-accept":
            self.die(None)
        if self.script["clear_to"] is not None:
            self.script["session_id"] = self.script.pop("clear_to")
            self.script["clear_to"] = None
            self.register()
        conn, _ = self.listener.accept()
        conn.setblocking(False)
        caller = Caller(conn, self)
        self.callers[conn.fileno()] = caller
        if self.script["die"] == "at-accept":
            self.die(caller)

    def die(self, caller: Caller | None) -> None:
        """End like SIGKILL: row, key and socket stay behind."""
        if caller is not None:
            self.write_log(caller)
        os._exit(9)

    def hang_up(self, caller: Caller) -> None:
        """Close the connection when the script says so, and record it."""
        if self.script["die"] == "after-read":
            self.die(caller)
        self.write_log(caller)
        self.kept.append(caller)
        self.later(self.script["eof_after"], caller.conn.close)

    def write_log(self, caller: Caller) -> None:
        """The record of *caller*'s connection."""
        self.note("call", caller.record)

    def note(self, event: str, told: dict[str, Any]) -> None:
        """One line of the log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event} | told) + "\n")

    # -- the line

    def take(self, frame: Any, caller: Caller) -> str:
        """What becomes of *frame*: the word for the record."""
        text = _content(frame)
        if text is None:
            return "malformed"
        pin = frame.get("session_id")
        if pin is not None and pin != self.script["session_id"]:
            return "session-mismatch"
        own = any(step["pid"] == self.pid for step in caller.record["ancestry"])
        why = self._refused(frame, text)
        if why is not None:
            self._drop_and_tell(frame, caller, why)
            return "dropped"
        way = self.script["accept"]
        if own and way == "hold":
            way = "surface"
        origin = self._origin(frame, caller, own=own)
        getattr(self, f"_{way}")(frame, caller, text, origin)
        return str(way)

    def _refused(self, frame: dict[str, Any], text: str) -> str | None:
        # What is held or refused costs no allowance: only what goes in is counted.
        if not self.script["limits"] or self.script["accept"] in ("hold", "refuse"):
            return None
        return self.allowances.setdefault(str(frame.get("from", "")), Allowance()).refused(text)

    def _origin(self, frame: dict[str, Any], caller: Caller, *, own: bool) -> dict[str, Any]:
        origin: dict[str, Any] = {"kind": "peer"}
        if "from" in frame:
            origin["from"] = frame["from"]
        origin["verifiedPeerPid"] = caller.pid
        origin["verifiedPeerProcStart"] = start_of(caller.pid)
        if own:
            origin["selfSent"] = True
        if "msg_id" in frame:
            origin["msg_id"] = frame["msg_id"]
        if "from" in frame and caller.record["auth"] == self.secret:
            origin["verifiedLocal"] = True
        return origin

    def _transcript(self) -> Transcript:
        return Transcript(self.config, self.script["session_id"], self.cwd)

    def _enqueue(self, text: str) -> Transcript:
        transcript = self._transcript()
        if self.script["enqueue"]:
            transcript.queue("enqueue", content=text)
        return transcript

    def _surface(self, _frame: Any, _caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._enqueue(text)
        self.later(self.script["surface_after"], lambda: transcript.surface(text, origin))

    def _busy(self, _frame: Any, _caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._enqueue(text)
        ids = (str(uuid.uuid4()), str(uuid.uuid4()))

        def absorb() -> None:
            transcript.remove(text, ids)
            transcript.attach(text, origin, ids)

        self.later(self.script["surface_after"], absorb)

    def _bare(self, *_: Any) -> None:
        pass

    _drop = _bare

    def _hold(self, frame: Any, caller: Caller, text: str, origin: dict[str, Any]) -> None:
        transcript = self._transcript()

        def held() -> None:
            transcript.hold(text, origin)
            self.notify(frame, caller, status="held")
            self.later(self.script["hold_after"], settled)

        def settled() -> None:
            then = self.script["hold_then"]
            if then is not None:
                self.notify(frame, caller, status=then)
            if then == "delivered":
                transcript.surface(text, origin)

        self.later(self.script["notice_after"], held)

    def _refuse(self, frame: Any, caller: Caller, *_: Any) -> None:
        after = self.script["notice_after"]
        more = {"status": "expired", "status_detail": "refused"}
        self.later(after, lambda: self.notify(frame, caller, **more))

    def _dropped(self, frame: Any, caller: Caller, *_: Any) -> None:
        why = self.script["drop_reason"]
        self.later(self.script["notice_after"], lambda: self._drop_and_tell(frame, caller, why))

    def _drop_and_tell(self, frame: dict[str, Any], caller: Caller, why: str) -> None:
        """One notice for the first drop; the others wait for a sum, in the last one's name."""
        drops = self.drops.setdefault((str(frame.get("from", "")), why), Drops())
        now = time.monotonic()
        more = {"status": "dropped", "drop_reason": why}
        if drops.told_at is None or now - drops.told_at > FRESH_S:
            drops.told_at = now
            self.notify(frame, caller, **more, dropped_msg_ids=[])
            return
        drops.unsaid.append(str(frame.get("msg_id")))

        def sum_up() -> None:
            told, drops.unsaid = drops.unsaid, []
            drops.told_at = time.monotonic()
            self.notify(frame | {"msg_id": told[-1]}, caller, **more, dropped_msg_ids=told)

        if len(drops.unsaid) == 1:
            self.later(self.script["sum_after"], sum_up)

    def notify(self, frame: dict[str, Any], caller: Caller, **told: Any) -> None:
        """Tell the sender on a new connection, if it is the process that wrote."""
        address = str(frame.get("from", ""))
        path = address.removeprefix("uds:")
        in_place = os.path.basename(os.path.dirname(path)) == "cc-socks"
        if address == path or not in_place or "msg_id" not in frame:
            return
        notice = {"type": "control", "action": "peer_message_status"} | told
        notice["reason"] = REASONS[told.get("status_detail", told["status"])]
        notice |= {"from": f"uds:{self.path}", "orig_msg_id": frame["msg_id"], "msgV": 1}
        notice["msg_id"] = str(uuid.uuid4())
        conn = socket.socket(socket.AF_UNIX)
        conn.settimeout(1)
        try:
            conn.connect(path)
            if peer_of(conn)[0] != caller.pid:
                return
            conn.sendall(json.dumps(notice, separators=(",", ":")).encode() + b"\n")
            conn.shutdown(socket.SHUT_WR)
        except OSError:
            return
        conn.settimeout(0)
        self.told.append((conn, notice, time.monotonic() + HANG_UP_S))

    def _see_who_hung_up(self, now: float) -> None:
        for each in list(self.told):
            conn, notice, until = each
            try:
                hung_up = conn.recv(1) == b""
            except BlockingIOError:
                if now < until:
                    continue
                hung_up = False
            except OSError:
                hung_up = True
            self.told.remove(each)
            conn.close()
            self.note("notice", {"notice": notice, "hung_up": hung_up})


def _content(frame: Any) -> str | None:
    """The text of a user frame; None when the real door drops it as malformed."""
    if not isinstance(frame, dict) or frame.get("type") != "user":
        return None
    told = frame.get("message")
    text = told.get("content") if isinstance(told, dict) else None
    return text if isinstance(text, str) and text else None


class FakeDoor:
    """One fake session process; a context manager, its script changeable while it runs."""

    def __init__(
        self,
        config: str,
        *,
        socks: str | None = None,
        cwd: str = "/home/u/w",
        env: dict[str, str] | None = None,
        words: tuple[str, ...] = (),
        **script: Any,
    ):
        # What a look at the process finds; the session itself heeds neither.
        self.env, self.words = env, words
        # Socket paths are short by the kernel's rule; a test's own folder is not.
        self.base = tempfile.mkdtemp(prefix="zdo-door-", dir="/tmp")
        self.config, self.cwd, self.script = config, cwd, dict(script)
        self.socks = socks or f"{self.base}/cc-socks"
        self.script_file, self.log = f"{self.base}/script.json", f"{self.base}/log.jsonl"
        self.serial = 0

    def __enter__(self) -> Self:
        self._write_script()
        argv = [sys.executable, "-S", __file__, "--config", self.config, "--socks", self.socks]
        argv += ["--cwd", self.cwd, "--script", self.script_file, "--log", self.log]
        argv += ["--", *self.words] if self.words else []
        env = None if self.env is None else os.environ | self.env
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env)
        ready = self.process.stdout.readline() if self.process.stdout else ""
        if not ready:
            self._clean_up()
            raise AssertionError("the fake door did not start")
        told = json.loads(ready)
        self.pid, self.socket = int(told["pid"]), str(told["socket"])
        self.row_file, self.token = str(told["row"]), str(told["token"])
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up()
        for path in [self.row_file, self.socket]:
            if os.path.lexists(path):
                os.unlink(path)

    def _clean_up(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(5)
        # An ear may be taking its own socket away at this moment.
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def session_id(self) -> str:
        """The id that the script gives the session."""
        return str(self.script.get("session_id", T))

    @property
    def transcript(self) -> str:
        """The path of the session's transcript."""
        return Transcript(self.config, self.session_id, self.cwd).path

    def change(self, **script: Any) -> None:
        """Merge *script* into the script; returns when the process follows it."""
        self.script |= script
        self._write_script()
        self._wait(lambda: self._seen() == self.serial)

    def kill(self) -> None:
        """End it like SIGKILL does: row, key and socket stay."""
        self.process.kill()
        self.process.wait(5)

    def calls(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The recorded connections, once there are *at_least* so many."""
        self._wait(lambda: len(self._log("call")) >= at_least)
        return self._log("call")

    def notices(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The notices that were taken, each with `hung_up`, once there are *at_least* so many."""
        self._wait(lambda: len(self._log("notice")) >= at_least)
        return self._log("notice")

    def lines(self) -> list[str]:
        """The text of every user frame that came, wanted or not."""
        frames = [frame for call in self._log("call") for frame in call["frames"]]
        return [text for frame in frames if (text := _content(frame)) is not None]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the transcript."""
        try:
            with open(self.transcript, encoding="utf-8") as file:
                return [json.loads(line) for line in file.read().split("\n") if line]
        except FileNotFoundError:
            return []

    def _log(self, event: str) -> list[dict[str, Any]]:
        try:
            with open(self.log, encoding="utf-8") as file:
                told = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [each for each in told if each["event"] == event]

    def _seen(self) -> int:
        try:
            with open(f"{self.script_file}.seen", encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return -1

    def _write_script(self) -> None:
        self.serial += 1
        write_file(self.script_file, json.dumps(self.script | {"serial": self.serial}))

    def _wait(self, true: Any) -> None:
        until = time.monotonic() + 10
        while not true():
            if time.monotonic() > until:
                raise AssertionError("the fake door did not get that far")
            time.sleep(0.005)


def main() -> None:
    """Be a session until stdin ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("config", "socks", "script", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cwd", default="/home/u/w")
    parser.add_argument("words", nargs="*")
    session = Session(parser.parse_args())
    try:
        session.run()
    finally:
        for path in (session.row_file, session.key_file, session.path):
            if os.path.exists(path):
                os.unlink(path)


if __name__ == "__main__":
    main()
