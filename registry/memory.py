"""What one call keeps for the next: in a folder that is ours, whole or not at all, never needed."""

from __future__ import annotations

import contextlib
import json
import os
import stat

from registry.durable import read_plain, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def is_ours(folder: str) -> bool:
    """Whether *folder* exists and nobody else can put a file into it."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return ours and not found.st_mode & 0o022


def recall(path: str, limit: int) -> Any:
    """The JSON value at *path*, at most *limit* bytes long; None when it cannot be had."""
    try:
        return json.loads(read_plain(path, limit).decode())
    except (OSError, ValueError, RecursionError):
        return None


def keep(path: str, value: Any) -> None:
    """Put *value* at *path* as JSON, or leave what is there.

    Killed in the middle, the old value stands.
    """
    from filelock import FileLock, Timeout

    content = json.dumps(value).encode()
    lock = FileLock(path + ".lock", timeout=0, mode=0o600, fallback_to_soft=False)
    # A full disk, or another writer, only costs the next call its time.
    with contextlib.suppress(OSError, Timeout, NotImplementedError), lock:
        write_whole(path, content)
