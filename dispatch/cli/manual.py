"""The man page and the completion scripts, made of what the program itself says.

`python -m dispatch.cli.manual FOLDER` writes them below FOLDER, as the wheel carries them; a
test compares those with what this makes.
"""

from __future__ import annotations

import os
import sys

# Public by its place and its use, though the module lists no names.
from typer.completion import get_completion_script  # type: ignore[attr-defined]
from typer.core import TyperGroup
from typer.main import get_command

from dispatch.explain import FATES, MEANINGS
from dispatch.verdict import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from typer.core import TyperCommand

_EVERYWHERE = {"--help", "--json", "--session-id"}
SHELLS = {"bash": "zdo.bash", "zsh": "_zdo", "fish": "zdo.fish"}

_HEAD = """\
.TH ZDO 1
.SH NAME
zdo \\- tell a running Claude Code session something, and know how far it got
.SH SYNOPSIS
.B zdo
.I COMMAND
.RI [ OPTION ...]
.SH DESCRIPTION
.B zdo kiss
puts one line into the next model input of a running Claude Code session, the target,
and says how far it got.
It never resumes that session: it resumes a postbox, a session of its own,
headless and without a model call,
and a small program under that carrier writes the line into the target's inbox.
The line is data; it reaches no shell, argument, prompt or log on its way.
.PP
Every command takes
.BR \\-\\-json ,
and prints one JSON object then, and
.BR \\-\\-session\\-id ,
which says who speaks.
On failure there is one line on stderr,
.RI "`zdo: " class ": " reason "; " "what to do" "',"
and the exit status says what to do.
"""

_TAIL = """\
.SH ENVIRONMENT
.TP
.B ZDO_CONFIG
The configuration file; else $XDG_CONFIG_HOME/zdo/zdo.toml, else ~/.config/zdo/zdo.toml.
.TP
.B ZDO_STATE_DIR
The state folder; else $XDG_STATE_HOME/zdo, else ~/.local/state/zdo.
.TP
.B ZDO_CLAUDE_BIN
The program to carry with, over claude_bin of the configuration.
.TP
.B CLAUDE_CONFIG_DIR
Claude Code's folder, over claude_config_dir of the configuration.
.TP
.BR ZDO_SESSION_ID ", " AGENT_EVENT_BUS_SESSION_ID ", " CLAUDE_CODE_SESSION_ID
Who speaks, the first that is set, unless \\-\\-session\\-id is given.
.SH SEE ALSO
.BR claude (1),
.B zdo explain
"""


def page() -> str:
    """zdo(1) in the macros of man(7)."""
    return "".join((_HEAD, ".SH COMMANDS\n", *_commands(), *_statuses(), _TAIL))


def scripts() -> Mapping[str, str]:
    """The completion script of each shell, by the name that it has to have."""
    return {
        name: get_completion_script(prog_name="zdo", complete_var="_ZDO_COMPLETE", shell=shell)
        + "\n"
        for shell, name in SHELLS.items()
    }


def _commands() -> Iterator[str]:
    from dispatch.cli.app import app

    root = get_command(app)
    for words, command in _leaves((), root):
        arguments = [_word(each) for each in command.params if each.param_type_name == "argument"]
        yield f".SS {_roff(' '.join(('zdo', *words, *arguments)))}\n"
        yield f"{_roff(command.help or command.short_help or '')}\n"
        for each in command.params:
            if each.param_type_name == "option" and not _EVERYWHERE & set(each.opts):
                yield _option(each)


def _leaves(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], TyperCommand]]:
    if not isinstance(command, TyperGroup):
        yield words, command
        return
    for name, each in command.commands.items():
        yield from _leaves((*words, name), each)


def _word(argument: Any) -> str:
    name = str(argument.metavar or argument.name).upper().strip("{}[]")
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:
    takes = "" if option.is_flag else f" \\fI{_roff(str(option.metavar or 'TEXT'))}\\fR"
    # None of them is spelled in two ways.
    return f".TP\n\\fB{_roff(option.opts[0])}\\fR{takes}\n{_roff(option.help or '')}\n"


def _statuses() -> Iterator[str]:
    yield ".SH EXIT STATUS\n"
    for row in TABLE.values():
        text = f"{MEANINGS[row.name]} {FATES[row.fate]}"
        yield f".TP\n\\fB{row.exit}\\fR \\fI{_roff(row.name)}\\fR\n{_roff(text)}\n"


def _roff(text: str) -> str:
    """*text* as words of a page: nothing in it is a request, and a hyphen is one to be copied."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def main(folder: str) -> None:
    """Write all of it below *folder*."""
    files = {"man/zdo.1": page()} | {
        f"completions/{name}": text for name, text in scripts().items()
    }
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
