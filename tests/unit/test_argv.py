"""Command line, environment, settings and wrapper command of a carrier."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from carrier.argv import build_argv, build_env, settings, wrapper_command

P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
DELIVERY = "0b5a3a52-7d0c-4c1e-9d64-6f2f2a9e4c11"


def env_of(caller, pass_env=(), **changes):
    """The environment for a usual carrier of *caller*."""
    given = {
        "claude_dir": "/h/.claude", "target_id": "fable", "postbox": P, "attempt_dir": "/s/a/1",
        "wrapper": "w", "sender": "anonymous",
    }  # fmt: skip
    return build_env(caller, pass_env=pass_env, **(given | changes))


FIXED = {
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
    "ANTHROPIC_API_KEY": "zdo-carriers-hold-no-credential",
    "CLAUDE_CONFIG_DIR": "/h/.claude",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "ZDO_CARRIER_DOOR_TARGET": "fable",
    "ZDO_CARRIER_SESSION": P,
    "ZDO_CARRIER_ATTEMPT": "/s/a/1",
    "ZDO_CARRIER_WRAPPER": "w",
    "ZDO_SENDER_SESSION_ID": "anonymous",
}


def test_the_command_line_is_the_one_of_the_interface():
    """Position by position (INTERFACE 4)."""
    assert [
        "claude", "-p", "--resume", P, "--output-format", "json", "--tools=",
        "--strict-mcp-config", "--setting-sources=", "--permission-mode", "dontAsk",
        "--max-turns", "1", "--max-budget-usd", "0.05",
        "--settings", "/s/a/1/settings.json", "--", f"zdo knock {DELIVERY}",
    ] == build_argv("claude", P, "/s/a/1/settings.json", DELIVERY, 1, 0.05)  # fmt: skip


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0.05, "0.05"), (1, "1"), (2.0, "2"), (1e-7, "0.0000001"), (1e22, "1" + "0" * 22),
     (0.1 + 0.2, "0.30000000000000004")],
)  # fmt: skip
def test_the_budget_is_a_plain_decimal_number(amount, shown):
    """Never an exponent, never rounded to nothing."""
    argv = build_argv("claude", P, "/s", DELIVERY, 1, amount)

    assert shown == argv[argv.index("--max-budget-usd") + 1]


def test_an_empty_caller_gives_only_what_zdo_sets():
    """As from cron with nothing."""
    assert env_of({}) == FIXED


def test_the_short_list_of_the_caller_comes_through():
    """Each of them, and every LC_ variable."""
    names = [
        "HOME",
        "PATH",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LC_ALL",
        "LC_TIME",
        "TZ",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
    ]
    caller = {name: f"/{name}" for name in names}

    assert env_of(caller) == caller | FIXED


def test_nothing_else_of_the_caller_comes_through():
    """No session, pane, agent, credential, proxy or nesting variable (CONTRACT h)."""
    caller = dict.fromkeys(
        ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SIMPLE", "ANTHROPIC_AUTH_TOKEN",
         "AI_AGENT", "TERM_SESSION_ID", "TERM", "ZDO_SESSION_ID", "AGENT_EVENT_BUS_SESSION_ID",
         "HTTPS_PROXY", "LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "AWS_SECRET_ACCESS_KEY",
         "LC", "HOMEPATH", "path"],
        "x",
    )  # fmt: skip

    assert env_of(caller) == FIXED


def test_listed_variables_come_through():
    """Those that the caller has; the list alone makes none."""
    assert env_of({"FAKE_CLAUDE": "/f"}, ("FAKE_CLAUDE", "MISSING")) == FIXED | {
        "FAKE_CLAUDE": "/f"
    }


@pytest.mark.parametrize("name", ["CLAUDE_CODE_SESSION_ID", "ANTHROPIC_AUTH_TOKEN", "ZDO_X"])
def test_reserved_names_cannot_be_listed(name):
    """Whatever the configuration let through."""
    assert env_of({name: "x"}, (name,)) == FIXED


def test_what_zdo_sets_wins_over_a_listed_variable():
    """The carrier stays quiet."""
    assert env_of({"DISABLE_TELEMETRY": "0"}, ("DISABLE_TELEMETRY",)) == FIXED


@pytest.mark.parametrize("odd", ["nul\0", "\ud800"])
def test_what_cannot_be_passed_never_stops_a_carrier(odd):
    """Of the caller it is dropped; what zdo sets is spelled out."""
    env = env_of({"HOME": odd, "LC_" + odd: "x"}, sender=odd)

    assert FIXED | {"ZDO_SENDER_SESSION_ID": ascii(odd)} == env


def test_bytes_that_are_no_text_come_through():
    """A folder's name need not be UTF-8."""
    home = os.fsdecode(b"/home/caf\xe9")

    assert env_of({"HOME": home})["HOME"] == home


def test_the_settings_are_one_hook_and_nothing_else():
    """The wrapper, with the time that Claude Code gives it."""
    hook = {"type": "command", "command": 'a "b" é', "timeout": 15}

    assert json.loads(settings('a "b" é', 15)) == {
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}
    }


AWKWARD = ["plain", "with blank", "quo'te", 'dou"ble', "back\\slash", "$HOME `x`", "new\nline", "é"]


def shell(command):
    """How `sh -c` runs *command*."""
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)


@pytest.mark.parametrize("name", AWKWARD)
def test_the_wrapper_starts_from_any_folder(tmp_path, name):
    """Neither shell nor Python trips over the path of interpreter or packages."""
    root = tmp_path / name
    package = root / "carrier"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "wrapper.py").write_text("def main():\n    print('wrapped')\n")
    python = root / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)

    ran = shell(wrapper_command(str(python), str(root)))

    assert (0, b"wrapped\n", b"") == (ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    "death", ["raise SystemExit(1)", "1 / 0", "import os; os.kill(os.getpid(), 9)", "import gone"]
)
def test_every_death_of_the_wrapper_blocks(tmp_path, death):
    """Status 2 is the one that Claude Code takes for a block (CONTRACT g)."""
    package = tmp_path / "carrier"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "wrapper.py").write_text(f"def main():\n    {death}\n")

    assert shell(wrapper_command(sys.executable, str(tmp_path))).returncode == 2


def test_a_missing_interpreter_blocks():
    """An update may take it away under us."""
    assert shell(wrapper_command("/none/python", "/none")).returncode == 2


def test_nothing_beside_our_packages_replaces_the_standard_library(tmp_path):
    """site-packages may hold an old backport of json."""
    package = tmp_path / "carrier"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "wrapper.py").write_text("def main():\n    import json\n    print(json.loads('1'))")
    (tmp_path / "json.py").write_text("loads = None\n")

    assert b"1\n" == shell(wrapper_command(sys.executable, str(tmp_path))).stdout


def test_the_shell_command_names_the_interpreter_it_was_given():
    """Not the one on some PATH."""
    assert shutil.which("true") is not None
    assert wrapper_command("/opt/py/bin/python", "/r").startswith("'/opt/py/bin/python' -IS -c ")


def test_a_sender_of_any_length_can_be_passed():
    """One that the kernel refuses would stop every line of its round."""
    env = env_of({}, sender="é" * 200_000)

    assert "é" * 16_384 == env["ZDO_SENDER_SESSION_ID"]
    subprocess.run(["/bin/true"], env=env, check=True)
