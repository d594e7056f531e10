"""Durable files are whole or absent, and no read hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.durable import Unreadable, read_plain, sync, sync_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """All of it, private, and nothing else stays in the folder."""
    path, content = tmp_path / "file", os.urandom(300_000)

    write_whole(str(path), content)

    assert content == read_plain(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path] == list(tmp_path.iterdir())


def test_a_second_write_replaces_the_first(tmp_path: Path) -> None:
    """Also over what a killed write left behind."""
    path = tmp_path / "file"
    (tmp_path / "file.new").write_text("left behind, and longer")
    path.write_text("old")

    write_whole(str(path), b"")

    assert read_plain(str(path)) == b""
    assert [path] == list(tmp_path.iterdir())


def test_a_link_planted_in_the_way_is_not_followed(tmp_path: Path) -> None:
    """The victim keeps its bytes."""
    victim = tmp_path / "victim"
    victim.write_text("dear")
    (tmp_path / "file.new").symlink_to(victim)

    with pytest.raises(OSError, match="symbolic links"):
        write_whole(str(tmp_path / "file"), b"x")

    assert victim.read_text() == "dear"


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A write that fails is an error and changes nothing under the name."""
    program = (
        "import resource, signal, sys\n"
        "from registry.durable import write_whole\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_whole(sys.argv[1], b'x' * 5000)\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )
    path = tmp_path / "file"
    path.write_text("old")

    # Its coverage report would not fit under the limit either.
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], cwd=ROOT, env=env, check=False
    )

    assert done.returncode == 27
    assert path.read_text() == "old"


def test_a_folder_can_be_flushed_and_a_file_is_none(tmp_path: Path) -> None:
    """A rename is durable only after its folder."""
    sync_folder(str(tmp_path))
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        sync_folder(str(tmp_path / "file"))


def test_on_macos_a_flush_goes_through_the_drives_cache(tmp_path: Path) -> None:
    """There a plain fsync is not enough; the right call is made, and it alone."""
    program = (
        "import fcntl, os, sys\n"
        "sys.platform = 'darwin'\n"
        "fcntl.F_FULLFSYNC = 51\n"
        "fcntl.fcntl = lambda *args: print(args)\n"
        "os.fsync = None\n"
        "from registry.durable import sync\n"
        "sync(7)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True
    )

    assert done.stdout == b"(7, 51)\n"
    with (tmp_path / "file").open("wb") as file:
        sync(file.fileno())


def test_a_volume_that_knows_no_stronger_flush_gets_the_plain_one() -> None:
    """As a network volume on macOS does."""
    program = (
        "import fcntl, os, sys\n"
        "sys.platform = 'darwin'\n"
        "fcntl.F_FULLFSYNC = 51\n"
        "def refuse(*_): raise OSError(45, 'not supported')\n"
        "fcntl.fcntl = refuse\n"
        "os.fsync = print\n"
        "from registry.durable import sync\n"
        "sync(7)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True
    )

    assert done.stdout == b"7\n"


@pytest.mark.parametrize(
    "plant", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")]
)
def test_what_is_no_plain_file_is_not_read(tmp_path: Path, plant: Callable[[Path], None]) -> None:
    """A pipe without a writer, a folder, a device: refused at once."""
    path = tmp_path / "odd"
    plant(path)

    with pytest.raises(Unreadable, match="is not a plain file"):
        read_plain(str(path))


def test_the_limit_is_exact(tmp_path: Path) -> None:
    """A file of just the limit is read, one byte more is not."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)

    assert read_plain(str(path), 100) == b"x" * 100
    with pytest.raises(Unreadable, match="is larger than 99 bytes"):
        read_plain(str(path), 99)


def test_a_file_that_grows_while_it_is_read_ends_at_the_limit() -> None:
    """A size of 0 is not believed: files of /proc have it and hold bytes all the same."""
    whole = read_plain("/proc/self/status")
    part = read_plain("/proc/self/status", 9)

    assert whole.startswith(b"Name:\t")
    assert whole[:10] == part


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    """Claude Code's folder may be a link."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("file")

    assert read_plain(str(tmp_path / "link")) == b"x"


def test_a_pipe_planted_in_the_way_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody reads it, and nobody need."""
    os.mkfifo(tmp_path / "x.new")

    with pytest.raises(OSError, match=r"No such device|Device not configured"):
        write_whole(str(tmp_path / "x"), b"content")
