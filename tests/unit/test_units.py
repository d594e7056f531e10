"""The line for a crontab: one line, and a shell reads it as it was meant."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch.errors import UnitImpossible
from dispatch.units import cron_line, program_of

PATHS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="/"), min_size=1
).map(lambda name: f"/{name}")


def command_of(line):
    """What cron hands to the shell: % was escaped, the five fields are gone."""
    assert line.startswith("* * * * * ")
    assert "\n" not in line
    return line.removeprefix("* * * * * ").replace("\\%", "%")


def test_a_plain_machine_has_a_plain_line():
    """Only what cron would not find by itself."""
    env = {"HOME": "/home/u", "PATH": "/home/u/.local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}

    assert cron_line("/home/u/.local/bin/zdo", env, "/usr/bin/claude") == (
        "* * * * * HOME=/home/u ZDO_CLAUDE_BIN=/usr/bin/claude PATH=/usr/bin:/bin"
        " /home/u/.local/bin/zdo relay >/dev/null"
    )


def test_everything_that_leads_to_this_queue_is_in_the_line():
    """Another state folder, configuration or registry is another zdo."""
    env = {
        "ZDO_CONFIG": "/c.toml",
        "ZDO_STATE_DIR": "/s",
        "ZDO_CLAUDE_BIN": "cl",
        "CLAUDE_CONFIG_DIR": "/d",
        "XDG_CONFIG_HOME": "/x",
        "XDG_STATE_HOME": "/y",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "TMPDIR": "/t",
        "ZDO_SESSION_ID": "me",
        "ANTHROPIC_API_KEY": "SECRET",
    }
    words = shlex.split(command_of(cron_line("/bin/zdo", env, "/opt/n/bin/cl")))

    expected = {f"{name}={env[name]}" for name in tuple(env)[:-2] if name != "ZDO_CLAUDE_BIN"}
    assert expected | {"ZDO_CLAUDE_BIN=/opt/n/bin/cl", "PATH=/opt/n/bin:/usr/bin:/bin"} == {
        word for word in words if "=" in word
    }


def test_a_claude_that_is_a_script_finds_its_node_beside_it():
    """The package manager puts both into one folder, which is not on cron's PATH."""
    assert " PATH=/home/u/.nvm/bin:/usr/bin:/bin " in cron_line("/z", {}, "/home/u/.nvm/bin/claude")


def test_a_claude_that_nobody_finds_is_left_as_it_was_named():
    """The relay will say that it is missing."""
    line = cron_line("/z", {"ZDO_CLAUDE_BIN": "nowhere"}, None)

    assert line == "* * * * * ZDO_CLAUDE_BIN=nowhere PATH=/usr/bin:/bin /z relay >/dev/null"
    assert cron_line("/z", {"HOME": ""}, None) == (
        "* * * * * PATH=/usr/bin:/bin /z relay >/dev/null"
    )


def test_a_relative_folder_is_meant_from_here(tmp_path, monkeypatch):
    """Cron starts in the home folder; a `~` is zdo's own to read."""
    monkeypatch.chdir(tmp_path)
    env = {"ZDO_STATE_DIR": "state", "ZDO_CONFIG": "~/zdo.toml", "XDG_STATE_HOME": "ignored"}
    words = shlex.split(command_of(cron_line("/z", env, None)))

    assert {
        f"ZDO_STATE_DIR={tmp_path}/state", "ZDO_CONFIG=~/zdo.toml", "XDG_STATE_HOME=ignored",
        "PATH=/usr/bin:/bin",
    } == {word for word in words if "=" in word}  # fmt: skip


@given(PATHS, PATHS)
def test_no_path_can_act_on_the_line(state, program):
    """Blanks, quotes, percent signs and dollars are letters."""
    line = cron_line(program, {"ZDO_STATE_DIR": state}, None)

    assert shlex.split(command_of(line)) == [
        f"ZDO_STATE_DIR={os.path.abspath(state) if state[0] not in '/~' else state}",
        "PATH=/usr/bin:/bin",
        program,
        "relay",
        ">/dev/null",
    ]


def test_a_shell_reads_a_hard_path(tmp_path):
    """The real one, with every sign that it minds."""
    folder = tmp_path / "a b'c\"$d%e;f#g"
    folder.mkdir()
    program = folder / "zdo"
    program.write_text('#!/bin/sh\necho "$1 $ZDO_STATE_DIR" >&2\n', encoding="ascii")
    program.chmod(0o700)
    line = cron_line(str(program), {"ZDO_STATE_DIR": str(folder)}, None)

    ran = subprocess.run(
        ["/bin/sh", "-c", command_of(line)], env={}, capture_output=True, text=True, check=True
    )

    assert ("", f"relay {folder}\n") == (ran.stdout, ran.stderr)


@pytest.mark.parametrize("word", ["-c", "", "/nowhere/zdo", "page", "folder"])
def test_a_word_that_is_no_program_is_the_one_beside_the_interpreter(word, tmp_path, monkeypatch):
    """As when zdo was started as a module."""
    (tmp_path / "page").touch(0o600)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert program_of(word, "/opt/v/bin/python3") == "/opt/v/bin/zdo"


def test_a_program_is_named_from_the_root(tmp_path, monkeypatch):
    """Whatever it was started as."""
    (tmp_path / "zdo").touch(0o700)
    monkeypatch.chdir(tmp_path)

    assert [f"{tmp_path}/zdo"] * 2 == [
        program_of("./zdo", "/opt/v/bin/python3"),
        program_of(f"{tmp_path}/zdo", "/opt/v/bin/python3"),
    ]


def test_a_newline_in_a_path_is_refused():
    """A crontab line ends there, and the rest would be a line of its own."""
    with pytest.raises(UnitImpossible, match="newline"):
        cron_line("/zdo", {"HOME": "/home/u", "ZDO_STATE_DIR": "/two\nlines"}, None)
