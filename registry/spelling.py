"""How each value of the configuration may be spelled: the text as it is kept, or a ValueError."""

from __future__ import annotations

import re

from registry.ids import parse_uuid

_ID_LENGTH = 128


def session(text: str) -> str:
    """The canonical spelling of a session id."""
    canonical = parse_uuid(text)
    if canonical is None:
        raise ValueError("is not a session UUID")
    return canonical


def session_or_none(text: str) -> str:
    """The same, or empty for none."""
    return session(text) if text else ""


def printable(text: str) -> str:
    """Text without control characters, and without blanks around it."""
    if text != text.strip() or not text.isprintable():
        raise ValueError("holds control characters, or blanks around it")
    return text


def target_id(text: str) -> str:
    """What a target may be called."""
    if not 0 < len(text) <= _ID_LENGTH:
        raise ValueError(f"a target id has 1 to {_ID_LENGTH} characters")
    if text.startswith("-"):
        raise ValueError("a target id that begins with a hyphen would be read as an option")
    return printable(text)


def path(text: str) -> str:
    """A path, as far as the file system is not asked."""
    if "\0" in text:
        raise ValueError("holds a NUL, which no path can")
    return text


def ticket(text: str) -> str:
    """A ticket in upper case."""
    if re.fullmatch(r"TK-[0-9]+", text, re.IGNORECASE) is None:
        raise ValueError("is not TK-<number>")
    return text.upper()


def root(text: str) -> str:
    """A folder that is the same from everywhere."""
    if not (text == "~" or text.startswith(("/", "~/"))):
        raise ValueError("is not absolute: it would be another folder in every working folder")
    return path(text)


def pane(text: str) -> str:
    """A TERM_SESSION_ID."""
    if text.startswith("tsid:"):
        raise ValueError("is the TERM_SESSION_ID itself, without tsid: before it")
    return text


def one_group(text: str) -> str:
    """A regular expression that finds one thing."""
    try:
        groups = re.compile(text).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError("needs exactly one group, the one that holds the pid")
    return text


def variable(text: str) -> str:
    """A variable that a carrier may be given."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) is None:
        raise ValueError(f"{text!r} is not the name of a variable")
    if text.startswith(("CLAUDE", "ANTHROPIC", "ZDO_")):
        raise ValueError(f"{text} is set by zdo itself, or kept from the carrier on purpose")
    return text
