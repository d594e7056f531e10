"""What a fake session leaves for others to find: its row and its key."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from typing import TYPE_CHECKING, Any

from dispatch.rig.peers import pid_domain, start_of
from dispatch.rig.transcript import write_file

if TYPE_CHECKING:
    from collections.abc import Mapping


class Registration:
    """Row and key of this process, whose door is at *path*."""

    def __init__(self, config: str, path: str, cwd: str):
        self.path, self.cwd, self.pid = path, cwd, os.getpid()
        self.secret = secrets.token_hex(16)
        self.started = int(time.time() * 1000)
        digest = hashlib.sha256(path.encode()).hexdigest()
        os.makedirs(f"{config}/sessions", mode=0o700, exist_ok=True)
        self.row_file = f"{config}/sessions/{self.pid}.json"
        self.key_file = f"{config}/sessions/{self.pid}.{digest}.key"

    def write(self, script: Mapping[str, Any]) -> None:
        """Write row and key, or take them away."""
        wanted = {self.row_file: self.row(script), self.key_file: self.key(script)}
        for path, content in wanted.items():
            if script["registered"] and content is not None:
                write_file(path, json.dumps(content, separators=(",", ":")), 0o644)
            elif os.path.exists(path):
                os.unlink(path)

    def row(self, script: Mapping[str, Any]) -> dict[str, Any]:
        """The row in the shape that 2.1.332 writes."""
        now = int(time.time() * 1000)
        row = {
            "pid": self.pid,
            "sessionId": script["session_id"],
            "cwd": self.cwd,
            "startedAt": self.started,
            "procStart": start_of(self.pid),
            "version": "2.1.332",
            "peerProtocol": 1,
            "peerFeatures": ["notify_idle", "reply_across_default_dirs", "artifact_yield"],
            "kind": "interactive",
            "entrypoint": "cli",
            "pidDomain": pid_domain(),
            "asksForConvertedSkills": None,
            "messagingSocketPath": self.path,
            "name": script["name"],
            "nameSource": "derived",
            "nameSince": self.started,
            "status": script["status"],
            "updatedAt": now,
            "statusUpdatedAt": now,
            "waitingFor": script["waiting_for"],
        }
        absent = ("status", "waitingFor", "name", "pidDomain")
        return {name: value for name, value in row.items() if name not in absent or value}

    def key(self, script: Mapping[str, Any]) -> dict[str, Any] | None:
        """The key file's content; None when there is to be none."""
        if not script["token"]:
            return None
        proof = {"procStart": start_of(self.pid), "pidDomain": pid_domain()}
        return {"peerToken": self.secret} | proof

    def remove(self) -> None:
        """Take both away, as a session does when it ends by itself."""
        for path in (self.row_file, self.key_file):
            if os.path.exists(path):
                os.unlink(path)
