"""What a target said later: on disk whole, read without an error whatever lies there."""

from __future__ import annotations

import json
import os
import resource
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrier.late import LATE, leave_late, read_late
from carrier.proof import Notice
from registry.record import fields
from tests.fakes.runs import die, in_child, limited, status_of, stumble

HELD = Notice("held", reason="it is held")
DENIED = Notice("denied", reason="no")


def put(folder, content):
    """*content* in the place of the late notices."""
    with open(f"{folder}/{LATE}", "wb") as file:
        file.write(content)


@pytest.mark.parametrize(
    "said",
    [
        (),
        (HELD,),
        (HELD, DENIED),
        (HELD, Notice("expired", "refused", None, "…\u2028\ud800")),
        (Notice("dropped", None, "rate-limited", None),) * 16,
    ],
)
def test_what_is_left_is_read_again(tmp_path, said):
    """In its order, word by word; the file is the owner's alone and nothing lies beside it."""
    leave_late(str(tmp_path), said)

    assert said == read_late(str(tmp_path))
    assert [LATE] == os.listdir(tmp_path)
    assert 0o600 == stat.S_IMODE(os.stat(tmp_path / LATE).st_mode)


def test_later_words_replace_earlier_ones(tmp_path):
    """The last one who leaves them knew all."""
    leave_late(str(tmp_path), (HELD,) * 9)
    leave_late(str(tmp_path), (HELD, DENIED))

    assert (HELD, DENIED) == read_late(str(tmp_path))


_ONE = fields(HELD)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[",
        b"{}",
        b"null",
        b'"held"',
        b"\xff",
        b"[" * 100_000,
        b"[7]",
        b"[null]",
        b"[[]]",
        b'[{"status":"held"}]',
        json.dumps([_ONE | {"status": 7}]).encode(),
        json.dumps([_ONE | {"more": 7}]).encode(),
        json.dumps([_ONE, 7]).encode(),
        b" " * (2 << 20),
    ],
    ids=range(15),
)
def test_what_is_not_exactly_notices_says_nothing(tmp_path, content):
    """Torn, foreign, too deep or too large: no notice, and no error."""
    put(tmp_path, content)

    assert () == read_late(str(tmp_path))


@pytest.mark.parametrize("how", ["no-folder", "missing", "folder", "pipe"])
def test_what_cannot_be_read_says_nothing(tmp_path, how):
    """Whatever lies there, it is not waited for."""
    if how == "folder":
        (tmp_path / LATE).mkdir()
    if how == "pipe":
        os.mkfifo(tmp_path / LATE)

    assert () == read_late(f"{tmp_path}/none" if how == "no-folder" else str(tmp_path))


@given(st.binary(max_size=200))
def test_no_bytes_are_an_error(tmp_path_factory, content):
    """Total: every answer is a tuple of notices."""
    folder = tmp_path_factory.mktemp("late")
    put(folder, content)

    assert all(isinstance(each, Notice) for each in read_late(str(folder)))


def test_killed_at_any_step_the_earlier_words_stand(tmp_path):
    """The old ones or the new ones, never half."""
    folder = str(tmp_path)
    for at in range(1, 20):
        leave_late(folder, (HELD,))

        def act(at=at):
            stumble(at, die)
            leave_late(folder, (HELD, DENIED))

        over = status_of(in_child(act)) == 0
        assert read_late(folder) in ((HELD,), (HELD, DENIED))
        if over:
            break
    assert at > 4
    assert (HELD, DENIED) == read_late(folder)


def test_on_a_full_disk_the_earlier_words_stand(tmp_path):
    """The error is the caller's."""
    leave_late(str(tmp_path), (HELD,))

    with limited(resource.RLIMIT_FSIZE, 10), pytest.raises(OSError, match="too large"):
        leave_late(str(tmp_path), (HELD, DENIED))

    assert (HELD,) == read_late(str(tmp_path))
