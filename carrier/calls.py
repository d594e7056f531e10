"""One call at a door: the frames of one session on one connection, and how far each came.

What the kernel took of a frame may be in; a frame of which it took nothing is not,
and never will be once the connection is closed.
"""

from __future__ import annotations

# The socket module costs 8 ms of start-up, nearly a bare interpreter; its C core 0.5 ms.
import _socket
import json

from carrier.notices import SETTLED
from carrier.proof import TARGET_NOT_RUNNING, WRAPPER_TROUBLE
from carrier.transcript import NONE, SURFACED
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from carrier.envelope import Envelope
    from carrier.notices import Ear
    from carrier.proof import Notice

_PART = 1 << 16


class Answer(Record):
    """What one visit to the door gave for one line."""

    wrote: bool
    eof: bool
    found: str | None = None
    detail: str | None = None
    notices: tuple[Notice, ...] = ()
    reply: str | None = None


def untouched(found: str, detail: str) -> Answer:
    """The answer for a line of which no byte reached the door."""
    return Answer(wrote=False, eof=False, found=found, detail=detail)


class Call:
    """One connection *conn*; *frames* has each line's bytes by its msg_id, *auth* goes before."""

    def __init__(self, conn: _socket.socket, ear: Ear, auth: bytes, frames: Mapping[str, bytes]):
        self.conn = conn
        self.until = 0.0  # when the door has had its time, for pushing, and then for reading
        self.drops_until = 0.0  # so long the target may still tell of drops, in one sum
        self._ear = ear
        self._speech = memoryview(b"".join((auth, *frames.values())))
        self._starts: dict[str, int] = {}
        self._sent, start = 0, len(auth)
        self._eof = self.is_over = False  # read to the end; that, or closed before
        for msg_id, frame in frames.items():
            self._starts[msg_id] = start
            start += len(frame)

    def go_on(self) -> bool:
        """Push, half-close, read, as far as it goes without waiting; whether all is pushed now.

        Killed in the middle, lines may be in.
        """
        pushed = False
        try:
            while self._sent < len(self._speech):
                self._sent += self.conn.send(self._speech[self._sent :])
                pushed = self._sent == len(self._speech)
                if pushed:
                    self.conn.shutdown(_socket.SHUT_WR)
            self._eof = self.is_over = not self.conn.recv(_PART)
        except BlockingIOError:
            pass
        except OSError:
            self.is_over = True  # closed, perhaps with our bytes unread
        return pushed

    def waits(self, now: float) -> bool:
        """Whether the door has neither read to the end nor closed, and still has time."""
        return not self.is_over and now < self.until

    def pushes(self) -> bool:
        """Whether bytes are left that the kernel has not taken."""
        return self._sent < len(self._speech)

    def written(self) -> list[str]:
        """The msg_ids of the lines that may be in."""
        return [msg_id for msg_id, start in self._starts.items() if start < self._sent]

    def note_drops(self, until: float) -> None:
        """Listen *until* then for a sum, once, from the first notice of a drop on."""
        told = self._ear.notices
        if not self.drops_until and any(
            notice.status == "dropped" for msg_id in self._starts for notice in told[msg_id]
        ):
            self.drops_until = until

    def listens_until(self, states: Mapping[str, str], window: float) -> float:
        """How long anything is to be heard of these lines; *window* is the end of the usual wait.

        Nothing follows for a line in the model's input or with a final notice.
        """
        told = self._ear.notices
        left = [
            msg_id
            for msg_id in self.written()
            if states.get(msg_id) != SURFACED and SETTLED.isdisjoint(n.status for n in told[msg_id])
        ]
        if not left:
            return 0.0
        # A line of which nothing is known may be in the sum; one that is enqueued is not.
        unknown = any(states.get(msg_id, NONE) == NONE and not told[msg_id] for msg_id in left)
        return max(window, self.drops_until) if unknown else window

    def answers(self) -> dict[str, Answer]:
        """What is known of each line, in their order."""
        return {msg_id: self._answer(msg_id, start) for msg_id, start in self._starts.items()}

    def _answer(self, msg_id: str, start: int) -> Answer:
        if self._sent > start:
            return Answer(
                wrote=True,
                eof=self._eof,
                detail=None if self._eof else "the door did not read to the end",
                notices=tuple(self._ear.notices[msg_id]),
                reply=self._ear.path,
            )
        if self.is_over:
            return untouched(TARGET_NOT_RUNNING, "the door closed before the line")
        return untouched(WRAPPER_TROUBLE, "the door stopped reading before the line")


def auth_line(token: str | None) -> bytes:
    """The first line; none without a token, which the door accepts (CONTRACT f)."""
    return b"" if token is None else json.dumps({"type": "auth", "token": token}).encode() + b"\n"


def user_line(envelope: Envelope, reply: str) -> bytes:
    """The line's own frame, pinned to the session it is for.

    ASCII, so that no character of the line can be taken for the end of the frame.
    """
    frame = {
        "type": "user",
        "msgV": 1,
        "msg_id": envelope.msg_id,
        "from": f"uds:{reply}",
        "session_id": envelope.session_id,
        "priority": "next",
        "message": {"role": "user", "content": envelope.line},
    }
    return json.dumps(frame).encode() + b"\n"
