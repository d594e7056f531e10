"""The transcript of a fake session, row by row in the shapes that 2.1.332 writes."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import Any

from dispatch.rig.script import NOT_TYPED


def now_iso() -> str:
    """The time as a transcript writes it."""
    at = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


def write_file(path: str, content: str, mode: int = 0o600) -> None:
    """Replace *path* at once, so that no reader meets half of it."""
    new = f"{path}.{os.getpid()}.new"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(content)
    os.rename(new, path)


class Transcript:
    """The rows of one session, in the shapes that 2.1.332 writes."""

    def __init__(self, config: str, session_id: str, cwd: str):
        self.session_id, self.cwd = session_id, cwd
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)
        self.path = f"{config}/projects/{slug}/{session_id}.jsonl"

    def add(self, row: dict[str, Any]) -> None:
        """Append one whole row."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        line = json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"
        with open(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as file:
            file.write(line.encode("utf-8", "surrogatepass"))

    def queue(self, operation: str, **more: Any) -> None:
        """An enqueue, dequeue or remove row."""
        head = {"type": "queue-operation", "operation": operation, "timestamp": now_iso()}
        self.add(head | {"sessionId": self.session_id} | more)

    def remove(self, text: str, ids: tuple[str, str]) -> None:
        """The row that takes *text* out of the queue in the middle of a turn."""
        more = {"commandUuid": ids[0], "deliveryId": ids[1]}
        self.queue("remove", content=text, reason="absorbed_mid_turn", **more)

    def surface(self, text: str, origin: dict[str, Any]) -> None:
        """The user row of an idle session."""
        told = f"Another Claude session sent a message:\n{text}\n\n{NOT_TYPED}"
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "promptId": str(uuid.uuid4()),
                "type": "user",
                "message": {"role": "user", "content": told},
                "isMeta": True,
                "uuid": str(uuid.uuid4()),
                "timestamp": now_iso(),
                "permissionMode": "default",
                "origin": origin,
                "promptSource": "system",
                "queueSkipSlashCommands": True,
                "sentAtMs": int(time.time() * 1000),
                "turnOrigin": "peer",
                "turnPosition": {"promptIndex": 0, "turnIndex": 0},
                "queueSkipAttachments": True,
            }
            | self._tail()
        )

    def attach(self, text: str, origin: dict[str, Any], ids: tuple[str, str]) -> None:
        """The attachment row of a busy session."""
        told = f"Another Claude session sent a message while you were working:\n{text}"
        reminder = f"<system-reminder>\n{told}\n\n{NOT_TYPED}\n</system-reminder>"
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "attachment": {
                    "type": "queued_command",
                    "prompt": text,
                    "source_uuid": ids[0],
                    "delivery_id": ids[1],
                    "commandMode": "prompt",
                    "origin": origin,
                    "timestamp": now_iso(),
                    "isMeta": True,
                },
                "type": "attachment",
                "uuid": str(uuid.uuid4()),
                "timestamp": now_iso(),
                "rendered": [{"content": reminder}],
                "renderedRole": "system",
                "session_id": self.session_id,
            }
            | self._tail()
        )

    def hold(self, text: str, origin: dict[str, Any]) -> None:
        """The row that tells the receiving user of a held line."""
        who = f"{origin.get('from')} [verified pid {origin['verifiedPeerPid']}]"
        told = (
            f"Held peer message — from {who}; preview: «{text}» — not delivered to Claude (1 held)."
        )
        self.add(
            {
                "parentUuid": str(uuid.uuid4()),
                "isSidechain": False,
                "type": "system",
                "subtype": "informational",
                "content": told,
                "isMeta": False,
                "timestamp": now_iso(),
                "uuid": str(uuid.uuid4()),
                "level": "warning",
            }
            | self._tail()
        )

    def block(self, prompt: str, reason: str) -> None:
        """The row of a prompt that a hook blocked; no model read it."""
        told = f"UserPromptSubmit operation blocked by hook:\n{reason}\n\nOriginal prompt: {prompt}"
        self.add(
            {
                "parentUuid": None,
                "isSidechain": False,
                "type": "system",
                "subtype": "informational",
                "content": told,
                "isMeta": False,
                "timestamp": now_iso(),
                "uuid": str(uuid.uuid4()),
                "level": "warning",
                "preventContinuation": True,
                "promptSubmitEnding": {
                    "ending": {"kind": "blocked_by_hook", "reason": reason},
                    "promptKept": False,
                },
            }
            | self._tail()
            | {"entrypoint": "sdk-cli"}
        )

    def _tail(self) -> dict[str, Any]:
        return {
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": "2.1.332",
            "gitBranch": "HEAD",
        }
