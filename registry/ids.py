"""One spelling for every id: a canonical UUID is 36 lower-case characters.

The uuid module costs as much start-up as json; only a text key needs it.
"""

from __future__ import annotations

import os

_HEX = frozenset("0123456789abcdef")
_UUID_DIGITS = 32

# The name space of text keys: a v5 of it is the same on every machine, for ever.
KEY_SPACE = "5b7f3a52-7d0c-5c1e-9d64-6f2f2a9e4c11"


def parse_uuid(text: object) -> str | None:
    """The canonical spelling of a UUID, or None when *text* is not one.

    Case, blanks around, braces, `urn:uuid:` and missing hyphens are one id
    (INTERFACE 7, binding).  Hyphens anywhere but at their places are refused.
    """
    if not isinstance(text, str):
        return None
    bare = text.strip().lower()
    bare = bare.removeprefix("urn:").removeprefix("uuid:")
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1].strip()
    digits = bare.replace("-", "")
    if len(digits) != _UUID_DIGITS or not _HEX.issuperset(digits):
        return None
    canonical = _hyphenated(digits)
    return canonical if bare in (digits, canonical) else None


def new_uuid() -> str:
    """A fresh random UUID, version 4 (RFC 9562)."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return _hyphenated(raw.hex())


def draw() -> float:
    """A fresh random number, at least 0 and less than 1."""
    return int.from_bytes(os.urandom(6)) / (1 << 48)


def key_to_msg_id(key: str) -> str:
    """The `msg_id` of an idempotency key: a UUID is itself, another text gives a UUIDv5."""
    if (given := parse_uuid(key)) is not None:
        return given
    import uuid

    return str(uuid.uuid5(uuid.UUID(KEY_SPACE), key))


def _hyphenated(digits: str) -> str:
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
