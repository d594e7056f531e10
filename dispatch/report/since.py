"""From when on somebody wants to look back: 30m, 12h, 7d, 2w, a date, or all.  Pure."""

from __future__ import annotations

import datetime as dt
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

ALL: Final = "all"
_UNITS: Final = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN: Final = re.compile(r"([0-9]{1,6})([mhdw])")


def since_of(text: str, now: float) -> float | None:
    """The moment that *text* names, seen from *now*; None: as far back as there is anything.

    A date without a time is its first moment, one without a zone is UTC's.  ValueError
    with a clause when it names no moment of the past.
    """
    if text == ALL:
        return None
    if (span := _SPAN.fullmatch(text)) is not None:
        at = now - int(span[1]) * _UNITS[span[2]]
    else:
        at = _moment(text)
    if at >= now:
        raise ValueError("lies not in the past")
    return at


def _moment(text: str) -> float:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("is neither a span like 30m, 12h, 7d, 2w nor a date") from None
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()
