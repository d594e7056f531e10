"""Every way in which a session on disk may be odd, one for each reason to skip it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dispatch.rig.rows import write_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from dispatch.rig.rows import FakeSession


def _rewritten(**changes: Any) -> Callable[[FakeSession], None]:
    return lambda session: write_row(session.file, session.row | changes)


def _torn(session: FakeSession) -> None:
    os.truncate(session.file, os.path.getsize(session.file) // 2)


def _too_large(session: FakeSession) -> None:
    write_row(session.file, session.row | {"cwd": "/" + "x" * (1 << 19)})


def _not_a_file(session: FakeSession) -> None:
    os.unlink(session.file)
    os.mkfifo(session.file)


def _unreadable(session: FakeSession) -> None:
    os.unlink(session.file)
    # A plain file by its mode, whose first byte nobody can read, not even root.
    os.symlink("/proc/self/mem", session.file)


def _no_socket(session: FakeSession) -> None:
    os.unlink(session.socket)


def _not_a_socket(session: FakeSession) -> None:
    real = session.socket + ".real"
    os.rename(session.socket, real)
    os.symlink(real, session.socket)


def _refused(session: FakeSession) -> None:
    if session.listener is not None:
        session.listener.close()


def _no_process(session: FakeSession) -> None:
    os.kill(session.pid, 9)
    os.waitid(os.P_PID, session.pid, os.WEXITED | os.WNOWAIT)


# One for each word of REASONS that stands on disk; `foreign-owner` is a matter of Strangers.
DAMAGES: dict[str, Callable[[FakeSession], None]] = {
    "not-a-file": _not_a_file,
    "too-large": _too_large,
    "unreadable": _unreadable,
    "torn": _torn,
    "name-mismatch": _rewritten(pid=1),
    "no-session-id": _rewritten(sessionId=None),
    "parked": _rewritten(parkedJobId="job-1"),
    "foreign-domain": _rewritten(pidDomain="linux:another-machine:pid:[1]"),
    "no-process": _no_process,
    "no-start-time": _rewritten(procStart=None),
    "recycled": _rewritten(procStart="1"),
    "no-socket": _no_socket,
    "not-a-socket": _not_a_socket,
    "refused": _refused,
}
