"""A session with its door, fake or real, as zdo's own modules find it and write to it."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from carrier.door import InboxDoor
from carrier.envelope import Envelope
from carrier.transcript import Follower, find_transcript
from registry.clock import Clock
from registry.processes import Processes
from registry.rows import key_of, read_rows
from tests.contract.rig import peers_in, transcript_in
from tests.contract.sessions import Json, eventually

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from carrier.calls import Answer
    from registry.rows import Row

SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """A session with its door, as zdo finds it in the registry."""

    config: Path
    row: Row

    @property
    def token(self) -> str:
        """What the key file gives."""
        token = key_of(str(self.config), self.row)
        assert token is not None
        return token

    def rows(self) -> list[Json]:
        """The session's transcript so far."""
        return transcript_in(self.config, self.row.session_id)

    def peers(self) -> list[Json]:
        """The origin of every peer line in the model's input, oldest first."""
        return peers_in(self.rows())

    def surfaced(self, msg_id: str) -> Json:
        """The origin under which *msg_id* surfaced, once it has."""

        def look() -> Json | None:
            return next((peer for peer in self.peers() if peer.get("msg_id") == msg_id), None)

        return eventually("the line surfaces", look)

    def letter(self, **changes: Any) -> Envelope:
        """An envelope for this session; every one has a line of its own."""
        made = {
            "delivery_id": str(uuid.uuid4()),
            "msg_id": str(uuid.uuid4()),
            "attempt": 1,
            "nonce": "n",
            "sender": "anonymous",
            "line": f"through the door {uuid.uuid4()}",
            "target_id": "t",
            "session_id": self.row.session_id,
            "pid": self.row.pid,
            "postbox": str(uuid.uuid4()),
            "claude_dir": str(self.config),
            "settle_s": SETTLE_S,
        }
        return Envelope(**{**made, **changes})

    def write(self, letter: Envelope, token: str | None = None) -> Answer:
        """Write *letter* as the wrapper does, with the right token unless one is given."""
        return self.write_all([letter], token)[letter.msg_id]

    def write_all(
        self, letters: Sequence[Envelope], token: str | None = None, *, address: int | None = None
    ) -> dict[str, Answer]:
        """Write *letters* in one go; *address* names the reply socket, as another pid would."""
        clock = Clock()
        pid = address or os.getpid()
        door = InboxDoor(clock, deadline=clock.monotonic() + 15, uid=os.getuid(), pid=pid)
        lines = {letter.msg_id: letter.line for letter in letters}
        session = self.row.session_id

        def find() -> str | None:
            return find_transcript(str(self.config), session, self.row.cwd)

        path = find()
        offset = os.stat(path).st_size if path else 0
        follower = Follower(path, offset, lines, session, find=find)

        def look() -> dict[str, str]:
            follower.look()
            return follower.states

        assert door.speak(self.row, token or self.token, letters) is None
        return door.listen(look)

    def say(self, raw: bytes) -> bytes:
        """Write *raw*, half-close, and read to EOF: all that came back."""
        with socket.socket(socket.AF_UNIX) as conn:
            conn.settimeout(5)
            conn.connect(self.row.socket)
            conn.sendall(raw)
            conn.shutdown(socket.SHUT_WR)
            return conn.recv(64)


def place_of(config: Path, pid: int) -> Place:
    """The session of *pid*, read from the registry by zdo's own reader."""

    def look() -> Row | None:
        rows = read_rows(str(config), Processes()).rows
        return next((row for row in rows if row.pid == pid), None)

    return Place(config, eventually(f"a row of {pid}", look))
