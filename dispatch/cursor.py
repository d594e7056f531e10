"""Where a reader may stand: a number, in any spelling of it, that the journal has reached.  Pure.

A cursor that is refused changes nothing: it is never rounded, never reset to the start.
"""

from __future__ import annotations

from dispatch.errors import CursorRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.senders import Registered

# Beyond what SQLite can count; Python reads no number of more than 4,300 digits.
_BEYOND = 1 << 63
_MOST_DIGITS = 18
_SHOWN = 20


class CursorNotANumber(CursorRefused):
    """Something else than digits behind one sign."""

    error = "cursor_not_a_number"

    def __init__(self, text: str, cursor: int | None):
        super().__init__(cursor, f"the cursor {_cut(text)!r} is not a number")


class CursorNegative(CursorRefused):
    """Below the first entry."""

    error = "cursor_negative"

    def __init__(self, text: str, cursor: int | None):
        super().__init__(cursor, f"the cursor {_cut(text)} is negative")


class CursorAhead(CursorRefused):
    """Beyond the newest entry, *tip*: what comes up to there would never be read."""

    error = "cursor_ahead"

    def __init__(self, text: str, cursor: int | None, tip: int):
        self.tip = tip
        super().__init__(cursor, f"the cursor {_cut(text)} is ahead of the newest entry, {tip}")


class CursorBehind(CursorRefused):
    """Before what the reader has seen already."""

    error = "cursor_behind"
    hint = "--allow-rewind goes back on purpose"

    def __init__(self, text: str, cursor: int):
        why = f"the cursor {_cut(text)} is behind the reader's own, {cursor}"
        super().__init__(cursor, why)


class CursorInvalid(CursorRefused):
    """The reader's own cursor is no place in the journal, whose newest entry is *tip*."""

    error = "cursor_invalid"
    hint = "find the entry that was read last, then zdo ack --cursor N --allow-rewind"

    def __init__(self, cursor: int, tip: int):
        self.tip = tip
        why = f"the reader's own cursor, {cursor}, is no place in a journal that ends at {tip}"
        super().__init__(cursor, why)


def parse_cursor(text: str, own: int | None) -> int:
    """The number that *text* spells, or CursorNotANumber, or CursorNegative.

    One sign and ASCII digits: Python's own underscores, blanks and foreign digits are
    somebody's accident.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()):
        raise CursorNotANumber(text, own)
    digits = digits.lstrip("0")
    if text[0] == "-" and digits:
        raise CursorNegative(text, own)
    return int(digits or "0") if len(digits) <= _MOST_DIGITS else _BEYOND


def place(text: str, own: int | None, tip: int) -> int:
    """The place in a journal up to *tip* that *text* names; *own* is where the asker stands."""
    number = parse_cursor(text, own)
    if number > tip:
        raise CursorAhead(text, own, tip)
    return number


def next_place(text: str, own: int | None, tip: int, *, rewind: bool) -> int:
    """Where a reader that stands at *own* goes with *text*; only a *rewind* goes back."""
    number = place(text, own, tip)
    if not rewind and own is not None and number < own:
        raise CursorBehind(text, own)
    return number


def first_place(reader: Registered, tip: int, *, from_start: bool) -> int:
    """After which entry *reader* goes on; a fresh one at the tip, or *from_start*.

    CursorInvalid when it stands beyond the tip, of a database that was restored, say:
    going on at either end would lose entries in silence.
    """
    if reader.cursor is None:
        return 0 if from_start else tip
    if not 0 <= reader.cursor <= tip:
        raise CursorInvalid(reader.cursor, tip)
    return reader.cursor


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
