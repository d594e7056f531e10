"""What a line is: UTF-8, 1 to 65,536 bytes, not blank, no control characters.

Pure, and the only judge of it: the same rule for argv, stdin and a file.
"""

from __future__ import annotations

from carrier.envelope import LINE_LIMIT
from dispatch.errors import LineInvalid

MOST_BYTES = LINE_LIMIT

# Newline and tab are text; the rest of Unicode's Cc would act on a terminal.
_CONTROL = frozenset(map(chr, (*range(0x20), *range(0x7F, 0xA0)))) - {"\n", "\t"}


def line_of_text(text: str) -> bytes:
    """The bytes of the line *text* as the shell gave it, or LineInvalid.

    Bytes of argv that are not UTF-8 arrive as lone surrogates (PEP 383).
    """
    try:
        return _checked(text, text.encode())
    except UnicodeEncodeError as error:
        offset = len(text[: error.start].encode())
        raise LineInvalid("the line is not UTF-8 (a lone surrogate)", offset) from None


def line_of_bytes(content: bytes) -> bytes:
    """The line in *content* of a pipe or file: exactly one trailing newline is not part of it."""
    line = content.removesuffix(b"\n")
    if len(line) > MOST_BYTES:
        raise LineInvalid(f"the line is longer than {MOST_BYTES} bytes", MOST_BYTES)
    try:
        return _checked(line.decode(), line)
    except UnicodeDecodeError as error:
        raise LineInvalid("the line is not UTF-8", error.start) from None


def _checked(text: str, line: bytes) -> bytes:
    if len(line) > MOST_BYTES:
        raise LineInvalid(f"the line is longer than {MOST_BYTES} bytes", MOST_BYTES)
    if not line:
        raise LineInvalid("the line is empty", 0)
    for place, char in enumerate(text):
        if char in _CONTROL:
            offset = len(text[:place].encode())
            raise LineInvalid(f"the line has a control character, U+{ord(char):04X},", offset)
    if text.isspace():
        raise LineInvalid("the line is blank", 0)
    return line
