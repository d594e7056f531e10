"""stdout and stderr: nothing makes a command fail by being said."""

from __future__ import annotations

import contextlib
import io
import shlex
import subprocess
import sys

import pytest

from dispatch.cli import speech

LOST = (
    "zdo: journal-unwritable: stdout cannot be written ({});"
    " free the disk; zdo show tells what became of a kiss\n"
)


class Breaking(io.StringIO):
    """A stream that fails at the write, or only at the flush."""

    encoding = "utf-8"

    def __init__(self, error, *, at_write=True):
        super().__init__()
        self.error, self.at_write = error, at_write

    def write(self, text):
        """Fail, if it is to fail here."""
        if self.at_write:
            raise self.error
        return len(text)

    def flush(self):
        """Fail."""
        raise self.error


@contextlib.contextmanager
def streams(stdout, stderr):
    """The two streams in place of the true ones."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = stdout, stderr
    try:
        yield
    finally:
        if sys.stdout is not stdout:
            sys.stdout.close()
        sys.stdout, sys.stderr = before


@pytest.mark.parametrize("at_write", [True, False])
@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (BrokenPipeError(), 0, ""),
        (OSError(28, "No space left on device"), 74, LOST.format("No space left on device")),
        (ValueError("closed"), 74, LOST.format("closed")),
    ],
)
def test_lost_output_is_told_once(error, status, told, at_write):
    """A reader that has gone is no failure; a full disk is one, told on stderr."""
    stderr = io.StringIO()
    with streams(Breaking(error, at_write=at_write), stderr):
        statuses = [speech.speak(["x"]), speech.speak([])]

    assert [status, 0] == statuses
    assert told == stderr.getvalue()


def test_a_second_line_on_stderr_is_not_said():
    """A failure is one line, also when its JSON is lost."""
    stderr = io.StringIO()
    with streams(Breaking(OSError(28, "full")), stderr):
        assert speech.speak(["x"], quietly=True) == 74

    assert stderr.getvalue() == ""


def test_what_a_terminal_cannot_spell_is_written_out():
    """An ASCII locale never makes a command fail."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with streams(stdout, io.StringIO()):
        assert speech.speak(["é\ud800"]) == 0

    assert stdout.buffer.getvalue() == b"\\xe9\\ud800\n"


def test_a_stream_without_an_encoding_gets_ascii():
    """As StringIO is one."""
    stderr = io.StringIO()
    with streams(io.StringIO(), stderr):
        speech.complain("é")

    assert stderr.getvalue() == "\\xe9\n"


def test_a_stderr_that_takes_nothing_is_no_failure():
    """There is nobody left to tell."""
    with streams(io.StringIO(), Breaking(OSError(28, "full"))):
        speech.complain("x")

        assert speech.speak([]) == 0


@pytest.mark.parametrize(
    ("redirected", "heard"), [("", True), (">&-", False), (">/dev/null", True)]
)
def test_a_stdout_that_was_closed_hears_nothing(redirected, heard):
    """What stands in its place is only there so that nothing else gets its number."""
    code = (
        "import sys; from dispatch.cli import main, speech; main._fill_standard_descriptors();"
        " sys.stderr.write(str(speech.is_heard()))"
    )
    argv = ["sh", "-c", f"{shlex.join([sys.executable, '-c', code])} {redirected}"]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True)

    assert str(heard) == ended.stderr
