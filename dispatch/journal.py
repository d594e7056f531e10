"""What happened, in order: every delivery with its evidence, for a later process.

Events are only ever added.  No event holds the line itself, only its length
and digest.
"""

from __future__ import annotations

import json

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

ACCEPTED, REFUSED, JUDGED, VERIFIED = "accepted", "refused", "judged", "verified"
# Of a line that a queue holds; CLAIMED begins an attempt of the relay's.
QUEUED, CLAIMED, DEFERRED = "queued", "claimed", "deferred"
REQUEUED, DROPPED = "requeued", "dropped"

BEGUN = (ACCEPTED, CLAIMED)
VERDICTS = (JUDGED, VERIFIED)


class Event(Record):
    """One entry: *body* is JSON text, *name* the class of a verdict or None."""

    id: int
    delivery: str
    at: float
    kind: str
    name: str | None
    body: str


def add(link: Connection, delivery: str, kind: str, body: dict[str, Any], now: float) -> None:
    """Write one event; it is kept when the surrounding transaction is."""
    link.execute(
        "INSERT INTO event(delivery, at, kind, class, body) VALUES(?,?,?,?,?)",
        (delivery, now, kind, body.get("class"), json.dumps(body)),
    )


def story(link: Connection, delivery: str) -> tuple[Event, ...]:
    """All events of *delivery*, oldest first; empty when it is unknown."""
    rows = link.execute(
        "SELECT id, delivery, at, kind, class, body FROM event WHERE delivery = ? ORDER BY id",
        (delivery,),
    )
    return tuple(Event(*row) for row in rows)


def newest(link: Connection, delivery: str) -> tuple[str | None, str]:
    """Class and body of the newest entry about the line *delivery*; a body of nothing if none.

    A kiss with its key that was refused, with other bytes even, says nothing about it.
    """
    found: tuple[str | None, str] | None = link.execute(
        "SELECT class, body FROM event WHERE delivery = ? AND kind <> ? ORDER BY id DESC LIMIT 1",
        (delivery, REFUSED),
    ).fetchone()
    return found or (None, "{}")


def session_of(link: Connection, delivery: str) -> str | None:
    """The session that the newest attempt of *delivery* was for; None where nothing says so."""
    marks = ", ".join("?" * len(BEGUN))
    found = link.execute(
        f"SELECT body FROM event WHERE delivery = ? AND kind IN ({marks})"  # noqa: S608 - ours
        " ORDER BY id DESC LIMIT 1",
        (delivery, *BEGUN),
    ).fetchone()
    try:
        session: str | None = json.loads(found[0])["result"]["target"]["session_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return session
