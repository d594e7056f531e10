"""The envelope: one kiss with its ids and its nonce, whole or not at all.  Pure.

It crosses a folder between two processes, so reading is exact: a field missing,
added, twice or of another type means torn, never a guess.
"""

from __future__ import annotations

import json

from carrier.errors import EnvelopeTorn
from registry.ids import parse_uuid
from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

VERSION = 1
LINE_LIMIT = 65_536

_INT_LIMIT = 1 << 63
_SECONDS_LIMIT = 86_400
_NONE: Mapping[str, object] = {}
_IDS = ("delivery_id", "msg_id", "session_id", "postbox")


class Envelope(Record):
    """What one attempt carries, from the dispatcher to the wrapper."""

    delivery_id: str
    msg_id: str  # the delivery as the door knows it
    attempt: int
    nonce: str  # fresh for each attempt; only this attempt's receipt can repeat it
    sender: str
    line: str  # data: it appears here and at the door, nowhere else
    target_id: str  # as the user named the target
    session_id: str  # T, the running session
    pid: int  # of T's row when it was resolved
    postbox: str  # P, the session that is resumed
    claude_dir: str
    settle_s: float
    wrapper_s: float = 10.0
    v: int = VERSION


def to_bytes(envelope: Envelope) -> bytes:
    """*envelope* as one JSON object, pure ASCII, so that every text survives."""
    return json.dumps(fields(envelope)).encode("ascii")


def from_bytes(content: bytes) -> Envelope:
    """The envelope in *content*; EnvelopeTorn when it is not exactly one."""
    envelope = Envelope(**read_exactly(content, Envelope))
    for name in _IDS:
        if parse_uuid(getattr(envelope, name)) != getattr(envelope, name):
            raise EnvelopeTorn(f"{name} is not a canonical UUID")
    try:
        size = len(envelope.line.encode())
    except UnicodeEncodeError:
        # The error holds the line itself, so it must not be chained into a traceback.
        raise EnvelopeTorn("the line is not UTF-8") from None
    if not 0 < size <= LINE_LIMIT:
        raise EnvelopeTorn(f"the line has {size} bytes")
    return envelope


def read_exactly(
    content: bytes, kind: type[Record], later: Mapping[str, object] = _NONE
) -> dict[str, Any]:
    """The fields of one *kind* of record in JSON *content*; EnvelopeTorn when they do not fit.

    The annotations of the record are the schema; fields that came *later* may be missing
    in a file of before, and have that value then.  No value is ever quoted in the error.
    """
    given = {**later, **_parse(content)}
    schema: dict[str, Any] = kind.__annotations__
    if given.keys() != schema.keys():
        raise EnvelopeTorn(f"fields missing or unknown: {len(given)} of {len(schema)}")
    for name, annotation in schema.items():
        if not _FITS[annotation](given[name]):
            raise EnvelopeTorn(f"{name} is no {annotation}")
    if "v" in given and given["v"] != VERSION:
        raise EnvelopeTorn("a version that this zdo does not know")
    return given


def _parse(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise EnvelopeTorn("no whole JSON object") from None
    if not isinstance(given, dict):
        raise EnvelopeTorn("no JSON object")
    return given


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands twice")
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_int(value: object) -> bool:
    return type(value) is int and -_INT_LIMIT < value < _INT_LIMIT


def _is_seconds(value: object) -> bool:
    # NaN fails every comparison and infinity the second one.
    return type(value) in (int, float) and 0 <= value <= _SECONDS_LIMIT  # type: ignore[operator]


_FITS: dict[str, Callable[[object], bool]] = {
    "str": _is_text,
    "str | None": lambda value: value is None or _is_text(value),
    "int": _is_int,
    "int | None": lambda value: value is None or _is_int(value),
    "float": _is_seconds,
    "bool": lambda value: isinstance(value, bool),
    "tuple[Notice, ...]": lambda value: isinstance(value, list),
}
