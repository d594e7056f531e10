"""The gate: what fails alone fails, what fails only in the crowd is named and passes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# In the crowd two tests run, alone one.
SUITE = """
import os, pathlib

def count(name):
    path = pathlib.Path(os.environ["SEEN"], name)
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_plain():
    assert count("plain")

def test_unlucky():
    assert count("unlucky") > 1

def test_broken():
    assert count("broken") > {broken}

"""


def judged(tmp_path, suite):
    """What the gate says of *suite*, and how often each test ran."""
    (tmp_path / "test_it.py").write_text(suite, encoding="utf-8")
    argv = [sys.executable, "-m", "tests.gate", sys.executable, "-m", "pytest", "-q"]
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    code += f"from tests.gate import main; sys.exit(main({argv[3:]!r}))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"SEEN": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    seen = [path for path in tmp_path.iterdir() if path.is_file() and not path.suffix]
    runs = {path.name: len(path.read_text(encoding="utf-8")) for path in seen}
    return ended.returncode, ended.stdout, runs


def test_what_passes_alone_is_named(tmp_path):
    """One failure in the crowd, none alone: the gate is open, and says what it was."""
    status, said, runs = judged(tmp_path, SUITE.format(broken=0))

    assert (0, {"plain": 1, "unlucky": 2, "broken": 1}) == (status, runs)
    assert "passed only alone: test_it.py::test_unlucky" in said


def test_what_fails_alone_fails(tmp_path):
    """A fault is not luck."""
    status, said, runs = judged(tmp_path, SUITE.format(broken=9))

    assert (1, 2) == (status, runs["broken"])
    assert "FAILED ALONE TOO: test_it.py::test_broken" in said


def test_many_failures_are_no_luck(tmp_path):
    """Six at once are not tried again."""
    many = "".join(f"def test_{n}():\n    assert count('n{n}') > 1\n\n" for n in range(6))

    status, said, runs = judged(tmp_path, SUITE.format(broken=0) + many)

    assert (1, 1) == (status, runs["n0"])
    assert "alone" not in said


@pytest.mark.parametrize(("suite", "expected"), [("import nothing_of_that_name\n", 2), ("", 5)])
def test_another_status_stays_what_it_is(tmp_path, suite, expected):
    """A suite that cannot be collected, or that is empty, is no suite that passed."""
    assert expected == judged(tmp_path, suite)[0]
