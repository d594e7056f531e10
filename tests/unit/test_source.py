"""Where the line comes from, and how much of it is read."""

from __future__ import annotations

import io

import pytest

from dispatch.cli.source import line_source
from dispatch.errors import LineInvalid
from dispatch.line import MOST_BYTES


class Broken(io.RawIOBase):
    """A stdin that cannot be read."""

    def read(self, _size=-1):
        """Fail as a terminal does that went away."""
        raise OSError(5, "Input/output error")


class Endless(io.RawIOBase):
    """A stdin without an end; what was asked for is counted."""

    asked = 0

    def read(self, size=-1):
        """Give all that is asked for."""
        self.asked += size
        return b"x" * size


def test_a_word_is_the_line():
    """Nothing else is touched."""
    assert line_source("tests are green", None, Broken())() == b"tests are green"


def test_no_word_is_an_empty_line():
    """It is refused as a line, when it is its turn."""
    with pytest.raises(LineInvalid, match="empty"):
        line_source(None, None, Broken())()


def test_a_hyphen_is_stdin():
    """One trailing newline is not part of it."""
    assert line_source("-", None, io.BytesIO(b"two\nlines\n"))() == b"two\nlines"


def test_a_file_is_read_and_stdin_is_not(tmp_path):
    """`--file` wins over nothing: the words were checked before."""
    path = tmp_path / "note.txt"
    path.write_bytes(b"note\n")

    assert line_source(None, str(path), Broken())() == b"note"


def test_nothing_is_read_before_it_is_asked_for():
    """A nested kiss is refused before it eats somebody's stdin."""
    stdin = io.BytesIO(b"x")
    line_source("-", None, stdin)

    assert stdin.tell() == 0


def test_an_endless_stdin_is_read_no_further_than_a_line_is_long():
    """`yes | zdo kiss fable -` ends."""
    stdin = Endless()

    with pytest.raises(LineInvalid, match="longer"):
        line_source("-", None, stdin)()
    assert stdin.asked <= MOST_BYTES + 2


def test_the_longest_line_comes_through_a_pipe_with_its_newline():
    """The newline does not count."""
    assert len(line_source("-", None, io.BytesIO(b"x" * MOST_BYTES + b"\n"))()) == MOST_BYTES


@pytest.mark.parametrize("path", ["absent", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_line_invalid(path, tmp_path):
    """Absent, a folder, not even a name: a sentence with the path."""
    with pytest.raises(LineInvalid, match="cannot be read"):
        line_source(None, f"{tmp_path}/{path}", Broken())()


def test_a_stdin_that_cannot_be_read_is_line_invalid():
    """And says why."""
    with pytest.raises(LineInvalid, match="Input/output error"):
        line_source("-", None, Broken())()
