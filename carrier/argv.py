"""What a carrier is started with: argv, environment, settings, position by position.  Pure.

The line is not even a parameter here, so argv and environment are equal for every line.
"""

from __future__ import annotations

import json
import os

from carrier.prompt import knock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Nobody listens on port 1 and the key opens nothing: should the hook fail, the
# prompt ends in `api_error` after half a second instead of at a model.
NO_MODEL = "http://127.0.0.1:1"
NO_CREDENTIAL = "zdo-carriers-hold-no-credential"

# What a postbox is made with; no model ever reads it.
BIRTH = "zdo postbox"
_BLOCKED = '{"decision":"block","reason":"zdo made a postbox"}'
BLOCK = f"printf %s '{_BLOCKED}' || exit 2"

_FROM_CALLER = frozenset(
    ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "XDG_RUNTIME_DIR")
)
_LONGEST = 16_384  # characters; four times as many bytes at most
_NEVER = ("CLAUDE", "ANTHROPIC", "ZDO_")


def build_argv(  # noqa: PLR0913, PLR0917 - one for each word that varies
    claude_bin: str,
    postbox: str,
    settings_path: str,
    delivery_id: str,
    max_turns: int,
    max_budget_usd: float,
) -> list[str]:
    """The command line of one carrier (INTERFACE 4).

    Variadic options end in `=` and the prompt stands behind `--`, because
    otherwise they swallow it (CONTRACT b).
    """
    return [
        claude_bin, "-p", "--resume", postbox, "--output-format", "json",
        "--tools=", "--strict-mcp-config", "--setting-sources=",
        "--permission-mode", "dontAsk",
        "--max-turns", str(max_turns), "--max-budget-usd", _money(max_budget_usd),
        "--settings", settings_path, "--", knock(delivery_id),
    ]  # fmt: skip


def build_birth(claude_bin: str, session_id: str, name: str, settings_path: str) -> list[str]:
    """The command line that makes the session *session_id* without a model call (CONTRACT g, 4).

    Its one prompt is blocked by the hook of *settings_path*.
    """
    return [
        claude_bin, "-p", "--session-id", session_id, "--name", name, "--output-format", "json",
        "--tools=", "--strict-mcp-config", "--setting-sources=",
        "--permission-mode", "dontAsk", "--max-turns", "1", "--max-budget-usd", "0.05",
        "--settings", settings_path, "--", BIRTH,
    ]  # fmt: skip


def build_env(  # noqa: PLR0913 - one parameter for each variable that varies
    caller: Mapping[str, str],
    *,
    pass_env: Iterable[str],
    claude_dir: str,
    target_id: str,
    postbox: str,
    attempt_dir: str,
    wrapper: str,
    sender: str,
) -> dict[str, str]:
    """The whole environment of one carrier: built, not inherited (INTERFACE 4, CONTRACT h)."""
    fixed = {
        "ZDO_CARRIER_DOOR_TARGET": target_id,
        "ZDO_CARRIER_SESSION": postbox,
        "ZDO_CARRIER_ATTEMPT": attempt_dir,
        "ZDO_CARRIER_WRAPPER": wrapper,
        "ZDO_SENDER_SESSION_ID": sender,
    }
    quiet = quiet_env(caller, pass_env, claude_dir)
    return quiet | {name: _passable(value) for name, value in fixed.items()}


def quiet_env(
    caller: Mapping[str, str], pass_env: Iterable[str], claude_dir: str
) -> dict[str, str]:
    """The environment of any `claude` that zdo starts: it reaches no model, whatever it tries.

    Of *caller* only the short list and *pass_env* come through; what zdo sets wins.
    """
    listed = _FROM_CALLER.union(n for n in pass_env if not n.startswith(_NEVER))
    env = {
        name: value
        for name, value in caller.items()
        if (name in listed or name.startswith("LC_")) and _can_pass(name) and _can_pass(value)
    }
    return env | {
        "ANTHROPIC_BASE_URL": NO_MODEL,
        "ANTHROPIC_API_KEY": NO_CREDENTIAL,
        "CLAUDE_CONFIG_DIR": _passable(claude_dir),
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def wrapper_command(python: str, root: str) -> str:
    """The wrapper as one shell command; *root* is the folder that holds our packages.

    A hook that dies in any way lets its prompt through (CONTRACT g), so every
    death of the wrapper becomes the status that blocks.  *root* comes last on
    the path: nothing beside our packages may stand in for the standard library.
    """
    code = f"import sys; sys.path.append({root!a}); from carrier.wrapper import main; main()"
    return f"{_quoted(python)} -IS -c {_quoted(code)} || exit 2"


def settings(wrapper: str, timeout_s: int) -> bytes:
    """The settings file of one carrier: a single hook, *wrapper*, given *timeout_s*."""
    hook = {"type": "command", "command": wrapper, "timeout": timeout_s}
    return json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}).encode("ascii")


def _money(amount: float) -> str:
    shown = repr(float(amount)).removesuffix(".0")
    if "e" in shown:
        from decimal import Decimal

        shown = format(Decimal(shown), "f")
    return shown


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _can_pass(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _passable(value: str) -> str:
    """*value*, or a legible stand-in where the platform cannot pass it: Linux takes 128 KiB."""
    return (value if _can_pass(value) else ascii(value))[:_LONGEST]
