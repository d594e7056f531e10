"""The prompt: a constant and a delivery id.  Pure; the line is never in it."""

from __future__ import annotations

from registry.ids import parse_uuid

_KNOCK = "zdo knock "


def knock(delivery_id: str) -> str:
    """The whole prompt of a carrier; it starts no command and attaches no file (CONTRACT b)."""
    return _KNOCK + delivery_id


def delivery_of(prompt: str) -> str | None:
    """The canonical delivery id that *prompt* knocks for, or None when it is no knock.

    Blanks around are forgiven: Claude Code may add a newline.
    """
    bare = prompt.strip()
    return parse_uuid(bare.removeprefix(_KNOCK)) if bare.startswith(_KNOCK) else None
