"""`zdo doctor`: one line an item, or one object; 78 when one of them is ill."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dispatch.cli import checking
from dispatch.cli.checking import item_lines
from dispatch.health import LOOKS, Item
from dispatch.verdict import TABLE
from tests.fakes.household import Household


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in, where nothing is ill."""
    household = Household(tmp_path)
    household.claude("exit 0")
    household.postbox()
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


@pytest.mark.usefixtures("home")
def test_what_is_not_ill_is_zero(capsys):
    """Nothing on stderr; what is not known yet is no failure."""
    assert checking.doctor(None, as_object=False) == 0
    told = capsys.readouterr()

    assert "" == told.err
    lines = told.out.splitlines()
    assert [look.code for look in LOOKS] == [line.split()[1] for line in lines]
    assert {"ok", "?"} == {line.split()[0] for line in lines}


def test_what_is_ill_is_named_twice(home, capsys):
    """On stderr in one line, and in its own, with what to do below it."""
    Path(home.root, "bin", "claude").unlink()

    assert checking.doctor(None, as_object=False) == 78
    told = capsys.readouterr()

    assert told.err == f"zdo: unhealthy: claude-binary; {TABLE['unhealthy'].advice}\n"
    assert re.search(
        r"^FAIL  claude-binary +no program .*\n      fix: install claude", told.out, re.MULTILINE
    )


@pytest.mark.parametrize("is_ill", [False, True])
def test_the_object_has_every_field(home, capsys, monkeypatch, is_ill):
    """Also of what is well; the sender is who asked."""
    if is_ill:
        Path(home.root, "bin", "claude").unlink()
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "ambient")

    status = checking.doctor(None, as_object=True)
    shown = json.loads(capsys.readouterr().out)

    assert ("v", "command", "class", "exit", "sender", "items") == tuple(shown)
    assert (1, "doctor", "ambient") == (shown["v"], shown["command"], shown["sender"])
    expected = ("unhealthy", 78) if is_ill else (None, 0)
    assert (*expected, expected[1]) == (shown["class"], shown["exit"], status)
    for item in shown["items"]:
        assert ("code", "ok", "checked_at", "detail", "fix") == tuple(item)
        assert item["ok"] in (True, False, None)
        assert (item["ok"] is False) == (item["fix"] is not None)
    checking.doctor("me", as_object=True)
    assert "me" == json.loads(capsys.readouterr().out)["sender"]


def test_a_line_is_one_line():
    """Marks stand under each other, and what is other people's text cannot act."""
    items = (
        Item("a", True, "t", "fine", None),
        Item("longer", False, "t", "not\nfine \x1b[31m", "mend it"),
        Item("b", None, "t", "nobody knows", None),
    )

    assert [
        "ok    a       fine",
        "FAIL  longer  not\\nfine \\x1b[31m",
        "      fix: mend it",
        "?     b       nobody knows",
    ] == item_lines(items)
