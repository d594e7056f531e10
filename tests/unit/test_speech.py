"""stdout and stderr: nothing makes a command fail by being said."""

from __future__ import annotations

import io
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


@pytest.fixture
def streams():
    """Put in other streams; the true ones are back afterwards."""
    before = sys.stdout, sys.stderr
    yield
    sys.stdout.close()
    sys.stdout, sys.stderr = before


@pytest.mark.usefixtures("streams")
@pytest.mark.parametrize("at_write", [True, False])
@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (BrokenPipeError(), 0, ""),
        (
            OSError(28, "No space left on device"),
            74,
            LOST.format("No space left on device"),
        ),
        (
            ValueError("closed"),
            74,
            LOST.format("closed"),
        ),
    ],
)
def test_lost_output_is_told_once(error, status, told, at_write):
    """A reader that has gone is no failure; a full disk is one, told on stderr."""
    sys.stdout, sys.stderr = Breaking(error, at_write=at_write), io.StringIO()
    statuses = [speech.speak(["x"]), speech.flush()]

    assert [status, 0] == statuses
    assert told == sys.stderr.getvalue()


@pytest.mark.usefixtures("streams")
def test_what_a_terminal_cannot_spell_is_written_out():
    """An ASCII locale never makes a command fail."""
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    assert speech.speak(["é\ud800"]) == 0
    assert sys.stdout.buffer.getvalue() == b"\\xe9\\ud800\n"


@pytest.mark.usefixtures("streams")
def test_a_stream_without_an_encoding_gets_ascii():
    """As StringIO is one."""
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    speech.complain("é")

    assert sys.stderr.getvalue() == "\\xe9\n"


@pytest.mark.usefixtures("streams")
def test_a_stderr_that_takes_nothing_is_no_failure():
    """There is nobody left to tell."""
    sys.stdout, sys.stderr = io.StringIO(), Breaking(OSError(28, "full"))
    speech.complain("x")

    assert sys.stderr.at_write
