"""How far lines got, read from the target's own transcript.

`origin.msg_id` there is the only proof of model input (CONTRACT f).  Reading is
bounded: whole lines only, nothing above LONGEST_LINE, no file kept in memory.
"""

from __future__ import annotations

import json
import os
import stat

from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NONE, ENQUEUED, SURFACED = "none", "enqueued", "surfaced"
TURN = "turn"  # no state of a line: the model spoke

LONGEST_LINE = 8 << 20
_CHUNK = 1 << 18
_SCALE = (NONE, ENQUEUED, SURFACED)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_BMP = 0xFFFF


def find_transcript(claude_dir: str, session_id: str, cwd: str | None) -> str | None:
    """The transcript of *session_id*: where *cwd* says, else in any project folder."""
    if parse_uuid(session_id) != session_id:
        return None
    projects = f"{claude_dir}/projects"
    name = f"{session_id}.jsonl"
    if cwd is not None:
        likely = f"{projects}/{slug(cwd)}/{name}"
        if _changed_at(likely) is not None:
            return likely
    try:
        folders = sorted(os.listdir(projects))
    except OSError:
        return None
    paths = [f"{projects}/{each}/{name}" for each in folders]
    found = [(at, path) for path in paths if (at := _changed_at(path)) is not None]
    return max(found)[1] if found else None


def slug(cwd: str) -> str:
    """The name of *cwd*'s project folder: every other UTF-16 unit becomes a hyphen."""
    return "".join(c if c in _PLAIN else "-" if ord(c) <= _BMP else "--" for c in cwd)


def judge_row(row: bytes, session_id: str) -> tuple[str, str]:
    """What one transcript *row* of the session shows, and of which line.

    SURFACED comes with a msg_id, ENQUEUED with a text, since such a row has no id;
    TURN and NONE are about no line.
    """
    try:
        given = json.loads(row)
    except (ValueError, RecursionError):
        return NONE, ""
    if not isinstance(given, dict) or not _is_of(given, session_id):
        return NONE, ""
    kind = given.get("type")
    if kind in ("user", "attachment"):
        msg_id = _origin_of(given.get("attachment") if kind == "attachment" else given)
        return (NONE, "") if msg_id is None else (SURFACED, msg_id)
    if kind == "queue-operation" and given.get("operation") == "enqueue":
        text = given.get("content")
        return (ENQUEUED, text) if isinstance(text, str) else (NONE, "")
    return (TURN, "") if kind == "assistant" and _is_the_models(given) else (NONE, "")


class Follower:
    """The way of some lines through one session's transcript; their states only rise.

    *lines* has the text of each by its msg_id.  *offset* is the size of the file
    before the write: an enqueue row has no id, so only a later one can be ours.
    *find* is asked while there is no file yet.
    """

    def __init__(
        self,
        path: str | None,
        offset: int,
        lines: Mapping[str, str],
        session_id: str,
        *,
        find: Callable[[], str | None] | None = None,
    ):
        self.path, self.offset = path, offset
        self.states = dict.fromkeys(lines, NONE)
        self.turn_after = False  # the model spoke after the last row about one of the lines
        self._lines, self._session, self._find = lines, session_id, find
        # A single id is sharper than the name that every id stands under.
        ids = next(iter(lines)).encode() if len(lines) == 1 else b'"msg_id"'
        self._needles = (ids, b'"enqueue"')
        self._awaits_turn = False
        self._file: tuple[int, int] | None = None
        self._old_text = False  # True: the file was rewritten, text alone proves nothing
        self._start(offset)

    @property
    def all_surfaced(self) -> bool:
        """Whether the model's input holds every line."""
        return all(state == SURFACED for state in self.states.values())

    def look(self) -> None:
        """Raise the states to what stands there by now; reads only what is new."""
        if self.path is None and self._find is not None:
            self.path = self._find()
        if self.path is None or self._is_over():
            return
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._read(fd)
            finally:
                os.close(fd)
        except OSError:
            pass  # what was seen stays seen; the next look tries again

    def _start(self, offset: int) -> None:
        # One byte earlier: the rest of a line that had begun before the write is not ours.
        self._at = max(offset - 1, 0)
        self._skipping = offset > 0
        self._half = bytearray()

    def _read(self, fd: int) -> None:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return
        file = (found.st_dev, found.st_ino)
        if found.st_size < self._at or file != (self._file or file):
            self._old_text = True
            self._start(0)
        self._file = file
        # The size at the opening is the end: a busy writer cannot keep us here.
        while self._at < found.st_size and not self._is_over():
            chunk = os.pread(fd, min(_CHUNK, found.st_size - self._at), self._at)
            if not chunk:
                return
            self._at += len(chunk)
            self._swallow(chunk)

    def _swallow(self, chunk: bytes) -> None:
        if self._skipping:
            _, newline, chunk = chunk.partition(b"\n")
            self._skipping = not newline
        whole, newline, rest = chunk.rpartition(b"\n")
        if newline:
            self._half += whole
            block = bytes(self._half)
            self._half.clear()
            if self._may_count(block):
                self._judge(block)
        self._half += rest
        if len(self._half) > LONGEST_LINE:
            self._half.clear()
            self._skipping = True

    def _is_over(self) -> bool:
        return self.turn_after and self.all_surfaced

    def _may_count(self, part: bytes) -> bool:
        # Turns are most of a transcript: they are looked for only where one would count.
        if self._awaits_turn and b'"assistant"' in part:
            return True
        return any(needle in part for needle in self._needles)

    def _judge(self, block: bytes) -> None:
        for line in block.split(b"\n"):
            if self._is_over():
                return  # wherever the reading was cut, it ends here
            if not self._may_count(line):
                continue
            # A power cut leaves a block of NULs; the next row follows it on the same line.
            row = line.rstrip(b"\0").rpartition(b"\0")[2]
            state, whom = judge_row(row, self._session)
            if self._raise(state, whom):
                self._awaits_turn, self.turn_after = True, False
            elif state == TURN and self._awaits_turn:
                self._awaits_turn, self.turn_after = False, True

    def _raise(self, state: str, whom: str) -> bool:
        """Whether a row that shows *state* of *whom* is about one of the lines."""
        if state == SURFACED and whom in self.states:
            self.states[whom] = SURFACED
            return True
        if state == ENQUEUED and not self._old_text:
            for msg_id, text in self._lines.items():
                # Of lines with the same text the earliest was taken first.
                if text == whom and self.states[msg_id] == NONE:
                    self.states[msg_id] = ENQUEUED
                    return True
        return False


def _origin_of(carried: object) -> str | None:
    """The msg_id of the peer line that *carried* brought, if it did."""
    origin = carried.get("origin") if isinstance(carried, dict) else None
    if not isinstance(origin, dict) or origin.get("kind") != "peer":
        return None
    msg_id = origin.get("msg_id")
    return msg_id if isinstance(msg_id, str) else None


def _is_the_models(row: dict[str, object]) -> bool:
    """Whether an assistant *row* is the session's own model's, no subagent's and no stand-in."""
    told = row.get("message")
    made_up = isinstance(told, dict) and told.get("model") == "<synthetic>"
    return not (made_up or row.get("isApiErrorMessage") or row.get("isSidechain"))


def _is_of(row: dict[str, object], session_id: str) -> bool:
    named = row.get("sessionId")
    return named is None or parse_uuid(named) == session_id


def _changed_at(path: str) -> int | None:
    """When the plain file at *path* was last written; None when there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns if stat.S_ISREG(found.st_mode) else None
