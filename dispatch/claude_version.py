"""Which Claude Code there is, and what is known of it.

The only program that is asked is `claude --version`: it starts no session.
"""

from __future__ import annotations

import re
import subprocess

from carrier.argv import quiet_env
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

# The central path was measured on these (docs/CONTRACT.md).
TESTED: Final = ("2.1.248", "2.1.270", "2.1.300", "2.1.332")
# Before it there was no messaging between sessions (its own documentation).
FIRST: Final = (2, 1, 224)
_LONGEST_S: Final = 5.0


class Asked(Record):
    """What `claude --version` came to; without a *version*, *why* says what it did instead."""

    version: str | None
    why: str | None = None


def ask(claude: str, env: Mapping[str, str], claude_dir: str, within: float = _LONGEST_S) -> Asked:
    """The version of the program *claude*, as three numbers with dots; ended after *within* s."""
    try:
        said = subprocess.run(  # noqa: S603 - the program that carries anyway, and no shell
            [claude, "--version"],
            env=quiet_env(env, (), claude_dir),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Asked(None, f"{claude} --version did not end within {within:g} s")
    except OSError as error:
        return Asked(None, f"{claude} cannot be started: {error.strerror or error}")
    found = re.match(rb"\s*([0-9]+\.[0-9]+\.[0-9]+)", said.stdout[:200])
    if found is None:
        return Asked(None, f"{claude} --version ended with {said.returncode} and names none")
    return Asked(found[1].decode())


def is_too_old(version: str) -> bool:
    """Whether *version* is of a time without messaging between sessions."""
    return tuple(map(int, version.split("."))) < FIRST
