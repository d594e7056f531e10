"""Rows, ledgers and looks at processes as values, for those who ask whose ticket is whose."""

from __future__ import annotations

import json
from typing import Any

from registry.clock import iso
from registry.ledger import Ledger, fold
from registry.row import Row
from registry.surroundings import Member, Seen

NOW = 1_796_048_000.0
PID = 4201
SESSION = "388e03f6-0000-4000-8000-000000000001"
PANE = "w0t1p0:6E0DD0A8-7D1C-4A4B-9B1B-3C6B3F1C9E11"
AGENT = "claude@" + PANE


def a_row(pid: int = PID, session_id: str = SESSION) -> Row:
    """The row of one running session; only pid and session count here."""
    words = dict.fromkeys(Row.__annotations__)
    known = {"file": f"{pid}.json", "pid": pid, "session_id": session_id}
    return Row(**(words | known | {"socket": f"/tmp/{pid}.sock", "proc_start": ""}))


def an_event(kind: str, ticket: str, after: float = 0, **more: Any) -> bytes:
    """One line of a ledger, *after* seconds later than NOW."""
    told = {"id": ticket, "type": kind, "agent": "me", "ts": iso(NOW + after)}
    return json.dumps(told | more).encode()


def a_ledger(*lines: bytes, now: float = NOW) -> Ledger:
    """What *lines* say as it is *now*."""
    ledger = Ledger()
    fold(ledger, lines, now)
    return ledger


def a_look(pid: int = PID, **changes: Any) -> Seen:
    """A process that started an hour before NOW in PANE, with *changes*."""
    started = changes.setdefault("started", NOW - 3600)
    plain = {
        "pid": pid,
        "argv": ("claude",),
        "tsid": PANE,
        "family": (Member(pid, started),),
        "blind": (),
    }
    return Seen(**(plain | changes))
