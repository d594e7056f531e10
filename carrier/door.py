"""The door of a running session: one line in, once, and an ear for what comes back.

The door never says yes (CONTRACT f): EOF means "read", a notice means trouble, the
transcript alone is proof.  Nothing here states a permission mode for anybody.
"""

from __future__ import annotations

# The socket module costs 8 ms of start-up, nearly a bare interpreter; its C core 0.5 ms.
import _socket
import json
import os
import select
import stat
import sys

from carrier.notices import SETTLED, Ear
from carrier.proof import DOOR_MISMATCH, TARGET_NOT_RUNNING, WRAPPER_TROUBLE
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from carrier.envelope import Envelope
    from carrier.proof import Notice
    from registry.clock import Clock
    from registry.rows import Row

CONNECT_S = 2.0
EOF_S = 5.0  # the native client's patience
_TICK_S = 0.01
_PART = 1 << 16

# SOL_LOCAL and LOCAL_PEERPID give the pid alone; Linux gives pid, uid and gid.
_LINUX = sys.platform != "darwin"
_PEER = (_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12) if _LINUX else (0, 2, 4)


class Answer(Record):
    """What one visit to the door gave."""

    wrote: bool
    eof: bool
    found: str | None = None
    detail: str | None = None
    notices: tuple[Notice, ...] = ()
    reply: str | None = None


class Door:
    """A way into a session; one kind exists, tests and later versions may add theirs."""

    name = "none"

    def write(
        self, row: Row, token: str | None, envelope: Envelope, surfaced: Callable[[], bool]
    ) -> Answer:
        """Write the line once, or not at all, and say which."""
        raise NotImplementedError


class InboxDoor(Door):
    """The inbox socket of a Claude Code session."""

    name = "inbox"

    def __init__(self, clock: Clock, *, deadline: float, uid: int, pid: int):
        self._clock = clock
        self._deadline = deadline  # monotonic; every wait ends by then
        self._uid, self._pid = uid, pid

    def write(
        self, row: Row, token: str | None, envelope: Envelope, surfaced: Callable[[], bool]
    ) -> Answer:
        """Write the line into *row*'s door and listen until *surfaced* or the window's end.

        Killed in the middle, the line may be in, and the reply socket stays behind.
        """
        if (answer := self._inspect(row.socket)) is not None:
            return answer
        try:
            ear = Ear(os.path.dirname(row.socket), self._pid, envelope.msg_id)
        except OSError as error:
            return _untouched(WRAPPER_TROUBLE, f"no reply socket: {_named(error)}")
        conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            if (answer := self._connect(conn, row)) is not None:
                return answer
            return self._talk(conn, ear, (token, envelope), surfaced)
        finally:
            conn.close()
            ear.close()

    def _inspect(self, path: str) -> Answer | None:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return _untouched(TARGET_NOT_RUNNING, "the door's socket is gone")
        except (OSError, ValueError) as error:
            return _untouched(DOOR_MISMATCH, f"the door cannot be looked at: {_named(error)}")
        if not stat.S_ISSOCK(found.st_mode):
            return _untouched(DOOR_MISMATCH, "the door is not a socket, or a link to one")
        if found.st_uid != self._uid:
            return _untouched(DOOR_MISMATCH, f"the door belongs to user {found.st_uid}")
        return None

    def _connect(self, conn: _socket.socket, row: Row) -> Answer | None:
        conn.settimeout(0)
        until = self._until(CONNECT_S)
        while True:
            try:
                conn.connect(row.socket)
                break
            except BlockingIOError:
                # Its queue is full: the session lives but has not accepted for a while.
                if self._clock.monotonic() >= until:
                    return _untouched(WRAPPER_TROUBLE, "the door's queue stayed full")
                self._clock.sleep(_TICK_S)
            except (FileNotFoundError, ConnectionRefusedError):
                return _untouched(TARGET_NOT_RUNNING, "nobody listens at the door")
            except OSError as error:
                return _untouched(WRAPPER_TROUBLE, f"no way to the door: {_named(error)}")
        if (pid := peer_pid(conn)) != row.pid:
            return _untouched(DOOR_MISMATCH, f"the door belongs to pid {pid}, not {row.pid}")
        return None

    def _talk(
        self,
        conn: _socket.socket,
        ear: Ear,
        words: tuple[str | None, Envelope],
        surfaced: Callable[[], bool],
    ) -> Answer:
        token, envelope = words
        auth = auth_line(token)
        speech = auth + user_line(envelope, ear.path)
        sent = self._push(conn, speech)
        if sent <= len(auth):
            return _untouched(TARGET_NOT_RUNNING, "the door closed before the line")
        eof = sent == len(speech) and self._read_to_eof(conn, ear)
        self._settle(ear, envelope.settle_s, surfaced)
        detail = None if eof else "the door did not read to the end"
        return Answer(
            wrote=True, eof=eof, detail=detail, notices=tuple(ear.notices), reply=ear.path
        )

    def _push(self, conn: _socket.socket, speech: bytes) -> int:
        """How many bytes the kernel took; fewer than all when the door broke or slept."""
        sent, until = 0, self._until(EOF_S)
        while sent < len(speech):
            try:
                sent += conn.send(speech[sent:])
            except BlockingIOError:
                if self._clock.monotonic() >= until:
                    return sent
                _poll([], _TICK_S, writing=conn.fileno())
            except OSError:
                return sent
        return sent

    def _read_to_eof(self, conn: _socket.socket, ear: Ear) -> bool:
        until = self._until(EOF_S)
        try:
            conn.shutdown(_socket.SHUT_WR)
            while (left := until - self._clock.monotonic()) > 0:
                # Woken for notices too: a caller that we leave waiting logs a time-out.
                _poll([conn.fileno(), *ear.waiting()], left)
                ear.hear()
                try:
                    if not conn.recv(_PART):
                        return True
                except BlockingIOError:
                    continue
        except OSError:
            return False  # closed with our bytes unread
        return False

    def _settle(self, ear: Ear, settle_s: float, surfaced: Callable[[], bool]) -> None:
        until = self._until(settle_s)
        while True:
            ear.hear()
            if any(notice.status in SETTLED for notice in ear.notices) or surfaced():
                return
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            _poll(ear.waiting(), min(left, _TICK_S))

    def _until(self, seconds: float) -> float:
        return min(self._clock.monotonic() + seconds, self._deadline)


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


def peer_pid(conn: _socket.socket) -> int:
    """The process at the other end, as the kernel knows it."""
    level, option, size = _PEER
    return int.from_bytes(conn.getsockopt(level, option, size)[:4], sys.byteorder)


def _poll(reading: list[int], seconds: float, writing: int | None = None) -> None:
    poll = select.poll()
    for fd in reading:
        poll.register(fd, select.POLLIN)
    if writing is not None:
        poll.register(writing, select.POLLOUT)
    poll.poll(seconds * 1000)


def _untouched(found: str, detail: str) -> Answer:
    return Answer(wrote=False, eof=False, found=found, detail=detail)


def _named(error: Exception) -> str:
    # Never str(error): it may quote what was being handled.
    return getattr(error, "strerror", None) or type(error).__name__
