"""How a text names a ticket, and how a correlation id names a process (INTERFACE 7).  Pure."""

from __future__ import annotations

from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_PREFIXES = ("TK", "tk", "Tk", "tK")
_LONGEST_CORRELATION = 200
_PID_DIGITS, _PID_MOST = 10, (1 << 31) - 1
_UUID_LENGTHS = (32, 36)


def ticket_of(text: object) -> str | None:
    """The ticket that *text* is an id of: `TK-11665` of `tk-11665` and `TK-11665-fix-x`."""
    if not isinstance(text, str) or "\n" in text:
        return None
    prefix, *rest = text.split("-", 2)
    return f"TK-{rest[0]}" if prefix in _PREFIXES and rest and _is_number(rest[0]) else None


def tickets_in(text: str) -> set[str]:
    """Every ticket that stands in *text* as a word of its own."""
    import re

    # ASCII: the sign of the kelvin is no K, and a word ends where ours do.
    found = re.findall(r"\bTK-([0-9]+)\b", text, re.IGNORECASE | re.ASCII)
    return {f"TK-{number}" for number in found}


def pid_named(correlation: object, pattern: re.Pattern[str] | None) -> int | None:
    """The process that *correlation* names: in the one group of *pattern*, or in our forms."""
    if type(correlation) is int and 0 < correlation <= _PID_MOST:
        correlation = str(correlation)
    if not isinstance(correlation, str) or len(correlation) > _LONGEST_CORRELATION:
        return None
    if pattern is None:
        digits = _digits_in(correlation)
    else:
        match = pattern.match(correlation)
        digits = (match[1] or "") if match else ""
    if len(digits) > _PID_DIGITS or not _is_number(digits):
        return None
    return pid if 0 < (pid := int(digits)) <= _PID_MOST else None


def _digits_in(correlation: str) -> str:
    """What stands for the pid: `<pid>`, `pid:<pid>`, `<pid>-…`, `<word>-<pid>-…`; else nothing."""
    if _begins_with_uuid(correlation):
        return ""
    if correlation.startswith("pid:"):
        return correlation.removeprefix("pid:")
    first, *rest = correlation.split("-", 2)
    if not rest or _is_number(first):
        return first
    # `TK-11665-fix-x` has the form too, and would name whatever process 11665 is.
    is_word = first.isascii() and first.isidentifier() and first not in _PREFIXES
    return rest[0] if is_word and len(rest) > 1 else ""


def _begins_with_uuid(text: str) -> bool:
    # Most are shorter, and a million of them may be asked about.
    return len(text) >= min(_UUID_LENGTHS) and any(
        parse_uuid(text[:length]) is not None for length in _UUID_LENGTHS
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
