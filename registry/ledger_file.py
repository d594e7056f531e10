"""The file of ticket events, read once: what was folded is remembered, the next call goes on there.

The memory is never needed: another file, another beginning or another end before the
place, and all is read afresh.  Not noticed: bytes replaced by as many others in between,
when the file has grown as well.
"""

from __future__ import annotations

import json
import os
import stat

from registry.durable import Unreadable
from registry.ledger import AHEAD_S, LONGEST_LINE, Ledger, fold
from registry.ledger_json import from_json, to_json
from registry.memory import is_ours, keep, recall
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from typing import Any

_FORMAT = 2
_BLOCK = 1 << 20
_EDGE = 1 << 12  # so much of the beginning and of the end tells one file from another
# To parse less than this once more is 4 ms; to write the memory is 50, 200 when it is large.
WORTH = 1 << 18
_MEMORY_LIMIT = 1 << 27


class Reading(Record):
    """What the file at *path* said; *blind*, a clause, when it could not be read."""

    ledger: Ledger
    path: str
    blind: str | None = None
    absent: bool = False


class Cutter:
    """Lines cut from blocks, however the blocks fall; no line is held longer than it may be."""

    def __init__(self, at: int = 0, *, inside: bool = False):
        self.rest = b""  # the beginning of a line whose end is still to come
        self.inside = inside  # of a line that is too long: its end is waited for
        self._read = at

    @property
    def offset(self) -> int:
        """Where the lines end that have been cut."""
        return self._read - len(self.rest)

    def cut(self, block: bytes) -> list[bytes]:
        """The lines that end in *block*, the next one of the file; one too long is told early."""
        self._read += len(block)
        if self.inside:
            _, newline, block = block.partition(b"\n")
            self.inside = not newline
        *lines, self.rest = (self.rest + block).split(b"\n")
        if len(self.rest) > LONGEST_LINE:
            lines.append(self.rest)
            self.rest, self.inside = b"", True
        return lines


class _Source:
    """An open ledger: its bytes up to now, and what tells it from another one."""

    def __init__(self, fd: int, path: str, correlation: str | None):
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable("is not a plain file")
        self._fd, self._correlation, self.size = fd, correlation, found.st_size
        self.changed = found.st_mtime_ns
        self.origin = [_FORMAT, path, correlation, found.st_dev, found.st_ino]
        # Taken before the rest is read: of a file rewritten meanwhile it is another one.
        self._head = os.pread(fd, _EDGE, 0)

    def pattern(self) -> re.Pattern[str] | None:
        """What finds the pid in a correlation, where the configuration says so."""
        if self._correlation is None:
            return None
        import re

        return re.compile(self._correlation)

    def blocks(self, at: int) -> Iterator[bytes]:
        """The bytes from *at* on; a busy writer cannot keep us here."""
        while at < self.size and (block := os.pread(self._fd, min(_BLOCK, self.size - at), at)):
            at += len(block)
            yield block

    def digest(self, offset: int) -> str:
        """Of the beginning and of the end of what lies before *offset*."""
        import hashlib

        edge = min(_EDGE, offset)
        tail = os.pread(self._fd, edge, offset - edge)
        return hashlib.sha256(self._head[:edge] + tail).hexdigest()


def read_ledger(
    path: str, memory: str | None, now: float, correlation: str | None, *, worth: int = WORTH
) -> Reading:
    """The events at *path* up to *now*; no file is an empty ledger.  Waits for nothing.

    *correlation* is the regular expression of the configuration, which has checked it.
    Only *memory* is written, after *worth* new bytes, and only in a folder that is there
    and ours: killed in the middle, the old memory stands.
    """
    if memory is not None and not is_ours(os.path.dirname(memory)):
        memory = None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            ledger = _up_to(now, _Source(fd, path, correlation or None), memory, worth)
        finally:
            os.close(fd)
    except FileNotFoundError:
        return Reading(Ledger(), path, absent=True)
    except Unreadable as error:
        return Reading(Ledger(), path, str(error))
    except OSError as error:
        return Reading(Ledger(), path, f"cannot be read: {error.strerror}")
    return Reading(ledger, path)


def _up_to(now: float, source: _Source, memory: str | None, worth: int) -> Ledger:
    pattern = source.pattern()
    ledger, cutter = _remembered(memory, source, now) or (Ledger(), Cutter())
    began = cutter.offset
    for block in source.blocks(began):
        fold(ledger, cutter.cut(block), now, pattern)
    # What was too much to set aside is in no memory: only a fresh look finds it.
    if memory is not None and cutter.offset - began >= worth and "ahead" not in ledger.skipped:
        keep(memory, _memory_of(ledger, cutter, source))
    # A last line without its end may still be growing: it counts for this answer alone.
    fold(ledger, [cutter.rest] if cutter.rest else [], now, pattern)
    return ledger


def _memory_of(ledger: Ledger, cutter: Cutter, source: _Source) -> dict[str, Any]:
    told = json.dumps(to_json(ledger))
    return {
        "origin": source.origin,
        "size": source.size,
        "changed": source.changed,
        "offset": cutter.offset,
        "inside": cutter.inside,
        "digest": source.digest(cutter.offset),
        "ledger": told,
        "sum": _sum_of(told),
    }


def _sum_of(text: str) -> str:
    import hashlib

    return hashlib.sha256(text.encode()).hexdigest()


def _folded(told: object, its_sum: object) -> Ledger | None:
    """The ledger that was kept as *told*; None when that is not what was kept."""
    if not isinstance(told, str) or _sum_of(told) != its_sum:
        return None
    return from_json(json.loads(told))


def _remembered(memory: str | None, source: _Source, now: float) -> tuple[Ledger, Cutter] | None:
    """What *memory* holds of this very *source*, and the place to go on; None: read afresh."""
    found = None if memory is None else recall(memory, _MEMORY_LIMIT)
    if not isinstance(found, dict) or found.get("origin") != source.origin:
        return None
    offset, inside = found.get("offset"), found.get("inside")
    if type(offset) is not int or type(inside) is not bool or not 0 <= offset <= source.size:
        return None
    if found.get("digest") != source.digest(offset):
        return None
    # Written to, and no longer for it: something in it was replaced by as many bytes.
    if found.get("size") == source.size and found.get("changed") != source.changed:
        return None
    ledger = _folded(found.get("ledger"), found.get("sum"))
    # Taken by a clock that was fast: by this one, some of it still lies ahead.
    if ledger is None or ledger.latest > now + AHEAD_S:
        return None
    return ledger, Cutter(offset, inside=inside)
