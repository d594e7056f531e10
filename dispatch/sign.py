"""The one line in front of a signed line: who speaks, which delivery, how to answer.  Pure.

A reader may rely on its form.  It is a part of the line, data like the rest of it, and no
proof of anything: whoever may write a door may write this too.
"""

from __future__ import annotations

from dispatch.sender import ANONYMOUS
from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from registry.targets import Config

_SHOWN = 64
# What every shell takes as one plain word.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@+-")


def signed(line: bytes, sender: str, delivery: str, config: Config) -> bytes:
    """*line* behind its header.

    The header is `[zdo] from SENDER, delivery ID, answer: zdo kiss SENDER "..."`, or ends
    in `no answer possible` where the sender is nobody whom an address names.
    """
    is_plain = _is_plain(sender) and can_be_answered(sender, config)
    answer = f'answer: zdo kiss {sender} "..."' if is_plain else "no answer possible"
    return f"[zdo] from {_shown(sender)}, delivery {delivery}, {answer}\n".encode() + line


def can_be_answered(sender: str, config: Config) -> bool:
    """Whether *sender* is an address that will still mean the same: a session, or a target."""
    if sender == ANONYMOUS:
        return False
    return parse_uuid(sender) is not None or config.target(sender) is not None


def _shown(sender: str) -> str:
    """*sender* as one word that can be no part of a header, each odd character a question mark."""
    return "".join(char if char in _PLAIN else "?" for char in sender[:_SHOWN]) or "?"


def _is_plain(sender: str) -> bool:
    return 0 < len(sender) <= _SHOWN and _PLAIN.issuperset(sender) and not sender.startswith("-")
