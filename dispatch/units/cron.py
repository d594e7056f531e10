"""The relay as cron is told of it: one line for a crontab.  Pure."""

from __future__ import annotations

from dispatch.errors import UnitImpossible
from dispatch.units import Unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.units import Start

# Whoever has no crontab is told so in these words by Debian's, cronie's and macOS's.  Whatever else
# went wrong, there may be one, and it is not written over.
_READ = "kept=$(crontab -l) || crontab -l 2>&1 >/dev/null | grep -q 'no crontab for ' || exit 1"
# An empty crontab has not even an empty line.
_KEPT = """printf "${kept:+%s\\n}" "$kept\""""


def cron_line(start: Start) -> str:
    """A crontab line that runs the relay of *start* every minute.

    stdout goes nowhere and stderr to cron's mail, so that only trouble is heard of.
    """
    words = [f"{name}={quoted(value)}" for name, value in start.env.items()]
    command = " ".join([*words, quoted(start.program), "relay", ">/dev/null"])
    if "\n" in command:
        raise UnitImpossible("a crontab line cannot hold the newline in one of the paths")
    # In a crontab an unescaped % is the end of the command.
    return "* * * * * " + command.replace("%", "\\%")


def crontab(start: Start) -> Unit:
    """The unit for cron; it has no file of its own, and its label is its whole line."""
    line = cron_line(start)
    # In C those words are English, and grep takes any bytes for text; its 1 says: no line left.
    others = (
        f"export LC_ALL=C; {_READ};"
        f""" kept=$(printf '%s\\n' "$kept" | grep -vxF {quoted(line)}) || [ $? = 1 ] || exit 1;"""
    )
    return Unit(
        kind="cron",
        text=line + "\n",
        files=(),
        hint=b"",
        links=(),
        listing=("crontab", "-l"),
        mark=line,
        begin=f"({others} {{ {_KEPT}; printf '%s\\n' {quoted(line)}; }} | crontab -)",
        end=f"({others} {_KEPT} | crontab -)",
    )


def quoted(word: str) -> str:
    """*word* as a shell reads it."""
    plain = word and all(c.isalnum() or c in "/._-+@:,=" for c in word) and word.isascii()
    return word if plain else "'" + word.replace("'", "'\\''") + "'"
