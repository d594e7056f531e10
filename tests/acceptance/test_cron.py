"""Cron and timers: an environment that holds nothing, and the line that `zdo unit cron` prints."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
from pathlib import Path

import pytest

from dispatch.rig.rig import Said
from tests.acceptance.saying import (
    CONFIG,
    complained,
    passed,
    queued,
    spool,
)

# What Vixie's cron gives to a command, beside HOME and LOGNAME.
CRON = {"SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


def by_shell(command, env, cwd="/"):
    """What *command* said when cron's shell ran it with exactly *env*."""
    ran = subprocess.run(
        ["/bin/sh", "-c", command], env=env, cwd=cwd, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return Said(ran)


def crontab_line(rig, env=None):
    """The one line that `zdo unit cron` printed, for a shell that has *env*."""
    program = rig.program
    ran = subprocess.run(
        [program, "unit", "cron"], env=rig.env | (env or {}), cwd=rig.root,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (1, "") == (ran.stdout.count("\n"), ran.stderr)
    return ran.stdout.rstrip("\n")


def command_of(line):
    """What cron makes of *line*: the command behind the five fields, percent signs plain."""
    assert line.startswith("* * * * * ")
    return line.removeprefix("* * * * * ").replace("\\%", "%")


def bare(rig):
    """Only what leads to this rig; no HOME, TERM, LANG, USER."""
    return {
        "PATH": "/usr/bin:/bin",
        "ZDO_CONFIG": rig.config_file,
        "ZDO_STATE_DIR": rig.state,
        "ZDO_CLAUDE_BIN": rig.claude,
        "CLAUDE_CONFIG_DIR": rig.claude_dir,
    }


def test_an_empty_environment_is_enough(own_rig):
    """`env -i zdo relay` with its folders named: delivered, and nothing of ours leaks in."""
    door = own_rig.door()
    queued(own_rig, "fable", "grün")

    said = by_shell(f"exec {own_rig.program} relay --json", bare(own_rig))

    passed(said, delivered=1, left=0)
    assert ["grün"] == door.lines()
    (run,) = own_rig.runs()
    assert {"PATH"} == run["env"].keys() & {"HOME", "PATH", "LANG", "USER", "TERM"}


def test_the_program_itself_needs_no_environment(own_rig):
    """Not even a PATH: started by its path it finds its interpreter and its own modules."""
    program = own_rig.program

    ran = subprocess.run(
        ["/usr/bin/env", "-i", program, "relay", "--help"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip

    assert (0, "") == (ran.returncode, ran.stderr)


def test_without_path_a_claude_that_is_named_is_found(own_rig):
    """PATH unset is the system's own; the binary is told by its path."""
    door = own_rig.door()
    queued(own_rig, "fable", "one")
    env = bare(own_rig)
    del env["PATH"]

    passed(own_rig.zdo("relay", "--json", whole_env=env), delivered=1)
    assert ["one"] == door.lines()


def test_a_claude_that_cron_does_not_find_is_named(own_rig):
    """PATH=/usr/bin:/bin and no ZDO_CLAUDE_BIN: 69, its name, and what to do."""
    own_rig.door()
    queued(own_rig, "fable", "one")
    env = bare(own_rig)
    del env["ZDO_CLAUDE_BIN"]

    said = own_rig.zdo("relay", whole_env=env)

    complained(said, "carrier-spawn", 69)
    assert "claude" in said.err
    assert said.err.endswith("; install claude, or set claude_bin\n")
    assert ["queued"] == [line["state"] for line in spool(own_rig)]


def test_another_state_folder_is_another_queue_and_says_nothing(own_rig):
    """Cron without ZDO_STATE_DIR serves the queue of its HOME: this one is not lost, and waits."""
    own_rig.door()
    queued(own_rig, "fable", "one")
    env = bare(own_rig) | {"HOME": f"{own_rig.root}/elsewhere"}
    os.mkdir(env["HOME"])
    del env["ZDO_STATE_DIR"]

    passed(own_rig.zdo("relay", "--json", whole_env=env), runs=0, left=0)
    assert 1 == len(spool(own_rig))


def test_the_line_for_a_crontab_delivers(own_rig):
    """As cron runs it: by sh, from another folder, with cron's environment; it says nothing."""
    door = own_rig.door()
    queued(own_rig, "fable", "one", "two")
    line = crontab_line(own_rig)
    user = pwd.getpwuid(os.geteuid())

    said = by_shell(command_of(line), CRON | {"HOME": user.pw_dir, "LOGNAME": user.pw_name})

    assert (0, "", "") == (said.exit, said.out, said.err)
    assert ["one", "two"] == door.lines()
    assert [] == spool(own_rig)
    assert f"{own_rig.bin}/zdo" in shlex.split(command_of(line))


def test_trouble_is_what_cron_mails(own_rig):
    """Stdout goes nowhere; one line on stderr, and the class's exit."""
    own_rig.door(accept="refuse")
    own_rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 0.5"))
    queued(own_rig, "fable", "one")

    said = by_shell(command_of(crontab_line(own_rig)), CRON)

    assert "" == said.out
    complained(said, "door-refused", 77)


@pytest.mark.parametrize("name", ["a b", "50%", "it's", 'say "x"', "$HOME", "grün", ";ls"])
def test_the_line_survives_a_hard_folder(own_rig, name):
    """Whatever the state folder is called."""
    door = own_rig.door()
    own_rig.state = own_rig.env["ZDO_STATE_DIR"] = f"{own_rig.root}/{name}"
    queued(own_rig, "fable", "one")

    said = by_shell(command_of(crontab_line(own_rig)), CRON)

    assert (0, "", ["one"]) == (said.exit, said.err, door.lines())


def test_relative_folders_in_this_shell_are_meant_from_here(own_rig):
    """Cron runs in another folder."""
    door = own_rig.door()
    queued(own_rig, "fable", "one")
    here = {"ZDO_STATE_DIR": "state", "ZDO_CONFIG": "zdo.toml", "ZDO_CLAUDE_BIN": "bin/claude"}

    line = crontab_line(own_rig, here)

    assert (0, "") == (by_shell(command_of(line), CRON).exit, by_shell("true", CRON).err)
    assert ["one"] == door.lines()


def test_two_at_the_same_minute_are_one(own_rig):
    """A crontab that has the line twice delivers once."""
    door = own_rig.door()
    own_rig.install_claude(before_s=0.3)
    queued(own_rig, "fable", "one")
    command = command_of(crontab_line(own_rig))

    both = by_shell(f"{command} & {command}; wait", CRON)

    assert (0, "") == (both.exit, both.err)
    assert (["one"], 1) == (door.lines(), len(own_rig.runs()))


def test_a_line_in_the_crontab_stays_true_when_the_shell_changes(own_rig):
    """It names the program by its path, and needs no PATH of the user's."""
    line = crontab_line(own_rig, {"PATH": f"{own_rig.bin}:/usr/local/bin:/usr/bin:/bin"})

    words = shlex.split(command_of(line))
    assert Path(words[-3]).is_absolute()
    assert ["relay", ">/dev/null"] == words[-2:]
    assert f"PATH={own_rig.bin}:/usr/bin:/bin" in words
