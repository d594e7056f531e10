"""The row of one session in the shape that 2.1.332 writes, and what stands on disk for it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from registry.ids import new_uuid

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from registry.processes import Processes

VERSION = "2.1.332"
_FEATURES = ["notify_idle", "reply_across_default_dirs", "artifact_yield"]
_BORN_MS = 1_796_048_620_517


class FakeSession:
    """What stands on disk for one session, and the listener behind it if there is one."""

    def __init__(self, row: dict[str, Any], file: str, listener: socket.socket | None, token: str):
        self.row, self.file, self.listener, self.token = row, file, listener, token

    @property
    def pid(self) -> int:
        """The process that the row is for."""
        return int(os.path.basename(self.file).removesuffix(".json"))

    @property
    def session_id(self) -> str:
        """The id in the row."""
        return str(self.row["sessionId"])

    @property
    def socket(self) -> str:
        """The path of the inbox socket."""
        return str(self.row["messagingSocketPath"])


def row_for(pid: int, path: str, processes: Processes) -> dict[str, Any]:
    """The row of *pid* with its door at *path*, field by field in Claude Code's order."""
    return {
        "pid": pid,
        "sessionId": new_uuid(),
        "cwd": "/home/u/fable",
        "startedAt": _BORN_MS,
        "procStart": processes.start_token(pid) or "1",
        "version": VERSION,
        "peerProtocol": 1,
        "peerFeatures": list(_FEATURES),
        "kind": "interactive",
        "entrypoint": "cli",
        "pidDomain": processes.domain(),
        "asksForConvertedSkills": None,
        "messagingSocketPath": path,
        "name": f"fable-{pid % 256:02x}",
        "nameSource": "derived",
        "nameSince": _BORN_MS,
        "status": "idle",
        "updatedAt": _BORN_MS,
        "statusUpdatedAt": _BORN_MS,
    }


def write_row(file: str, row: Mapping[str, Any]) -> None:
    """Write *row* in place, as Claude Code does."""
    write(file, as_json(row), 0o644)


def as_json(value: Mapping[str, Any]) -> bytes:
    """*value* as Claude Code spells it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def write(file: str, content: bytes, mode: int) -> None:
    """Write *file* in place: a reader may meet half of it."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)
