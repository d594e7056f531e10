"""Who writes to a fake door: one connection, what came, and what a sender may still write."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from dispatch.rig.peers import ancestry, peer_of
from dispatch.rig.script import IDLE_S, LONGEST_FRAME, REFILL_S, SAME_TEXT_S

if TYPE_CHECKING:
    import socket

    from dispatch.rig.session import Session


class Allowance:
    """What one sender may still write: *burst* lines, and one more every two seconds."""

    def __init__(self, burst: int) -> None:
        self.burst = float(burst)
        self.left, self.at = self.burst, time.monotonic()
        self.texts: dict[str, float] = {}

    def refused(self, text: str) -> str | None:
        """Why *text* is dropped now; one that is taken costs a line, a duplicate does not."""
        now = time.monotonic()
        self.left = min(self.left + (now - self.at) / REFILL_S, self.burst)
        self.at = now
        if self.left < 1:
            return "rate-limited"
        if now - self.texts.get(text, -SAME_TEXT_S) < SAME_TEXT_S:
            return "duplicate"
        self.left -= 1
        self.texts[text] = now
        return None


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
        self.record["fates"].append(self.session.inbox.take(frame, self))
