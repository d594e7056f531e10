"""The doors of running sessions: lines in, once, and an ear for what comes back.

The door never says yes (CONTRACT f): EOF means "read", a notice means trouble, the
transcript alone is proof.  Nothing here states a permission mode for anybody.
"""

from __future__ import annotations

# The socket module costs 8 ms of start-up, nearly a bare interpreter; its C core 0.5 ms.
import _socket
import os
import select
import stat
import sys

from carrier.calls import Call, auth_line, untouched, user_line
from carrier.notices import Ear
from carrier.proof import DOOR_MISMATCH, TARGET_NOT_RUNNING, WRAPPER_TROUBLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from carrier.calls import Answer
    from carrier.envelope import Envelope
    from registry.clock import Clock
    from registry.rows import Row

CONNECT_S = 2.0
EOF_S = 5.0  # the native client's patience
DROPS_S = 6.0  # a target sums drops up about 5 s after the first (CONTRACT f, inbox limits)
_TICK_S = 0.01

# SOL_LOCAL and LOCAL_PEERPID give the pid alone; Linux gives pid, uid and gid.
_LINUX = sys.platform != "darwin"
_PEER = (_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12) if _LINUX else (0, 2, 4)


class Door:
    """A way into sessions; one kind exists, tests and later versions may add theirs."""

    name = "none"

    def speak(self, row: Row, token: str | None, envelopes: Sequence[Envelope]) -> Answer | None:
        """Write the lines of one session in their order, once, or say why nothing was written."""
        raise NotImplementedError

    def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
        """What came of every line that was spoken, by its msg_id; *look* gives their states."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave nothing behind, whatever was not done."""


class InboxDoor(Door):
    """The inbox sockets of Claude Code sessions."""

    name = "inbox"

    def __init__(
        self, clock: Clock, *, deadline: float, uid: int, pid: int, staying: list[Ear] | None = None
    ):
        """*staying* gets the ears of held lines, which are its owner's to close then."""
        self._clock, self._staying = clock, staying
        self._deadline = deadline  # monotonic; every wait ends by then
        self._uid, self._pid = uid, pid
        self._ears: dict[str, Ear] = {}
        self._calls: list[Call] = []
        self._settle_s = 0.0
        self._patience: float | None = None  # with full queues, for all doors together

    def speak(self, row: Row, token: str | None, envelopes: Sequence[Envelope]) -> Answer | None:
        """None: a part of the lines at least is on its way into *row*'s door, and `listen` tells.

        Nothing is waited for but room in the door's queue.  Killed in the middle,
        lines may be in, and the reply socket stays behind.
        """
        self._hear()
        if (answer := self._inspect(row.socket)) is not None:
            return answer
        try:
            ear = self._ear_in(os.path.dirname(row.socket), [each.msg_id for each in envelopes])
        except OSError as error:
            return untouched(WRAPPER_TROUBLE, f"no reply socket: {_named(error)}")
        frames = {each.msg_id: user_line(each, ear.path) for each in envelopes}
        try:
            conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        except OSError as error:
            return untouched(WRAPPER_TROUBLE, f"no way to the door: {_named(error)}")
        call = Call(conn, ear, auth_line(token), frames)
        self._calls.append(call)
        if (answer := self._connect(conn, row) or self._begin(call)) is not None:
            self._calls.pop()
            conn.close()
            return answer
        self._settle_s = max(self._settle_s, *(each.settle_s for each in envelopes))
        return None

    def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
        """What came of every line, after all ends and one settle window for all.

        Killed in the middle, lines are in, and the reply socket stays behind.
        """
        try:
            self._read_to_ends()
            self._settle(look)
            return {k: v for call in self._calls for k, v in call.answers().items()}
        finally:
            self.close()

    def close(self) -> None:
        """Hang up and remove the reply sockets; a second time does nothing."""
        for call in self._calls:
            call.conn.close()
        for ear in self._ears.values():
            if self._staying is not None and ear.awaits_answers():
                self._staying.append(ear)
            else:
                ear.close()
        self._calls, self._ears = [], {}

    def _ear_in(self, folder: str, msg_ids: list[str]) -> Ear:
        ear = self._ears.get(folder)
        if ear is None:
            # One address for all targets there: a fresh one would get a fresh allowance.
            ear = self._ears[folder] = Ear(folder, self._pid, msg_ids)
        ear.expect(msg_ids)
        return ear

    def _inspect(self, path: str) -> Answer | None:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return untouched(TARGET_NOT_RUNNING, "the door's socket is gone")
        except (OSError, ValueError) as error:
            return untouched(DOOR_MISMATCH, f"the door cannot be looked at: {_named(error)}")
        if not stat.S_ISSOCK(found.st_mode):
            return untouched(DOOR_MISMATCH, "the door is not a socket, or a link to one")
        if found.st_uid != self._uid:
            return untouched(DOOR_MISMATCH, f"the door belongs to user {found.st_uid}")
        return None

    def _connect(self, conn: _socket.socket, row: Row) -> Answer | None:
        conn.settimeout(0)
        while True:
            try:
                conn.connect(row.socket)
                break
            except BlockingIOError:
                # Its queue is full: the session lives but has not accepted for a while.
                if self._patience is None:
                    self._patience = self._until(CONNECT_S)
                if self._clock.monotonic() >= self._patience:
                    return untouched(WRAPPER_TROUBLE, "the door's queue stayed full")
                self._clock.sleep(_TICK_S)
            except (FileNotFoundError, ConnectionRefusedError):
                return untouched(TARGET_NOT_RUNNING, "nobody listens at the door")
            except OSError as error:
                return untouched(WRAPPER_TROUBLE, f"no way to the door: {_named(error)}")
        if (pid := peer_pid(conn)) != row.pid:
            return untouched(DOOR_MISMATCH, f"the door belongs to pid {pid}, not {row.pid}")
        return None

    def _begin(self, call: Call) -> Answer | None:
        call.go_on()
        if call.is_over and not call.written():
            return untouched(TARGET_NOT_RUNNING, "the door closed before the line")
        return None

    def _read_to_ends(self) -> None:
        """Every call has pushed all and met its EOF, or it broke, or its time is over."""
        until = self._until(EOF_S)
        for call in self._calls:
            # It counts from here on: the other doors may have taken long.
            call.until = until
        while True:
            # Notices too: a caller that we leave waiting logs a time-out.
            self._hear()
            for call in self._calls:
                if not call.is_over and call.go_on():
                    call.until = self._until(EOF_S)
            now = self._clock.monotonic()
            waiting = [call for call in self._calls if call.waits(now)]
            if not waiting:
                return
            self._poll(waiting, min(call.until for call in waiting) - now)

    def _settle(self, look: Callable[[], Mapping[str, str]]) -> None:
        window = self._until(self._settle_s)
        while self._calls:
            self._hear()
            began = self._clock.monotonic()
            states = look()
            now = self._clock.monotonic()
            left = max(call.listens_until(states, window) for call in self._calls) - now
            if left <= 0:
                return
            # A look at many transcripts takes longer than a tick: it gets half of the time.
            self._poll((), min(left, max(_TICK_S, now - began)))

    def _hear(self) -> None:
        for ear in self._ears.values():
            ear.hear()
        for call in self._calls:
            call.note_drops(self._until(DROPS_S))

    def _poll(self, calls: Iterable[Call], seconds: float) -> None:
        poll = select.poll()
        for call in calls:
            poll.register(call.conn.fileno(), select.POLLOUT if call.pushes() else select.POLLIN)
        for ear in self._ears.values():
            for fd in ear.waiting():
                poll.register(fd, select.POLLIN)
        poll.poll(seconds * 1000)

    def _until(self, seconds: float) -> float:
        return min(self._clock.monotonic() + seconds, self._deadline)


def peer_pid(conn: _socket.socket) -> int:
    """The process at the other end, as the kernel knows it."""
    level, option, size = _PEER
    return int.from_bytes(conn.getsockopt(level, option, size)[:4], sys.byteorder)


def _named(error: Exception) -> str:
    # Never str(error): it may quote what was being handled.
    return getattr(error, "strerror", None) or type(error).__name__
