"""The man page and the completions that the wheel carries are what the program says today."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch.cli import manual
from dispatch.verdict import TABLE

DOCS = Path(__file__).parents[2] / "docs"


def test_what_is_shipped_is_what_is_made(tmp_path):
    """`python -m dispatch.cli.manual docs` brings it up to date."""
    argv = [sys.executable, "-m", "dispatch.cli.manual", str(tmp_path)]
    subprocess.run(argv, cwd=DOCS.parent, check=True)

    for name in ("man/zdo.1", *(f"completions/{each}" for each in manual.SHELLS.values())):
        shipped = (DOCS / name).read_text(encoding="utf-8")
        assert shipped == (tmp_path / name).read_text(encoding="utf-8"), name


def test_the_page_has_every_command_and_class():
    """Also those of later days: it is made of the program."""
    page = manual.page()

    for words in ("kiss", "spool requeue", "target add", "unit cron", "doctor"):
        assert f".SS zdo {words}" in page
    assert all(manual._roff(name) in page for name in TABLE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".SH no", "\\&.SH no"),
        ("'quoted", "\\&'quoted"),
        ("a\\b --c", "a\\eb \\-\\-c"),
        ("two\n\n lines", "two lines"),
        ("`x`", "\\(gax\\(ga"),
    ],
)
def test_nothing_in_a_text_is_a_request(text, expected):
    """Dots, backslashes and hyphens are to be read, and copied."""
    assert expected == manual._roff(text)


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here to read the page")
def test_the_page_is_read_without_complaint():
    """By groff, with all its warnings."""
    argv = ["groff", "-man", "-Tutf8", "-ww", "-z", str(DOCS / "man" / "zdo.1")]

    ended = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_is_read_by_its_shell(shell):
    """Where there is one."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = DOCS / "completions" / manual.SHELLS[shell]

    ended = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)

    assert (0, "") == (ended.returncode, ended.stderr)
