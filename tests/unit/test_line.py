"""What a line is, from argv and from a pipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.errors import LineInvalid
from dispatch.line import MOST_BYTES, line_of_bytes, line_of_text


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("", 0),
        ("  \n\t ", 0),
        ("a\0b", 1),
        ("é\x1b[200~", 2),
        ("a\rb", 1),
        ("\x7f", 0),
        ("ab\x85", 2),
        ("é\udcff", 2),
        ("\ud800", 0),
        ("x" * (MOST_BYTES + 1), MOST_BYTES),
    ],
)
def test_a_bad_line_is_refused_with_the_byte_to_blame(text, offset):
    """The offset counts bytes of UTF-8, not characters."""
    with pytest.raises(LineInvalid) as caught:
        line_of_text(text)

    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "two\nlines\tand a tab",
        "--help",
        "/clear",
        "@/etc/passwd",
        "!ls",
        "$(reboot) `id` \"'\\",
        "\u2028 \u202e \N{ZERO WIDTH SPACE}x",
        "x" * MOST_BYTES,
        "é" * (MOST_BYTES // 2),
    ],
)
def test_a_good_line_is_its_own_bytes(text):
    """Nothing is trimmed, quoted or normalised."""
    assert text.encode() == line_of_text(text)


def test_a_pipe_loses_exactly_one_newline():
    """A second trailing newline belongs to the line."""
    assert line_of_bytes(b"x\n") == b"x"
    assert line_of_bytes(b"x\n\n") == b"x\n"


def test_a_pipe_with_wrong_bytes_names_the_first_of_them():
    """Bytes that are not UTF-8 are refused where they begin."""
    with pytest.raises(LineInvalid, match="at byte 2"):
        line_of_bytes(b"ab\xff\xfe")


def test_a_pipe_that_is_too_long_is_refused_before_it_is_decoded():
    """The limit counts bytes."""
    with pytest.raises(LineInvalid, match="longer"):
        line_of_bytes(b"\xff" * (MOST_BYTES + 1))


@given(st.text())
def test_argv_and_pipe_agree_on_every_text(text):
    """One rule, whichever way the line came."""

    def outcome(read, given):
        try:
            return read(given)
        except LineInvalid as error:
            return error.offset

    piped = text + "\n"
    assert outcome(line_of_text, text) == outcome(line_of_bytes, piped.encode())
