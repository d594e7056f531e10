"""Which rows of a database can be believed.  Pure.

A line is whole when nothing changed that never may; it is plausible when zdo could
have written what may change; and the journal must not say that it went further.
"""

from __future__ import annotations

import json
import math

from dispatch import journal, kept
from dispatch.seal import digest_of, seal_of
from dispatch.senders import CURSOR_0, LOST_CURSOR, canonical
from dispatch.verdict import DONE, FAILED, OPEN, TABLE
from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from dispatch.verdict import Verdict

_MOST_TRIES = 1 << 20
_LAST_MOMENT = 1e11  # the year 5138


def _is_uuid(text: str) -> bool:
    return parse_uuid(text) == text


def _is_count(number: int) -> bool:
    return kept.FIRST <= number < _MOST_TRIES


def _is_flag(number: int) -> bool:
    return number in (0, 1)


def _is_status(text: str) -> bool:
    first, *rest = text.split(".")
    return first in tuple("0245") and [len(p) for p in rest if p.isdecimal()] == [3, 3]


def _is_moment(at: float) -> bool:
    """Whether *at* is a time that a clock may show; one beyond has no spelling either."""
    return math.isfinite(at) and abs(at) < _LAST_MOMENT


def _anything(_: object) -> bool:
    return True


# Each column of a line: its type, and what zdo writes into one that may change.
_LINE: dict[str, tuple[type, Callable[[Any], bool]]] = {
    "id": (int, _anything),
    "key": (str, _anything),
    "digest": (bytes, _anything),
    "origin": (str, _anything),
    "station": (str, _anything),
    "target": (str, _anything),
    "sender": (str, _anything),
    "given_key": (str, _anything),
    "idle": (int, _anything),
    "seal": (bytes, _anything),
    "state": (int, kept.STATE_NAMES.__contains__),
    "attempts": (int, _is_count),
    "due_at": (float, _is_moment),
    "claimed_at": (float, _is_moment),
    "settled_at": (float, _is_moment),
    "owner": (str, _is_uuid),
    "status": (str, _is_status),
    "tries": (int, _is_count),
    "kept": (int, _is_flag),
    "postbox": (str, _is_uuid),
    "born": (float, _is_moment),
    "created_at": (float, _is_moment),
    "body": (bytes, _anything),
}
LINE_COLUMNS = tuple(_LINE)
EVENT_COLUMNS = ("id", "delivery", "at", "kind", "class", "body")
PULSE_COLUMNS = ("id", "at", "watched", "pruned_at")

_READER: dict[str, tuple[type, Callable[[Any], bool]]] = {
    "id": (int, _anything),
    "session": (str, lambda text: canonical(text) == text),
    "name": (str, str.isprintable),
    "registered_at": (float, _is_moment),
    "deleted_at": (float, _is_moment),
    "cursor": (int, LOST_CURSOR.__le__),
}
READER_COLUMNS = tuple(_READER)

_SEALED = ("key", "digest", "origin", "station", "target", "sender", "given_key", "idle")
_MAY_BE_IN = (DONE, OPEN, FAILED)
_AT_ITS_START = ("delivered-start", "surfaced")


def is_whole(row: dict[str, Any]) -> bool:
    """Whether nothing of the line *row* changed that never may, its bytes least of all."""
    if not all(type(row[name]) is _LINE[name][0] for name in (*_SEALED, "seal", "body", "state")):
        return False
    # A delivered line gives its bytes back after a month (dispatch/prune.py).
    is_pruned = row["body"] == b"" and row["state"] == kept.DELIVERED
    if not is_pruned and digest_of(row["body"]) != row["digest"]:
        return False
    return bool(row["seal"] == seal_of(**{name: row[name] for name in _SEALED}))


def is_known_damage(row: dict[str, Any]) -> bool:
    """Whether the line *row* was found damaged before, and is dead for it."""
    return (row["state"], row["status"]) == (kept.DEAD, kept.DAMAGED)


def odd_columns(row: dict[str, Any]) -> tuple[str, ...]:
    """The columns of the line *row* that hold what zdo never writes there."""
    return _odd(row, _LINE)


def is_event(row: dict[str, Any]) -> bool:
    """Whether *row* is an entry that the journal could have written."""
    if not (type(row["at"]) is float and math.isfinite(row["at"]) and type(row["kind"]) is str):
        return False
    try:
        body = json.loads(row["body"])
        told = body.get("class")
        named = str(body.get("result", {}).get("delivery_id", row["delivery"]))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return False
    return bool((row["class"], row["delivery"]) == (told, named))


def is_pulse(rows: list[dict[str, Any]]) -> bool:
    """Whether *rows* are the one row that the pulse has."""
    return [row["id"] for row in rows] == [1] and all(
        type(rows[0][name]) is float and math.isfinite(rows[0][name]) for name in PULSE_COLUMNS[1:]
    )


def is_reader(row: dict[str, Any]) -> bool:
    """Whether *row* has a session that may read; in another table's page none would be seen."""
    fits = _READER["session"][1]
    return all(type(row[name]) is kind for name, (kind, _) in _READER.items()) and fits(
        row["session"]
    )


def odd_of_reader(row: dict[str, Any], tip: int) -> tuple[str, ...]:
    """The columns of the reader *row* that zdo never writes so, in a journal up to *tip*."""
    odd = _odd(row, _READER)
    ahead = "cursor" not in odd and row["cursor"] > CURSOR_0 + tip
    return (*odd, "cursor") if ahead else odd


def contradicts(row: dict[str, Any], told: Iterable[tuple[str, str | None]]) -> bool:
    """Whether the journal, *told* as kinds and classes, says other than the line *row*.

    It would go to the door again although it may be in; or it counts as delivered
    although nobody ever found it so.
    """
    verdicts: list[Verdict | None] = []
    begun = False
    for kind, name in told:
        if kind in (*journal.BEGUN, journal.QUEUED, journal.REQUEUED):
            begun = kind in journal.BEGUN
            verdicts.append(None)
        elif kind in (*journal.VERDICTS, journal.DROPPED):
            begun = False
            verdicts.append(TABLE.get(name or ""))
    if not verdicts:
        return False  # nothing is told of it
    if row["state"] in (kept.SENT, kept.DELIVERED):
        return not any(each and each.state in _AT_ITS_START for each in verdicts)
    last = verdicts[-1]
    return may_go(row) and (begun or (last is not None and last.fate in _MAY_BE_IN))


def may_go(row: dict[str, Any]) -> bool:
    """Whether the line *row* would be tried again, by the relay or for its key."""
    if row["state"] == kept.DEAD:
        return row["status"] in (kept.AGAIN, kept.WAITING, kept.OUT_OF_TIME)
    return bool(row["state"] == kept.QUEUED)


def _odd(
    row: dict[str, Any], columns: dict[str, tuple[type, Callable[[Any], bool]]]
) -> tuple[str, ...]:
    return tuple(
        name
        for name, (kind, fits) in columns.items()
        if type(row[name]) is not kind or not fits(row[name])
    )
