"""How other programs start the relay: the line for a crontab."""

from __future__ import annotations

import os

from dispatch.errors import UnitImpossible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What makes this zdo another one than cron's bare environment would find.
_FOLDERS = ("ZDO_CONFIG", "ZDO_STATE_DIR", "CLAUDE_CONFIG_DIR")
_NAMES = ("HOME", *_FOLDERS, "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
_PATH = "/usr/bin:/bin"


def program_of(word: str, python: str) -> str:
    """The path of the program that was started as *word*, to be started by others.

    Where *word* is none, as under `python -c`, it is the one beside *python*.
    """
    program = os.path.abspath(word)
    if os.path.isfile(program) and os.access(program, os.X_OK):
        return program
    return f"{os.path.dirname(python)}/zdo"


def cron_line(program: str, env: Mapping[str, str], claude: str | None) -> str:
    """A crontab line that runs *program*'s relay every minute as this shell would.

    *claude* is the binary that this shell finds, None when it finds none.  stdout
    goes nowhere and stderr to cron's mail, so that only trouble is heard of.
    """
    told = {name: _from_anywhere(name, env[name]) for name in _NAMES if env.get(name)}
    if binary := claude or env.get("ZDO_CLAUDE_BIN"):
        told["ZDO_CLAUDE_BIN"] = binary
    words = [f"{name}={_quoted(value)}" for name, value in told.items()]
    words.append(f"PATH={_quoted(_path_for(claude))}")
    command = " ".join([*words, _quoted(program), "relay", ">/dev/null"])
    if "\n" in command:
        raise UnitImpossible("a crontab line cannot hold the newline in one of the paths")
    # In a crontab an unescaped % is the end of the command.
    return "* * * * * " + command.replace("%", "\\%")


def _from_anywhere(name: str, value: str) -> str:
    """*value* as it is meant here: cron starts in another folder."""
    return os.path.abspath(value) if name in _FOLDERS and value[0] not in "/~" else value


def _path_for(claude: str | None) -> str:
    """What cron has, with *claude*'s folder in front: a script finds its node there."""
    folder = _PATH.partition(":")[0] if claude is None else os.path.dirname(claude)
    return _PATH if folder in _PATH.split(":") else f"{folder}:{_PATH}"


def _quoted(word: str) -> str:
    plain = word and all(c.isalnum() or c in "/._-+@:,=" for c in word) and word.isascii()
    return word if plain else "'" + word.replace("'", "'\\''") + "'"
