"""One row as Claude Code writes it: bytes in, a Row or Skipped with its reason out.  Pure.

Total: whatever the bytes are, there is an answer and no exception (CONTRACT e).
"""

from __future__ import annotations

import json

from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REASONS = {
    "not-a-file": "a pipe, socket, folder, device or dangling link stands in its place",
    "too-large": "no row is that long",
    "unreadable": "the file cannot be read",
    "torn": "not one whole JSON object",
    "name-mismatch": "the file is not named after the pid in it",
    "no-session-id": "no session id, or not a UUID",
    "parked": "the session was moved to the background; this process no longer holds it",
    "foreign-domain": "written in another machine or container",
    "no-process": "the process has ended",
    "no-start-time": "nothing says when the process started, so a later one would look the same",
    "recycled": "another process has got this pid since",
    "no-socket": "the session has no inbox socket",
    "not-a-socket": "something else, or a link, stands at the socket's path",
    "foreign-owner": "the socket belongs to another user",
    "refused": "nobody listens at the socket",
}

_PID_DIGITS = 10


class Row(Record):
    """One running session as Claude Code registers it."""

    file: str
    pid: int
    session_id: str  # canonical
    name: str | None
    status: str | None
    cwd: str | None
    socket: str  # the door
    proc_start: str  # empty: the row does not say
    started_at: int | None  # milliseconds since 1970
    status_at: int | None
    waiting_for: str | None
    version: str | None
    entrypoint: str | None
    pid_domain: str | None


class Skipped(Record):
    """A file among the rows that is no running session, and why: a word of REASONS."""

    file: str
    reason: str
    pid: int | None = None
    session_id: str | None = None


class Listing(Record):
    """All that was found in one pass, in the order of pids."""

    rows: tuple[Row, ...]
    skipped: tuple[Skipped, ...]


def parse_row(file_name: str, content: bytes) -> Row | Skipped:
    """The row in *content*, or why it is none."""
    pid, found = pid_of(file_name), json_object(content)
    if found is None:
        return Skipped(file_name, "torn", pid)
    session_id, socket = parse_uuid(found.get("sessionId")), text_of(found, "messagingSocketPath")
    if pid is None or type(found.get("pid")) is not int or found["pid"] != pid:
        return Skipped(file_name, "name-mismatch", pid, session_id)
    if session_id is None:
        return Skipped(file_name, "no-session-id", pid)
    if found.get("parkedJobId") is not None:
        return Skipped(file_name, "parked", pid, session_id)
    if socket is None or not socket.startswith("/") or "\0" in socket:
        return Skipped(file_name, "no-socket", pid, session_id)
    return Row(
        file=file_name,
        pid=pid,
        session_id=session_id,
        name=text_of(found, "name"),
        status=text_of(found, "status"),
        cwd=text_of(found, "cwd"),
        socket=socket,
        proc_start=text_of(found, "procStart") or "",
        started_at=_whole_number(found, "startedAt"),
        status_at=_whole_number(found, "statusUpdatedAt"),
        waiting_for=text_of(found, "waitingFor"),
        version=text_of(found, "version"),
        entrypoint=text_of(found, "entrypoint"),
        pid_domain=text_of(found, "pidDomain"),
    )


def pid_of(file_name: str) -> int | None:
    """The pid that a row file is named after; None when it is not named as one."""
    digits = file_name.removesuffix(".json")
    plain = digits != file_name and digits.isascii() and digits.isdigit()
    if not plain or digits.startswith("0") or len(digits) > _PID_DIGITS:
        return None
    return int(digits)


def json_object(content: bytes) -> dict[str, Any] | None:
    """The one JSON object in *content*, or None; of a key written twice the later counts."""
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def text_of(found: dict[str, Any], name: str) -> str | None:
    """The text under *name*, fit to be printed or used as a path; None for anything else."""
    text = found.get(name)
    if not isinstance(text, str):
        return None
    # JSON can spell half a surrogate pair, which no file name and no terminal can take.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _whole_number(found: dict[str, Any], name: str) -> int | None:
    number = found.get(name)
    return number if type(number) is int else None
