"""The room that is given up on a full disk."""

from __future__ import annotations

import os
import resource
import signal
import stat

import pytest

from dispatch.ballast import SIZE, give_ballast, lay_ballast
from registry.home import find_places


@pytest.fixture
def places(tmp_path):
    """Places whose state folder exists."""
    return find_places({"HOME": "/nowhere", "ZDO_STATE_DIR": str(tmp_path)})


def test_it_is_a_quarter_of_a_mebibyte_of_real_bytes_for_its_owner_alone(places):
    """Holes would take no room, and give none back."""
    old = os.umask(0)
    try:
        assert lay_ballast(places)
    finally:
        os.umask(old)

    found = os.stat(places.ballast)
    assert (SIZE, 1 << 18) == (found.st_size, SIZE)
    assert found.st_blocks * 512 >= SIZE
    assert stat.S_IMODE(found.st_mode) == 0o600


def test_one_that_lies_there_stays(places):
    """Nothing is written that is there already."""
    lay_ballast(places)
    before = os.stat(places.ballast)

    assert lay_ballast(places)
    after = os.stat(places.ballast)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_it_is_given_once(places):
    """Who asks next learns that there is no room left to give."""
    lay_ballast(places)

    assert [True, False] == [give_ballast(places), give_ballast(places)]
    assert not os.path.exists(places.ballast)


def test_half_a_ballast_is_made_whole(places):
    """A process was killed, or the disk was full, while it was laid."""
    with open(places.ballast, "wb") as file:
        file.write(b"half")

    assert lay_ballast(places)
    assert SIZE == os.path.getsize(places.ballast)


@pytest.mark.parametrize("kind", ["symlink", "fifo"])
def test_what_is_no_file_is_replaced_and_never_followed(places, kind, tmp_path):
    """The victim of a planted link keeps its bytes."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    if kind == "symlink":
        os.symlink(victim, places.ballast)
    else:
        os.mkfifo(places.ballast)

    assert lay_ballast(places)

    assert b"untouched" == victim.read_bytes()
    assert stat.S_ISREG(os.lstat(places.ballast).st_mode)


def test_a_folder_in_its_place_is_no_ballast(places):
    """It is left alone, and there is no reserve; that is no error."""
    os.mkdir(places.ballast)

    assert [False, False] == [lay_ballast(places), give_ballast(places)]
    assert os.path.isdir(places.ballast)


def lay_with_little_room(places, most):
    """Whether a ballast is laid by a child whose files may be *most* bytes long."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        laid = lay_ballast(places)
        # What measures the tests writes its own file at the end.
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        os._exit(laid)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_ballast_that_finds_no_room_leaves_nothing(places):
    """On a full disk half of it would only make things worse."""
    assert not lay_with_little_room(places, SIZE // 2)
    assert not os.path.exists(places.ballast)
    assert lay_with_little_room(places, SIZE)
