"""A quarter of a mebibyte that is given up on a full disk, so that what is begun can be settled."""

from __future__ import annotations

import contextlib
import os

from registry.durable import sync, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from registry.home import Places

SIZE = 1 << 18

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_ballast(places: Places) -> bool:
    """Whether the ballast lies there now; killed in the middle, a shorter one does.

    Real bytes, flushed: a file with holes would take no room, and give none back.
    """
    return lay(places.ballast)


def lay(path: str) -> bool:
    """Whether a ballast lies at *path* now.  That it does not is no error: it is a reserve."""
    with contextlib.suppress(OSError):
        if os.lstat(path).st_size >= SIZE:
            return True
        os.unlink(path)
    try:
        _write(path)
    except OSError:
        # On a disk that is full already, half of it would only make things worse.
        with contextlib.suppress(OSError):
            os.unlink(path)
        return False
    return True


def give_ballast(places: Places) -> bool:
    """Whether there was a ballast, and its room is free now."""
    try:
        os.unlink(places.ballast)
    except OSError:
        return False
    return True


def _write(path: str) -> None:
    fd = os.open(path, _NEW, 0o600)
    try:
        # Not zeroes: some file systems keep those as holes, and some compress.
        write_all(fd, os.urandom(SIZE))
        sync(fd)
    finally:
        os.close(fd)
