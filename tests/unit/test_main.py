"""The door of the house: one status out, whatever came in, and never a traceback."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys

import pytest

from dispatch.cli import main
from dispatch.cli.main import run
from tests.fakes.household import ROOT, Household

CODE = f"import sys; sys.path.insert(0, {ROOT!r}); from dispatch.cli.main import main; main()"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in."""
    household = Household(tmp_path)
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


def zdo(home, words, redirected=""):
    """The command as a process of its own, with its streams *redirected* by a shell."""
    measured = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    command = f"{shlex.join([sys.executable, '-c', CODE])} {words} {redirected}"
    return subprocess.run(
        ["sh", "-c", command],
        env=home.env | measured,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["kiss", "nobody", "x"], 67),
        (["kiss", "nobody"], 64),
        (["targets"], 0),
        (["frobnicate"], 64),
        ([], 64),
        (["--version"], 0),
    ],
)
def test_every_command_line_is_one_status(argv, status):
    """The plain way, Typer's way, and neither."""
    assert status == run(argv)


@pytest.mark.usefixtures("home")
def test_usage_is_one_object_too_with_json(capsys):
    """`--json` prints exactly one object, also on failure."""
    assert run(["kiss", "--json", "--nonsense"]) == 64
    said = capsys.readouterr()

    shown = json.loads(said.out)
    assert ("kiss", "usage", 64) == (shown["command"], shown["class"], shown["exit"])
    assert said.err.startswith("zdo: usage: ")
    assert said.err.count("\n") == 1


class Breaking(io.StringIO):
    """A stdout whose first write fails."""

    encoding = "utf-8"

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        """Fail, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error
        return super().write(text)


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("words", [["targets"], ["kiss", "--json", "nobody", "x"]])
def test_ctrl_c_at_the_last_moment_is_one_line(words, capsys):
    """Through Typer and past it: 130, and it does not say that nothing was done."""
    stdout, sys.stdout = sys.stdout, Breaking(KeyboardInterrupt())
    try:
        status, shown = run(words), sys.stdout.getvalue()
    finally:
        sys.stdout = stdout
    lines = capsys.readouterr().err.splitlines()

    assert status == 130
    assert lines[-1].startswith("zdo: interrupted: stopped by Ctrl-C; zdo show")
    assert ("--json" in words) == ('"class": "interrupted"' in shown)


def test_ctrl_c_at_the_first_moment_is_one_line():
    """While the modules are loading there is no traceback either."""
    code = (
        "import sys; sys.path.insert(0, '.'); from dispatch.cli import main\n"
        "def stop(_): raise KeyboardInterrupt\n"
        "main.run = stop\n"
        "main.main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (130, 1) == (ended.returncode, ended.stderr.count("\n")), ended.stderr
    assert ended.stderr.startswith("zdo: interrupted: ")


@pytest.mark.usefixtures("home")
def test_a_bug_is_told_with_its_place_and_without_its_text(capsys):
    """The text of a stranger's error might hold the line."""
    stdout, sys.stdout = sys.stdout, Breaking(KeyError("tests are green"))
    try:
        assert run(["targets"]) == 70
    finally:
        sys.stdout = stdout
    said = capsys.readouterr().err

    assert said.startswith("zdo: internal: KeyError at test_main.py:")
    assert "green" not in said


def test_an_error_without_a_trace_is_named_by_its_kind():
    """An error that was never raised has no place."""
    assert main._where(KeyError("x")) == "KeyError"


@pytest.mark.parametrize("redirected", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"])
@pytest.mark.parametrize(("words", "status"), [("targets --json", 0), ("kiss nobody x", 67)])
def test_closed_streams_are_no_traceback(home, words, status, redirected):
    """As cron and daemons start programs: the status is what it is with them open."""
    ended = zdo(home, words, redirected)

    lost = redirected == ">/dev/full" and status == 0
    assert (74 if lost else status) == ended.returncode, ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_command_leaves_with_its_output_flushed(home):
    """It leaves by os._exit, after everything was written."""
    ended = zdo(home, "targets --json")

    assert json.loads(ended.stdout)["command"] == "targets"
    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.usefixtures("home")
def test_no_descriptor_below_three_is_left_open_to_chance(tmp_path):
    """A file opened later never becomes stdout of the carrier."""
    out = tmp_path / "fds"
    code = (
        "from dispatch.cli.main import _fill_standard_descriptors as fill\n"
        f"import os; fill(); open({str(out)!r}, 'w').write(str(os.open('/dev/null', 0)))"
    )
    subprocess.run(
        ["sh", "-c", f"{shlex.join([sys.executable, '-c', code])} <&- >&-"],
        cwd=ROOT,
        check=True,
    )

    assert int(out.read_text(encoding="ascii")) > 2


@pytest.mark.parametrize("words", ["--help", "kiss --help", "kiss x y -h"])
@pytest.mark.parametrize(("redirected", "status", "lines"), [(">/dev/full", 74, 1), ("", 0, 0)])
def test_help_is_said_like_everything_else(home, words, redirected, status, lines):
    """A full disk is one line and 74, also for what Typer prints."""
    ended = zdo(home, words, redirected)

    assert (status, lines) == (ended.returncode, ended.stderr.count("\n")), ended.stderr
