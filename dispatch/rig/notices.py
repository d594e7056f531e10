"""How a fake session tells a sender what became of a line: on a connection of its own."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from typing import TYPE_CHECKING, Any

from dispatch.rig.peers import peer_of
from dispatch.rig.script import FRESH_S, HANG_UP_S, REASONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from dispatch.rig.caller import Caller


class Drops:
    """The drops of one kind that one sender is told of: the first at once, the others in a sum."""

    def __init__(self) -> None:
        self.told_at: float | None = None
        self.unsaid: list[str] = []


class Notices:
    """What the session at *path* tells; *later* does a thing after some seconds."""

    def __init__(
        self,
        path: str,
        later: Callable[[float | None, Callable[[], object]], None],
        note: Callable[[str, dict[str, Any]], None],
    ):
        self.path, self._later, self._note = path, later, note
        self._told: list[tuple[socket.socket, dict[str, Any], float]] = []
        self._drops: dict[tuple[str, str], Drops] = {}  # by sender and reason

    def drop(self, frame: dict[str, Any], caller: Caller, why: str, sum_after: float) -> None:
        """One notice for the first drop; the others wait for a sum, in the last one's name."""
        drops = self._drops.setdefault((str(frame.get("from", "")), why), Drops())
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
            self._later(sum_after, sum_up)

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
        self._told.append((conn, notice, time.monotonic() + HANG_UP_S))

    def see_who_hung_up(self, now: float) -> None:
        """Record each notice that was taken, or that nobody took in time."""
        for each in list(self._told):
            conn, notice, until = each
            try:
                hung_up = conn.recv(1) == b""
            except BlockingIOError:
                if now < until:
                    continue
                hung_up = False
            except OSError:
                hung_up = True
            self._told.remove(each)
            conn.close()
            self._note("notice", {"notice": notice, "hung_up": hung_up})
