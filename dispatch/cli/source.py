"""Where the line comes from: argv, stdin or a file, read no further than a line can be long."""

from __future__ import annotations

from dispatch.errors import LineInvalid
from dispatch.line import MOST_BYTES, line_of_bytes, line_of_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

# One byte more shows that it is too long, another is the newline that does not count.
_READ = MOST_BYTES + 2


def line_source(text: str | None, file: str | None, stdin: BinaryIO) -> Callable[[], bytes]:
    """A reader of the line, called once, when it is its turn to be judged."""
    if file is not None:
        return lambda: _from_file(file)
    if text == "-":
        return lambda: _from_pipe(stdin)
    return lambda: line_of_text(text or "")


def _from_pipe(stdin: BinaryIO) -> bytes:
    try:
        return line_of_bytes(stdin.read(_READ))
    except OSError as error:
        raise LineInvalid(f"stdin cannot be read ({error.strerror})") from error


def _from_file(path: str) -> bytes:
    try:
        # argv was read as UTF-8; a path is the bytes that the shell gave.
        with open(path.encode(errors="surrogateescape"), "rb") as file:
            return line_of_bytes(file.read(_READ))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise LineInvalid(f"{path} cannot be read ({why})") from error
