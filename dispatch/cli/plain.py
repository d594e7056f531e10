"""`zdo kiss` in its plain spellings, parsed without Typer.

Typer costs five bare interpreters before it has read one word.  Anything that
is not plain here (an unknown option, a value that is missing or odd, --help)
is None, and Typer parses and words it.
"""

from __future__ import annotations

from dispatch.cli.options import FLAG, KISS, SECONDS, KissArgs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPTIONS = {option.flag: option for option in KISS}
_MOST_WORDS = 2


def parse_kiss(argv: list[str]) -> KissArgs | None:
    """The kiss that *argv* spells plainly, or None when it is for Typer to read."""
    if argv[:1] != ["kiss"]:
        return None
    words: list[str] = []
    given: dict[str, Any] = {}
    rest = iter(argv[1:])
    for part in rest:
        if part == "--":
            words += rest
        elif part == "-" or not part.startswith("-"):
            words.append(part)
        elif not _take_option(part, rest, given):
            return None
    if len(words) > _MOST_WORDS:
        return None
    address, line, *_ = (*words, None, None)
    return KissArgs(address=address, line=line, **given)


def _take_option(part: str, rest: Any, given: dict[str, Any]) -> bool:
    flag, equals, value = part.partition("=")
    option = _OPTIONS.get(flag)
    if option is None:
        return False
    if option.kind == FLAG:
        given[option.field] = True
        return not equals
    taken = value if equals else next(rest, None)
    # A value that looks like an option may be a forgotten one; Typer knows.
    if taken is None or (not equals and taken.startswith("-")):
        return False
    if option.kind == SECONDS:
        return _take_seconds(option.field, taken, given)
    given[option.field] = taken
    return True


def _take_seconds(field: str, text: str, given: dict[str, Any]) -> bool:
    if not (text.isascii() and text.replace(".", "", 1).isdigit()):
        return False
    given[field] = float(text)
    return True
