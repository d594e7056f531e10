"""What holds for every test: the machine's own settings do not reach it."""

from __future__ import annotations

import os

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
