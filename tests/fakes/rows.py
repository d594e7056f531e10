"""Lines of the spool as values, whole by construction."""

from __future__ import annotations

import hashlib
from typing import Any

from dispatch.kept import FIRST, FRESH, QUEUED, Kept, seal_of_line
from dispatch.tables import NOBODY
from registry.record import replace
from tests.fakes.envelopes import DELIVERY

LINE = b"tests are green"


def a_line(**changes: Any) -> Kept:
    """A line that waits for the relay, with *changes* and a seal that fits them."""
    body = changes.get("body", LINE)
    plain = {
        "id": 1,
        "key": DELIVERY,
        "digest": hashlib.sha256(body).digest(),
        "target": "fable",
        "body": body,
        "sender": "anonymous",
        "given_key": "",
        "state": QUEUED,
        "status": FRESH,
        "attempts": FIRST,
        "tries": FIRST,
        "due_at": 1.5,
        "kept": 1,
        "idle": 0,
        "owner": NOBODY,
        "postbox": NOBODY,
        "born": 1.5,
        "created_at": 1_796_048_000.25,
        "seal": b"",
    }
    line = Kept(**(plain | changes))
    return line if line.seal else replace(line, seal=seal_of_line(line))
