"""One carrier run from the dispatcher's side: fork a keeper, wait, read what it left.

The dispatcher may be killed at any moment: the keeper and the carrier go on, the
lease with them, and run.json tells whoever comes next.
"""

from __future__ import annotations

import json
import os

from carrier import family, proof
from registry.durable import read_plain
from registry.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from carrier.order import Order
    from registry.clock import Clock

_OUTPUT_LIMIT = 4 << 20
_POLL_S = 0.02
_KEEPER_S = 10.0  # what a keeper needs beside deadline and wrapper: its graces, a loaded machine


class Run(Record):
    """What happened to one carrier; facts only."""

    exit: int | None  # None: not known, or never started; negative: the signal
    timed_out: bool
    spawn_error: str | None
    stdout: bytes  # at most the first 4 MiB
    stderr: bytes  # at most the last 64 KiB
    wall_ms: int
    interrupted: bool = False  # Ctrl-C in the dispatcher, or TERM to the keeper


def find_binary(name: str, path: str) -> str | None:
    """The absolute path of the program *name*, looked up along *path*; None when there is none.

    Relative and empty entries of *path* are skipped: the current folder has no say.
    """
    if "/" in name:
        tried = [os.path.abspath(name)]
    else:
        tried = [f"{folder}/{name}" for folder in path.split(":") if folder.startswith("/")]
    return next((p for p in tried if os.path.isfile(p) and os.access(p, os.X_OK)), None)


def run_carrier(order: Order, clock: Clock, fork: Callable[[], int] = os.fork) -> Run:
    """Carry *order* out under a keeper and wait until nothing of the carrier is left.

    The lease reaches keeper and carrier, and no other descriptor does.  Killed in
    the middle, the keeper goes on and leaves run.json.  Ctrl-C makes the deadline
    now, and the Run says so.
    """
    import signal

    from carrier.keeper import keep
    from carrier.ward import HELD

    held = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        # A fork costs 1.5 ms where starting a second interpreter costs 10.
        pid = fork() or keep(order, clock)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, held)
        proof.withdraw_all(order.folders)
        return _run(spawn_error=f"no process for the keeper: {error.strerror}")
    interrupted = _await(pid, order, held, clock)
    run = read_run(order.lead)
    if run is None:
        _end_orphans(order, clock)
        return _run(interrupted=interrupted)
    # A Ctrl-C may come when the keeper no longer listens.
    return replace(run, interrupted=run.interrupted or interrupted)


def _await(pid: int, order: Order, held: set[int], clock: Clock) -> bool:
    """Whether Ctrl-C came while the keeper *pid* was waited for; afterwards it is gone.

    A keeper that was stopped, by a debugger or a freezer, is not waited for longer
    than everything in its care may take.
    """
    import signal

    watched = watch(pid)
    limit = clock.monotonic() + order.deadline_s + 2 * order.wrapper_s + _KEEPER_S
    interrupted = False
    while True:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            if not ended_by(pid, limit, clock, watched):
                family.signal_each([pid], signal.SIGKILL)
                os.waitpid(pid, 0)
            break
        except KeyboardInterrupt:
            interrupted = True
            family.signal_each([pid], signal.SIGTERM)
        except ChildProcessError:
            break  # our caller ignores SIGCHLD, so the kernel has reaped it
    if watched is not None:
        os.close(watched)
    return interrupted


def watch(pid: int) -> int | None:
    """A descriptor that becomes readable when the child *pid* ends; None where there is none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # no such thing on macOS, or the child was reaped already


def ended_by(pid: int, limit: float, clock: Clock, watched: int | None) -> bool:
    """Whether the child *pid* was reaped before *limit*; not *watched*, it is looked for often."""
    while (left := limit - clock.monotonic()) > 0:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return True
        if watched is None:
            clock.sleep(_POLL_S)
        else:
            _readable(watched, left)
    return False


def _readable(fd: int, seconds: float) -> None:
    import select

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(seconds * 1000)


def read_run(attempt_dir: str) -> Run | None:
    """The run that a keeper left in *attempt_dir*; None while it is not over, or never will be."""
    try:
        end = json.loads(read_plain(f"{attempt_dir}/{proof.RUN}"))
        stdout = _printed(f"{attempt_dir}/{proof.STDOUT}")
        return Run(**end, stdout=stdout, stderr=_printed(f"{attempt_dir}/{proof.STDERR}"))
    except (OSError, ValueError, TypeError):
        return None


def _printed(path: str) -> bytes:
    try:
        return read_plain(path, _OUTPUT_LIMIT)
    except FileNotFoundError:
        return b""


def _run(*, spawn_error: str | None = None, interrupted: bool = False) -> Run:
    return Run(
        exit=None,
        timed_out=False,
        spawn_error=spawn_error,
        stdout=b"",
        stderr=b"",
        wall_ms=0,
        interrupted=interrupted,
    )


def _end_orphans(order: Order, clock: Clock) -> None:
    """What a killed keeper left is gone; a wrapper that holds a permit comes first."""
    import signal

    from carrier import ward
    from carrier.named import still_runs
    from registry.processes import Processes

    taken, processes = proof.withdraw_all(order.folders), Processes()

    def ear() -> int | None:
        return still_runs(f"{order.lead}/{proof.EAR}", processes)

    try:
        named = read_plain(f"{order.lead}/{proof.CARRIER}").decode("ascii")
        orphans = family.Orphans(named, processes, spared=ear)
    except (OSError, ValueError):
        return  # it was killed before it had a carrier to name
    if taken:
        left = ward.wrapper_time(order.lead, order.wrapper_s, clock.now())
        _wait(left, lambda: ward.receipts_are_there(taken) or not orphans.left(), clock)
    for number in (signal.SIGTERM, signal.SIGKILL):
        family.signal_each(orphans.left(), number)
        _wait(ward.TERM_GRACE_S, lambda: not orphans.left(), clock)


def _wait(seconds: float, done: Callable[[], bool], clock: Clock) -> None:
    limit = clock.monotonic() + seconds
    while not done() and clock.monotonic() < limit:
        clock.sleep(_POLL_S)
