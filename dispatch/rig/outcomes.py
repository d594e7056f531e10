"""How a run of `claude` may end, and in which shapes its result comes on stdout."""

from __future__ import annotations

import json
from typing import Any

# CONTRACT b, row by row: recorded result (None: empty stdout), status, stderr, changes.
OUTCOMES: dict[str, tuple[str | None, int, str, dict[str, Any]]] = {
    "success": ("success", 0, "", {}),
    "hook-blocked": ("hook-blocked", 0, "", {}),
    "max-turns": ("error-max-turns", 1, "", {}),
    "max-turns-without-errors": ("error-max-turns", 1, "", {"errors": []}),
    "two-turns": ("success", 0, "", {"num_turns": 2}),
    "permission-denied": ("permission-denied", 0, "", {}),
    "absent-tool": ("permission-denied", 0, "", {"permission_denials": []}),
    "max-budget": ("error-max-budget", 1, "", {}),
    "api-400": ("api-error-529", 1, "", {"api_error_status": 400}),
    "api-401": ("api-error-401", 1, "", {}),
    "api-403": ("api-error-401", 1, "", {"api_error_status": 403}),
    "api-429": ("api-error-529", 1, "", {"api_error_status": 429}),
    "api-500": ("api-error-529", 1, "", {"api_error_status": 500}),
    "api-529": ("api-error-529", 1, "", {}),
    "connection-refused": ("connection-refused", 1, "", {}),
    "sigint-during-hook": ("sigint-during-hook", 0, "", {}),
    "slash-clear": ("slash-clear", 0, "", {}),
    "over-the-cap": ("success", 0, "", {"num_turns": 73}),
    "sigint": (None, 0, "", {}),
    "empty": (None, 0, "", {}),
    "empty-failed": (None, 1, "", {}),
    "sigterm": (None, 143, "", {}),
    "sighup": (None, 129, "", {}),
    "unknown-postbox": (None, 1, "No conversation found with session ID: {session}\n", {}),
    "malformed-id": (
        None,
        1,
        "{session} is not a UUID and does not match any session title.\n",
        {},
    ),
    "in-use": (None, 1, "Error: Session ID {session} is already in use.\n", {}),
    "unknown-option": (None, 1, "error: unknown option '--no-such-flag'\n", {}),
    "cwd-deleted": (None, 1, "The current directory no longer exists\n", {}),
}

SHAPES = (
    "plain", "pretty", "banner", "bom", "crlf", "log-lines", "halves", "trailing", "array",
    "stream", "half", "twice", "usage-limit", "not-utf8", "same-line",
)  # fmt: skip


def shape(name: str, result: dict[str, Any]) -> bytes:
    """*result* as bytes on stdout in the shape *name*."""
    plain = json.dumps(result).encode() + b"\n"
    event = b'{"type":"system","subtype":"init","session_id":"%s"}' % result["session_id"].encode()
    middle = plain.index(b",") + 1
    return {
        "plain": plain,
        "pretty": json.dumps(result, indent=1).encode() + b"\n",
        "banner": b"Now using node v20.11.0 (npm v10.2.4)\n" + plain,
        "bom": b"\xef\xbb\xbf" + plain,
        "crlf": b"notice\r\n" + plain.replace(b"\n", b"\r\n"),
        "log-lines": b"[log_1] sending request {\n  method: 'post',\n}\n"
        + plain
        + b'[log_2] {"status": 200}\n',
        "halves": plain[:middle] + b"\n[log_3] debug line\n" + plain[middle:],
        "trailing": plain.rstrip() + b" done.\nbye\n",
        "array": b"[" + event + b"," + plain.strip() + b"]\n",
        "stream": event + b"\n" + plain,
        "half": plain[: len(plain) // 2],
        "twice": plain + plain,
        "usage-limit": "hit your limit · resets 1pm\n".encode(),
        "not-utf8": b"caf\xe9 \xff\xfe\n" + plain,
        "same-line": b"\x1b[32mready\x1b[0m {ok} " + plain,
    }[name]
