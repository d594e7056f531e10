"""The lease on a postbox: a descriptor that outlives whoever took it.

Raw flock, because the lock must live as long as any process that inherited the
descriptor: carrier and keeper keep it when the dispatcher is killed (decision
0006).  Not promised: exclusion on a network drive with local locks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat

from registry.errors import LeaseBusy, StateUnsafe
from registry.ids import parse_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from registry.clock import Clock

_POLL_S = 0.02
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# A file that is replaced this often between two looks is not replaced by accident.
_REPLACED = 50
_FIRST_FREE = 3


class Lease:
    """The right to drive *postbox*, held by everybody who has the descriptor open."""

    def __init__(self, fd: int, postbox: str, path: str):
        self.fd, self.postbox, self.path = fd, postbox, path

    def close(self) -> None:
        """Let go of our copy.

        Never an explicit unlock: that would take the lease from a carrier that
        still runs.
        """
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def take_lease(locks_dir: str, postbox: str, *, timeout_s: float, clock: Clock) -> Lease:
    """The lease on *postbox*, or LeaseBusy after *timeout_s*.

    Killed in the middle, the kernel frees the lease; the empty file stays and is
    never unlinked, because a second file of that name would be a second lease.
    """
    canonical = parse_uuid(postbox)
    if canonical is None:
        raise ValueError(f"a postbox is a UUID, not {postbox!r}")
    path = f"{locks_dir}/{canonical}.lock"
    deadline = clock.monotonic() + timeout_s
    replaced = 0
    while replaced < _REPLACED:
        lease = Lease(_open(path), canonical, path)
        locked = _lock(lease)
        if locked and still_ours(lease):
            return lease
        lease.close()
        if locked:
            replaced += 1
            continue
        left = deadline - clock.monotonic()
        if left <= 0:
            raise LeaseBusy(canonical, timeout_s)
        clock.sleep(min(_POLL_S, left))
    raise StateUnsafe(path, "is replaced again and again")


def still_ours(lease: Lease) -> bool:
    """Whether the locked file is still the one at its path; asked again before the spawn."""
    if lease.fd < 0:
        return False
    try:
        there = os.lstat(lease.path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(lease.fd), there)


def refuse_without_locks(folder: str) -> None:
    """StateUnsafe when the file system of *folder* has no native locks; nothing is left there."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    lease = Lease(fd, "", folder)
    try:
        _lock(lease)  # that somebody else has it says as much
    finally:
        lease.close()


def _open(path: str) -> int:
    try:
        fd = os.open(path, _FLAGS, 0o600)
        if fd < _FIRST_FREE:
            # Our caller closed a standard stream: its number must not reach the carrier.
            low, fd = fd, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
            os.close(low)
    except OSError as error:
        why = "is a symlink" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise StateUnsafe(path, why) from error
    fault = _fault(os.fstat(fd))
    if fault is not None:
        os.close(fd)
        raise StateUnsafe(path, fault)
    return fd


def _fault(found: os.stat_result) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "is not a plain file"
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, not to you"
    # No link at all is a file that was unlinked under us; the look at its path finds that.
    return "has a second name" if found.st_nlink > 1 else None


def _lock(lease: Lease) -> bool:
    try:
        fcntl.flock(lease.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        lease.close()
        raise StateUnsafe(lease.path, f"cannot be locked: {error.strerror}") from error
    return True
