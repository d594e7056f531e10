"""Envelopes, receipts and recorded lines for tests, valid by construction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from carrier.envelope import Envelope
from carrier.proof import Receipt

T = "388e03f6-0000-4000-8000-000000000001"
P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
DELIVERY = "d0000000-0000-4000-8000-000000000001"
MSG = "e0000000-0000-4000-8000-000000000001"

_ROOT = Path(__file__).parents[2]
# What the rig plays is in the distribution, the rest is for tests alone.
_RECORDED = (_ROOT / "tests" / "golden" / "claude-code-2.1.332", _ROOT / "dispatch/rig/recorded")


def an_envelope(**changes: Any) -> Envelope:
    """An envelope for T through P with *changes*."""
    plain = {
        "delivery_id": DELIVERY,
        "msg_id": MSG,
        "attempt": 1,
        "nonce": "n0nce",
        "sender": "anonymous",
        "line": "one line of text",
        "target_id": "fable",
        "session_id": T,
        "pid": 4201,
        "postbox": P,
        "claude_dir": "/home/u/.claude",
        "settle_s": 0.25,
    }
    return Envelope(**(plain | changes))


def a_round(count: int, **changes: Any) -> tuple[Envelope, ...]:
    """Envelopes for *count* lines of one round, each with ids of its own, all with *changes*."""
    return tuple(
        an_envelope(
            **(
                {
                    "delivery_id": f"d0000000-0000-4000-8000-{number:012d}",
                    "msg_id": f"e0000000-0000-4000-8000-{number:012d}",
                    "nonce": f"n0nce{number}",
                    "line": f"line {number}",
                }
                | changes
            )
        )
        for number in range(1, count + 1)
    )


def a_receipt(**changes: Any) -> Receipt:
    """The receipt of a written line with *changes*."""
    plain = {
        "nonce": "n0nce",
        "delivery_id": DELIVERY,
        "attempt": 1,
        "session_id": T,
        "pid": 4201,
        "msg_id": MSG,
        "sender": "anonymous",
        "door": "inbox",
        "at": "2026-11-30T14:24:04.751Z",
        "wrote": True,
        "eof": True,
        "found": None,
        "detail": None,
        "notices": (),
        "transcript": None,
        "offset": 0,
        "surfaced": False,
        "moved_to": None,
        "reply": None,
    }
    return Receipt(**(plain | changes))


def receipt_for(envelope: Envelope, **changes: Any) -> Receipt:
    """The receipt of the written line in *envelope* with *changes*."""
    names = ("nonce", "delivery_id", "attempt", "session_id", "pid", "msg_id", "sender")
    return a_receipt(**({name: getattr(envelope, name) for name in names} | changes))


def recorded(name: str) -> bytes:
    """The recorded file *name*."""
    (path,) = [folder / name for folder in _RECORDED if (folder / name).exists()]
    return path.read_bytes()


def recorded_rows(name: str) -> list[dict[str, Any]]:
    """The objects in the recorded file *name*, one a line."""
    return [json.loads(line) for line in recorded(name).split(b"\n") if line]


def shape(value: Any) -> Any:
    """The names and types of *value*, without its values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return type(value).__name__
