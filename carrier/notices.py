"""What targets say of lines: notices on a socket of the writing process's own.

A target answers on a new connection to `from`, and only while the process that wrote
listens there (CONTRACT f).  Whoever of the same user calls is heard: a false "held"
costs a claim, a missed one would make a false one.
"""

from __future__ import annotations

# The socket module costs 8 ms of start-up, nearly a bare interpreter; its C core 0.5 ms.
import _socket
import errno
import json
import os

from carrier.proof import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

UNREADABLE = "unreadable"
SETTLED = frozenset({"delivered", "denied", "expired", "dropped"})  # nothing follows these

_TRIES = 8
_PART = 1 << 16
_NOTICE_BYTES = 1 << 16
_ID_BYTES = 64  # one more id in a notice that sums up drops
_NOTICES = 16
_CALLERS = 16
# Each notice comes on a connection of its own, and a target does not try twice.
_BACKLOG = 4096
_TEXT = 500


class Ear:
    """The reply socket: targets send notices to the process that wrote, and only to it.

    *notices* has those of each line by its msg_id.
    """

    def __init__(
        self,
        folder: str,
        pid: int,
        msg_ids: Iterable[str],
        unlink: Callable[[str], None] = os.unlink,
    ):
        self.notices: dict[str, list[Notice]] = {}
        self.expect(msg_ids)
        self._unlink = unlink
        self._callers: dict[int, tuple[_socket.socket, bytearray]] = {}
        self._listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            self.path = self._bind(f"{folder}/{pid}")
            # Nobody can connect between the bind and the listen, so the mode is never late.
            os.chmod(self.path, 0o600)
            self._file = _file_at(self.path)
            self._listener.settimeout(0)
            self._listener.listen(_BACKLOG)
        except OSError:
            self._listener.close()
            raise

    def _bind(self, stem: str) -> str:
        for ending in ("", *(f"-{os.urandom(3).hex()}" for _ in range(_TRIES))):
            try:
                self._listener.bind(f"{stem}{ending}.sock")
            except OSError as error:
                # A dead process with our pid may have left its own; it is not ours to remove.
                if error.errno != errno.EADDRINUSE:
                    raise
                refusal = error
                continue
            return f"{stem}{ending}.sock"
        raise refusal

    def waiting(self) -> list[int]:
        """The descriptors to wait for."""
        return [self._listener.fileno(), *self._callers]

    def expect(self, msg_ids: Iterable[str]) -> None:
        """Listen for what is said of *msg_ids* too."""
        for msg_id in msg_ids:
            self.notices.setdefault(msg_id, [])

    def awaits_answers(self) -> bool:
        """Whether a line is held, and its target has not said what became of it."""
        return any(is_held(told) for told in self.notices.values())

    def hear(self) -> None:
        """Take in what has come, without waiting; a caller that ends its line is let go."""
        # As many rounds as lines: a crowd of strangers cannot keep us here.
        for _ in range(len(self.notices)):
            full = self._let_in()
            for fd, (caller, heard) in list(self._callers.items()):
                if self._listen_to(caller, heard):
                    self._callers.pop(fd)[0].close()
            if not full or len(self._callers) == _CALLERS:
                return

    def _let_in(self) -> bool:
        """Whether so many have called that others may be waiting."""
        while len(self._callers) < _CALLERS:
            try:
                # What socket.accept() itself is made of.
                fd, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001
                caller = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
            except BlockingIOError:
                return False
            except OSError as error:
                self._missed(error)
                return False
            caller.settimeout(0)
            self._callers[fd] = (caller, bytearray())
        return True

    def close(self) -> None:
        """Stop listening; the path goes too, once, unless it has become somebody else's."""
        for caller, _ in self._callers.values():
            caller.close()
        try:
            if _file_at(self.path) == self._file is not None:
                self._unlink(self.path)
        except OSError:
            pass  # gone already; after the write nothing may hide that it was made
        self._file = None  # from here on its number may be another's
        self._listener.close()

    def _missed(self, error: OSError) -> None:
        # It may have been the one that says "held", so from here on nothing is certain.
        why = f"a notice could not be read: {error.strerror or type(error).__name__}"
        self._note(self.notices, Notice(UNREADABLE, reason=why))

    def _note(self, about: Iterable[str], notice: Notice) -> None:
        for msg_id in about:
            told = self.notices.get(msg_id)
            if told is not None and len(told) < _NOTICES:
                told.append(notice)

    def _listen_to(self, caller: _socket.socket, heard: bytearray) -> bool:
        try:
            while part := caller.recv(_PART):
                heard += part
                if len(heard) > _NOTICE_BYTES + _ID_BYTES * len(self.notices):
                    break
        except BlockingIOError:
            if not heard.endswith(b"\n"):
                return False
        except OSError as error:
            self._missed(error)  # what it had said counts all the same
        for line in heard.splitlines():
            told = parse_notice(bytes(line))
            if told is not None:
                self._note(*told)
        return True


def is_held(notices: Iterable[Notice]) -> bool:
    """Whether *notices* of one line say that it is held, and nothing final."""
    said = {notice.status for notice in notices}
    return "held" in said and SETTLED.isdisjoint(said)


def parse_notice(line: bytes) -> tuple[tuple[str, ...], Notice] | None:
    """The msg_ids that *line* is about, and what it says of them; total, None for noise.

    An unknown status is kept as it is: it is not for this layer to call it harmless.
    """
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or given.get("action") != "peer_message_status":
        return None
    status = _text(given, "status")
    if given.get("type") != "control" or status is None:
        return None
    dropped = given.get("dropped_msg_ids")
    about = [given.get("orig_msg_id"), *(dropped if isinstance(dropped, list) else ())]
    rest = (_text(given, name) for name in ("status_detail", "drop_reason", "reason"))
    # A line that is named twice in one notice is told once.
    ids = dict.fromkeys(each for each in about if isinstance(each, str))
    return tuple(ids), Notice(status, *rest)


def _file_at(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _text(given: dict[str, object], name: str) -> str | None:
    value = given.get(name)
    return value[:_TEXT] if isinstance(value, str) else None
