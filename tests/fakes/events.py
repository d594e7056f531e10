"""Ticket events as the lines of a ledger, without its file."""

from __future__ import annotations

import json
from typing import Any

from registry.clock import iso

NOW = 1_796_040_000.0  # 2026-11-30T12:00:00Z


def a_line(ticket: Any = "TK-1", kind: Any = "assign", at: float = NOW, **changes: Any) -> bytes:
    """One event, without the end of its line; *changes* to its fields, None takes one away."""
    event = {"id": ticket, "type": kind, "agent": "claude@pane", "ts": iso(at)} | changes
    return json.dumps({name: value for name, value in event.items() if value is not None}).encode()
