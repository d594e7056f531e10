"""Who runs: every row, read without waiting and checked against the kernel.

A row is a claim; what the kernel can be asked is not believed (CONTRACT e).  Not
promised: that a session still runs a moment later; the door asks again.
"""

from __future__ import annotations

import errno
import os
import stat

from registry.clock import Clock
from registry.durable import Unreadable, read_plain
from registry.errors import RegistryUnreadable
from registry.row import REASONS, Listing, Row, Skipped, json_object, parse_row, pid_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from registry.processes import Processes

__all__ = [
    "REASONS",
    "Listing",
    "Row",
    "Skipped",
    "check_row",
    "key_of",
    "parse_row",
    "probe",
    "read_rows",
    "row_of",
    "rows_with",
]

_ROW_LIMIT = 1 << 18
_KEY_LIMIT = 1 << 12
# Rows are rewritten in place (CONTRACT e): a half one of a living process is read again.
_LOOKS, _REWRITE_S = 4, 0.005
_CONNECT_S = 1.0
# Not the row's fault: to skip it would be to call a running session ended.
_OURS_TO_MEND = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_CLOCK = Clock()


def read_rows(claude_dir: str, processes: Processes, clock: Clock = _CLOCK) -> Listing:
    """Every running session under *claude_dir*; a missing folder is an empty listing."""
    return rows_with(claude_dir, (), processes, clock)


def rows_with(
    claude_dir: str, needles: tuple[bytes, ...], processes: Processes, clock: Clock = _CLOCK
) -> Listing:
    """The living part of the listing whose files hold one of *needles*; none given: all of it.

    Other files are not parsed, those of ended processes not even opened.  A needle
    is text as Claude Code writes it: a canonical id, or a name that JSON does not
    escape.
    """
    folder = claude_dir + "/sessions"
    rows, skipped = [], []
    try:
        for file, plain in _row_files(folder):
            if needles and not _alive(pid_of(file), processes):
                continue
            found: Row | Skipped | None = Skipped(file, "not-a-file", pid_of(file))
            if plain:
                found = _examine(f"{folder}/{file}", needles, processes, clock)
            if isinstance(found, Row):
                rows.append(found)
            elif found is not None:
                skipped.append(found)
    except OSError as error:
        # Out of descriptors or memory: to go on would call running sessions ended.
        raise RegistryUnreadable(folder, error.strerror or str(error)) from error
    rows.sort(key=lambda row: row.pid)
    skipped.sort(key=lambda skip: (skip.pid or 0, skip.file))
    return Listing(tuple(rows), tuple(skipped))


def row_of(
    claude_dir: str, pid: int, processes: Processes, clock: Clock = _CLOCK
) -> Row | Skipped | None:
    """What the one file of *pid* says now; None when there is no such file."""
    path = f"{claude_dir}/sessions/{pid}.json"
    if not os.path.lexists(path):
        return None
    if not os.path.isfile(path):
        return Skipped(f"{pid}.json", "not-a-file", pid)
    return _examine(path, (), processes, clock)


def check_row(row: Row, processes: Processes) -> Skipped | None:
    """Why *row* is not the process and the socket that it claims; None: the kernel agrees."""
    reason = _process_fault(row, processes) or _socket_fault(row.socket, processes.own_uid())
    return None if reason is None else Skipped(row.file, reason, row.pid, row.session_id)


def key_of(claude_dir: str, row: Row) -> str | None:
    """The token for the door of *row*; None if absent or odd: the door opens without (CONTRACT f).

    A key that an earlier process left under the same pid is not taken.
    """
    import hashlib

    digest = hashlib.sha256(row.socket.encode()).hexdigest()
    try:
        content = read_plain(f"{claude_dir}/sessions/{row.pid}.{digest}.key", _KEY_LIMIT)
    except OSError:
        return None
    found = json_object(content)
    if found is None or text_of(found, "procStart") != row.proc_start:
        return None
    return text_of(found, "peerToken") or None


def probe(row: Row) -> bool:
    """Whether somebody listens at the door of *row*: one connection, nothing written."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as ours:
        ours.settimeout(_CONNECT_S)
        try:
            ours.connect(row.socket)
        except BlockingIOError:
            return True  # its queue is full: somebody listens, slowly
        except OSError:
            return False
    return True


def _row_files(folder: str) -> Iterator[tuple[str, bool]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".json"):
                    yield entry.name, _is_plain(entry)
    except FileNotFoundError:
        return
    except OSError as error:
        raise RegistryUnreadable(folder, error.strerror or str(error)) from error


def _is_plain(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False  # a link that leads round in a circle


def _examine(
    path: str, needles: tuple[bytes, ...], processes: Processes, clock: Clock
) -> Row | Skipped | None:
    found = _look(path, needles)
    for _ in range(1, _LOOKS):
        if not _half_written(found, processes):
            break
        clock.sleep(_REWRITE_S)
        found = _look(path, needles)
    if isinstance(found, Row):
        return check_row(found, processes) or found
    return found


def _look(path: str, needles: tuple[bytes, ...]) -> Row | Skipped | None:
    file = os.path.basename(path)
    try:
        content = read_plain(path, _ROW_LIMIT)
    except Unreadable:
        return Skipped(file, "too-large", pid_of(file))
    except OSError as error:
        if error.errno in _OURS_TO_MEND:
            raise
        return Skipped(file, "unreadable", pid_of(file))
    # A half row may lack the needle only because its end is not written yet.
    whole = content.endswith((b"}", b"}\n"))
    if needles and whole and not any(needle in content for needle in needles):
        return None
    return parse_row(file, content)


def _half_written(found: Row | Skipped | None, processes: Processes) -> bool:
    torn = isinstance(found, Skipped) and found.reason == "torn"
    return torn and found is not None and _alive(found.pid, processes)


def _alive(pid: int | None, processes: Processes) -> bool:
    return pid is not None and processes.start_token(pid) is not None


def _process_fault(row: Row, processes: Processes) -> str | None:
    here = processes.domain()
    if here is not None and row.pid_domain not in (None, here):
        return "foreign-domain"
    start = processes.start_token(row.pid)
    if start is None:
        return "no-process"
    if not processes.comparable() or start == row.proc_start:
        return None
    return "recycled" if row.proc_start else "no-start-time"


def _socket_fault(path: str, uid: int) -> str | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return "no-socket"
    if not stat.S_ISSOCK(found.st_mode):
        return "not-a-socket"
    return None if found.st_uid == uid else "foreign-owner"
