"""A ledger of ticket events, line by line as trackers write it."""

from __future__ import annotations

import json
import os
import time
from typing import Any


def stamp(seconds_ago: float = 0.0) -> str:
    """The time so many seconds ago, with its zone."""
    at = time.time() - seconds_ago
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1e6):06d}Z"


class Tickets:
    """`<root>/.claude/tickets/events.jsonl`, growing."""

    def __init__(self, root: str):
        self.path = f"{root}/.claude/tickets/events.jsonl"
        os.makedirs(os.path.dirname(self.path), exist_ok=True)

    def add(self, ticket: str, kind: str, ago: float = 0.0, **more: Any) -> None:
        """One event on *ticket*, *ago* seconds ago; *more* are its other fields."""
        plain = {"id": ticket, "type": kind, "agent": "somebody", "ts": stamp(ago)}
        self.write(json.dumps(plain | more) + "\n")

    def write(self, text: str) -> None:
        """*text* as it is, at the end of the file."""
        with open(self.path, "a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
