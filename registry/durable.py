"""Files that are whole or absent: fsync, rename, and reads that cannot hang.

What this does not promise: survival of a drive that lies about its flushes.
"""

from __future__ import annotations

import os
import stat
import sys

READ_LIMIT = 1 << 20

_MACOS = sys.platform == "darwin"


class Unreadable(OSError):
    """A path that is not a plain file within the limit, so it was not read."""


def sync(fd: int) -> None:
    """Flush *fd* to the platter: on macOS a plain fsync stops in the drive's cache."""
    if _MACOS:
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            os.fsync(fd)  # a network volume knows nothing stronger
    else:
        os.fsync(fd)


def sync_folder(path: str) -> None:
    """Flush the names in *path*: a rename is durable only after this."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes | bytearray) -> None:
    """Write all of *content* to *fd*, however little the kernel takes at a time."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def write_whole(path: str, content: bytes, mode: int = 0o600) -> None:
    """Put *content* at *path* with *mode*, so that a reader finds all of it or none.

    Killed in the middle, the old file stands and a `.new` file may stay behind;
    the next write replaces it.
    """
    new = path + ".new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    # Whatever stands there, a pipe for one, is not waited for.
    fd = os.open(new, flags | os.O_NONBLOCK, 0o600)
    try:
        write_all(fd, content)
        if mode != 0o600:  # noqa: PLR2004 - what it was opened with
            os.fchmod(fd, mode)
        sync(fd)
    finally:
        os.close(fd)
    os.rename(new, path)
    sync_folder(os.path.dirname(path))


def read_plain(path: str, limit: int = READ_LIMIT) -> bytes:
    """The bytes of a plain file of at most *limit* bytes.

    Pipes, sockets, folders, devices and oversized files raise Unreadable; the
    open never blocks.  A symlink is followed: Claude Code's folder may be one.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path} is not a plain file")
        if found.st_size > limit:
            raise Unreadable(f"{path} is larger than {limit} bytes")
        parts = []
        left = limit + 1
        while left > 0 and (part := os.read(fd, min(left, 1 << 16))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)
