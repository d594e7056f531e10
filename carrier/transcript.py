"""How far a line got, read from the target's own transcript.

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
    from collections.abc import Callable

NONE, ENQUEUED, SURFACED = "none", "enqueued", "surfaced"

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


def judge_row(row: bytes, msg_id: str, text: str, session_id: str) -> str:
    """What one transcript *row* says about the line *text* that went as *msg_id*."""
    try:
        given = json.loads(row)
    except (ValueError, RecursionError):
        return NONE
    if not isinstance(given, dict) or not _is_of(given, session_id):
        return NONE
    kind = given.get("type")
    carried = given.get("attachment") if kind == "attachment" else given
    if kind in ("user", "attachment") and _has_origin(carried, msg_id):
        return SURFACED
    if kind == "queue-operation" and given.get("operation") == "enqueue":
        return ENQUEUED if given.get("content") == text else NONE
    return NONE


class Follower:
    """One line's way through one transcript; the state only rises.

    *offset* is the size of the file before the write: an enqueue row has no id,
    so only a later one can be ours.  *find* is asked while there is no file yet.
    """

    def __init__(  # noqa: PLR0913 - a place, and the line by its three marks
        self,
        path: str | None,
        offset: int,
        msg_id: str,
        text: str,
        session_id: str,
        *,
        find: Callable[[], str | None] | None = None,
    ):
        self.path, self.offset, self.state = path, offset, NONE
        self._find = find
        self._ids = (msg_id, text, session_id)
        self._needles = (msg_id.encode(), b'"enqueue"')
        self._file: tuple[int, int] | None = None
        self._old_text = False  # True: the file was rewritten, text alone proves nothing
        self._start(offset)

    def look(self) -> str:
        """How far the line is by now; reads only what is new, blocks on nothing."""
        if self.path is None and self._find is not None:
            self.path = self._find()
        if self.path is None or self.state == SURFACED:
            return self.state
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                self._read(fd)
            finally:
                os.close(fd)
        except OSError:
            pass  # what was seen stays seen; the next look tries again
        return self.state

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
        while self._at < found.st_size and self.state != SURFACED:
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
            if any(needle in block for needle in self._needles):
                self._judge(block)
        self._half += rest
        if len(self._half) > LONGEST_LINE:
            self._half.clear()
            self._skipping = True

    def _judge(self, block: bytes) -> None:
        for line in block.split(b"\n"):
            if not any(needle in line for needle in self._needles):
                continue
            # A power cut leaves a block of NULs; the next row follows it on the same line.
            row = line.rstrip(b"\0").rpartition(b"\0")[2]
            state = judge_row(row, *self._ids)
            if state == ENQUEUED and self._old_text:
                continue
            self.state = max(self.state, state, key=_SCALE.index)


def _has_origin(carried: object, msg_id: str) -> bool:
    origin = carried.get("origin") if isinstance(carried, dict) else None
    return (
        isinstance(origin, dict) and origin.get("kind") == "peer" and origin.get("msg_id") == msg_id
    )


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
