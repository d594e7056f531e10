"""How other programs start the relay: what each of them has to be told.  Pure.

No secret is ever among it: only what leads to this queue and to this `claude`.
"""

from __future__ import annotations

import os

from dispatch.errors import UnitImpossible
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL = "zdo-relay"
LONGEST_LABEL = 64
# What was killed is not started again at once: a fault that lasts would take the whole machine.
THROTTLE_S = 30

# What makes this zdo another one than a bare environment would find.
_FOLDERS = ("ZDO_CONFIG", "ZDO_STATE_DIR", "CLAUDE_CONFIG_DIR")
_NAMES = ("HOME", *_FOLDERS, "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR")
_PATH = "/usr/bin:/bin"
# Neither XML nor systemd knows the last two.
_UNWRITABLE = "\x7f\ufffe\uffff"


class Start(Record):
    """One start of the relay: the program, and all of the environment that it needs."""

    program: str
    env: Mapping[str, str]


class File(Record):
    """What stands at *path* once a unit is installed."""

    path: str
    content: bytes


class Unit(Record):
    """The relay as one kind of scheduler is told of it."""

    kind: str
    text: str  # what is printed
    files: tuple[File, ...]  # in the order in which they are written
    hint: bytes  # the whole line by which a file is known as made for this state folder
    links: tuple[str, ...]  # what the scheduler itself makes when it is told to begin
    listing: tuple[str, ...]  # the argv that lists what the scheduler has
    mark: str  # the word, or the whole line, by which a listing shows it
    begin: str  # the one command after it was installed
    end: str  # the one command after it was taken away


def program_of(word: str, python: str) -> str:
    """The path of the program that was started as *word*, to be started by others.

    Where *word* is none, as under `python -c`, it is the one beside *python*.
    """
    program = os.path.abspath(word)
    if os.path.isfile(program) and os.access(program, os.X_OK):
        return program
    return f"{os.path.dirname(python)}/zdo"


def start_of(program: str, env: Mapping[str, str], claude: str | None) -> Start:
    """How *program*'s relay is started so that it finds what a shell with *env* finds.

    *claude* is the binary that this shell finds, None when it finds none.
    """
    told = {name: _from_anywhere(name, env[name]) for name in _NAMES if env.get(name)}
    if binary := claude or env.get("ZDO_CLAUDE_BIN"):
        told["ZDO_CLAUDE_BIN"] = binary
    return Start(program, told | {"PATH": _path_for(claude)})


def is_plain_label(label: str) -> bool:
    """Whether *label* is a plain file name that begins with a letter: never a path or an option."""
    plain = label.isascii() and label.replace("-", "").replace(".", "").replace("_", "").isalnum()
    return plain and label[0].isalpha() and len(label) <= LONGEST_LABEL


def hint_of(kind: str, log: str) -> str:
    """What each file says of itself: who made it, and for the state folder that has *log*."""
    return f"zdo unit {kind} made this for {os.path.dirname(log)} and takes it away again"


def refuse_unwritable(*words: str) -> None:
    """UnitImpossible when one of *words* holds what no unit file can: it is lines of UTF-8."""
    for word in words:
        if any(c < " " or c in _UNWRITABLE or "\ud800" <= c <= "\udfff" for c in word):
            raise UnitImpossible(f"a unit file cannot hold a character of {word!r}")


def is_listed(mark: str, listing: str) -> bool:
    """Whether *listing* has *mark* as a whole word or as a whole line.

    A label that begins with another's is another one.
    """
    return any(mark in (line, *line.split()) for line in listing.split("\n"))


def _from_anywhere(name: str, value: str) -> str:
    """*value* as it is meant here: a scheduler starts in another folder."""
    return os.path.abspath(value) if name in _FOLDERS and value[0] not in "/~" else value


def _path_for(claude: str | None) -> str:
    """What cron has, with *claude*'s folder in front: a script finds its node there."""
    folder = _PATH.partition(":")[0] if claude is None else os.path.dirname(claude)
    return _PATH if folder in _PATH.split(":") else f"{folder}:{_PATH}"
