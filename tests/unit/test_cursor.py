"""Where a reader may stand."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.cursor import (
    CursorAhead,
    CursorBehind,
    CursorInvalid,
    CursorNegative,
    CursorNotANumber,
    first_place,
    next_place,
    parse_cursor,
    place,
)
from dispatch.errors import CursorRefused
from dispatch.senders import Registered

TIP = 42


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("42", 42),
        ("+42", 42),
        ("-0", 0),
        ("+0", 0),
        ("-000", 0),
        ("0", 0),
        ("0042", 42),
        ("0" * 5000 + "7", 7),
        ("9" * 18, 10**18 - 1),
        ("1" + "0" * 18, 1 << 63),
        ("1" + "0" * 5000, 1 << 63),
    ],
)
def test_a_number_is_read_in_its_canonical_form(text, number):
    """One sign, leading zeros; and what nothing can count is beyond everything."""
    assert number == parse_cursor(text, None)


@pytest.mark.parametrize(
    "text",
    ["", " ", " 4", "4 ", "4_2", "\uff14\uff12", "\u0664", "\xb2", "4.0", "1e3", "0x10",
     "--4", "+-4", "+", "-", "null", "nan", "inf", "\udc80", "4\n", "4\x00"],
)  # fmt: skip
def test_what_is_no_number_is_told_so(text):
    """Python would take half of these; none is what a cursor looks like."""
    with pytest.raises(CursorNotANumber, match="is not a number") as told:
        parse_cursor(text, 7)

    assert (7, "cursor_not_a_number") == (told.value.cursor, told.value.error)


@pytest.mark.parametrize("text", ["-1", "-0001", "-" + "9" * 5000])
def test_a_negative_number_is_told_so(text):
    """However long it is."""
    with pytest.raises(CursorNegative, match="is negative") as told:
        parse_cursor(text, None)

    assert (None, "cursor_negative") == (told.value.cursor, told.value.error)
    assert len(str(told.value)) < 60


@given(st.text(max_size=30) | st.from_regex(r"[+-]?[0-9_ ]{0,30}", fullmatch=True))
def test_every_text_is_a_number_or_a_refusal(text):
    """Total: never another error, never another number than the text spells."""
    number = None
    with contextlib.suppress(CursorRefused):
        number = parse_cursor(text, 1)

    digits = text.removeprefix("-" if text.startswith("-") else "+")
    is_number = digits.isascii() and digits.isdecimal() and (text[0] != "-" or int(digits) == 0)
    assert (min(int(text), 1 << 63) if is_number else None) == number or len(text) > 18


@pytest.mark.parametrize("text", ["43", "9" * 5000])
def test_a_cursor_ahead_of_the_newest_entry_is_refused_with_it(text):
    """What comes up to there would never be read."""
    with pytest.raises(CursorAhead, match=r"ahead of the newest entry, 42") as told:
        place(text, 7, TIP)

    assert (7, TIP, "cursor_ahead") == (told.value.cursor, told.value.tip, told.value.error)


@pytest.mark.parametrize("text", ["0", "7", "42"])
def test_a_cursor_up_to_the_newest_entry_is_a_place(text):
    """Both ends are."""
    assert int(text) == place(text, None, TIP)


def test_nobody_goes_back_by_accident():
    """Standing still is not going back; with a rewind anything behind is right."""
    with pytest.raises(CursorBehind, match="the cursor 6 is behind the reader's own, 7") as told:
        next_place("6", 7, TIP, rewind=False)

    assert (7, "cursor_behind") == (told.value.cursor, told.value.error)
    assert [7, 8, 42] == [next_place(text, 7, TIP, rewind=False) for text in ("7", "8", "42")]
    assert 6 == next_place("6", 7, TIP, rewind=True)
    assert 0 == next_place("0", None, TIP, rewind=False)


def test_a_rewind_still_needs_a_place():
    """It allows one thing."""
    with pytest.raises(CursorAhead):
        next_place("43", 7, TIP, rewind=True)


def a_reader(cursor):
    """A registered session that stands at *cursor*."""
    return Registered("cron", None, 1.0, None, cursor)


@pytest.mark.parametrize(
    ("cursor", "from_start", "after"),
    [
        (None, False, TIP),
        (None, True, 0),
        (7, False, 7),
        (7, True, 7),
        (0, False, 0),
        (TIP, True, TIP),
    ],
)
def test_a_reader_goes_on_where_it_stands(cursor, from_start, after):
    """A fresh one at the tip, or at the start if it asks; the word means nothing later."""
    assert after == first_place(a_reader(cursor), TIP, from_start=from_start)


@pytest.mark.parametrize("from_start", [False, True])
@pytest.mark.parametrize("cursor", [43, -2])
def test_a_stored_cursor_that_is_no_place_is_refused_and_never_reset(cursor, from_start):
    """A restored database, a damaged row: only the reader knows what it has read."""
    with pytest.raises(CursorInvalid, match="no place in a journal that ends at 42") as told:
        first_place(a_reader(cursor), TIP, from_start=from_start)

    assert (cursor, TIP, "cursor_invalid") == (
        told.value.cursor,
        told.value.tip,
        told.value.error,
    )
