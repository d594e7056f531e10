"""What holds for every test: the machine's own settings do not reach it."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# By family and by name: what zdo, Claude Code, the sender rule and XDG read.
FAMILIES = ("ZDO_", "CLAUDE", "ANTHROPIC", "XDG_")
NAMES = ("AGENT_EVENT_BUS_SESSION_ID", "TERM_SESSION_ID")

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def is_ambient(name: str) -> bool:
    """Whether the variable *name* is one that a test must not see."""
    return name.startswith(FAMILIES) or name in NAMES


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    """Take the variables away that would change what zdo does."""
    for name in filter(is_ambient, tuple(os.environ)):
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _interrupts_reach_the_next_test():
    """A command that has said its verdict holds Ctrl-C until its process ends; ours goes on."""
    yield
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


@pytest.fixture(autouse=True, scope="session")
def _signals_as_on_a_terminal():
    """Heed the signals that nohup, cron or `&` would have us and our children ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
