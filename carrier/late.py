"""What a target said of a held line after the attempt was over, as its ear wrote it down."""

from __future__ import annotations

import json

from carrier.envelope import read_exactly
from carrier.errors import EnvelopeTorn
from carrier.proof import Notice
from registry.durable import read_plain, write_whole
from registry.record import fields

LATE = "late.json"


def leave_late(attempt_dir: str, notices: tuple[Notice, ...]) -> None:
    """Put *notices* into *attempt_dir*, whole; killed in the middle, the earlier ones stand."""
    said = [fields(notice) for notice in notices]
    write_whole(f"{attempt_dir}/{LATE}", json.dumps(said).encode("ascii"))


def read_late(attempt_dir: str) -> tuple[Notice, ...]:
    """The notices that came late; none when nothing readable says so."""
    try:
        given = json.loads(read_plain(f"{attempt_dir}/{LATE}"))
        listed = given if isinstance(given, list) else []
        return tuple(Notice(**read_exactly(json.dumps(each).encode(), Notice)) for each in listed)
    except (OSError, ValueError, RecursionError, EnvelopeTorn):
        return ()
