"""What `claude` printed, read as one Report or named as Unreadable.  Pure and total.

Work is bounded whatever the bytes: a broken object is skipped up to where it broke,
long ones and too many are refused.  Nothing here says whether a line was delivered.
"""

from __future__ import annotations

import json

from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

RESULT_CHARS = 2000
# A blocked prompt prints 2 KB and no carrier has a model: beyond this it is no report of ours.
LONGEST = 1 << 19
_MOST_STEPS = 2000
_WORD_CHARS = 200
_WHOLE_LIMIT = 1 << 53

# Pairs as they stand, so that a repeated key shows; a plain float() stays linear
# where int() is quadratic or refuses.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float)


class Report(Record):
    """The fields of claude's one result object; None where absent or of another type."""

    session_id: str | None  # canonical where it is a UUID, else as it stands
    is_error: bool | None
    subtype: str | None
    num_turns: int | None
    cost_usd: float | None  # of all runs of this session so far (CONTRACT b)
    result: str | None  # its first 2,000 characters
    api_error_status: int | None


class Unreadable(Record):
    """No single result object could be read."""

    why: str  # one of FAULTS


FAULTS = frozenset(
    ("empty", "none", "half", "several", "duplicate-keys", "no-session-id", "too-deep", "too-large")
)


class _Fault(Exception):
    """Reading stops here; the argument is one of FAULTS."""


def parse_report(stdout: bytes) -> Report | Unreadable:
    """The one object of type "result" in *stdout*: alone, amid noise, or inside an array.

    None, several, or one that is not whole is Unreadable (INTERFACE 7 a).
    """
    text = stdout.decode("utf-8", "replace").lstrip("\ufeff").strip()
    try:
        found = _only(_results(text))
        return Unreadable(_absence(text)) if found is None else _report(found)
    except _Fault as fault:
        return Unreadable(str(fault))
    except RecursionError:
        return Unreadable("too-deep")


def _results(text: str) -> Iterator[tuple[Any, ...]]:
    """The result objects of *text*, each as its pairs.

    Claude prints an object on one line, so lines that can hold one come first;
    only when there is none the text is read across lines.
    """
    import re

    budget = [_MOST_STEPS, 2 * LONGEST]
    marker = re.compile(r'"type"\s*:\s*"result"')
    end, found = -1, False
    for mark in marker.finditer(text):
        if mark.start() < end:
            continue
        start = max(text.rfind("\n", 0, mark.start()), end) + 1
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        for pairs in _objects(text[start:end], budget):
            found = True
            yield pairs
    if end >= 0 and not found:
        yield from _objects(text, budget)


def _objects(text: str, budget: list[int]) -> Iterator[tuple[Any, ...]]:
    """The outermost objects in *text* that are results; *budget*: steps and characters left."""
    budget[1] -= len(text)
    at = text.find("{")
    while True:
        budget[0] -= 1
        if len(text) > LONGEST or min(budget) < 0:
            raise _Fault("too-large")
        if at < 0:
            return
        try:
            pairs, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # What was read before the fault lies inside the broken object.
            end = max(error.pos, at + 1)
        else:
            if ("type", "result") in pairs:
                yield pairs
        at = text.find("{", end)


def _only(results: Iterator[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    first = next(results, None)
    if first is not None and next(results, None) is not None:
        raise _Fault("several")
    return first


def _absence(text: str) -> str:
    if not text:
        return "empty"
    # A word for people only: what was printed of a result, or of the events before it.
    broken = text.count("{") != text.count("}")
    return "half" if broken or '"session_id"' in text else "none"


def _report(pairs: tuple[Any, ...]) -> Report:
    given = dict(pairs)
    if len(given) != len(pairs):
        raise _Fault("duplicate-keys")
    session = _text(given.get("session_id"), _WORD_CHARS)
    if not session:
        raise _Fault("no-session-id")
    is_error = given.get("is_error")
    return Report(
        session_id=parse_uuid(session) or session,
        is_error=is_error if isinstance(is_error, bool) else None,
        subtype=_text(given.get("subtype"), _WORD_CHARS),
        num_turns=_whole(given.get("num_turns")),
        cost_usd=_number(given.get("total_cost_usd")),
        result=_text(given.get("result"), RESULT_CHARS),
        api_error_status=_whole(given.get("api_error_status")),
    )


def _text(value: object, limit: int) -> str | None:
    """The first *limit* characters of a text, printable anywhere: no lone surrogates."""
    if not isinstance(value, str):
        return None
    return value[:limit].encode("utf-8", "replace").decode()


def _number(value: object) -> float | None:
    # NaN and the infinities fail the comparison.
    return value if isinstance(value, float) and abs(value) < _WHOLE_LIMIT else None


def _whole(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None
