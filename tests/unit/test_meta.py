"""The tests about the tests: they count the same on every machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch.sender import ANONYMOUS, VARIABLES, sender_of
from registry.home import find_places

ROOT = Path(__file__).parents[2]

POLLUTION = {
    **dict.fromkeys(VARIABLES, "somebody"),
    "ZDO_CONFIG": "/nowhere/zdo.toml",
    "ZDO_STATE_DIR": "/nowhere/state",
    "ZDO_CLAUDE_BIN": "/nowhere/claude",
    "ZDO_CARRIER_DOOR_TARGET": "fable",
    "CLAUDE_CONFIG_DIR": "/nowhere/.claude",
    "CLAUDECODE": "1",
    "ANTHROPIC_API_KEY": "none",
    "XDG_CONFIG_HOME": "/nowhere/config",
    "XDG_STATE_HOME": "/nowhere/state",
    "TERM_SESSION_ID": "w0t0p0",
}


def test_no_variable_of_the_machine_reaches_a_test():
    """The fixture of conftest.py; without it the next test fails."""
    home = os.environ.get("HOME") or "/"

    assert sorted(POLLUTION.keys() & os.environ.keys()) == []
    assert sender_of(None, os.environ) == ANONYMOUS
    assert find_places(os.environ).config_file == os.path.normpath(f"{home}/.config/zdo/zdo.toml")


@pytest.mark.parametrize(("options", "status"), [((), 0), (("--noconftest",), 1)])
def test_the_fixture_is_what_keeps_a_polluted_machine_out(options, status):
    """In a polluted environment the test above passes with conftest.py and fails without."""
    inner = f"{__file__}::test_no_variable_of_the_machine_reaches_a_test"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, inner]
    ended = subprocess.run(
        argv, cwd=ROOT, env=os.environ | POLLUTION, capture_output=True, text=True, check=False
    )

    assert status == ended.returncode, ended.stdout
