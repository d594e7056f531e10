"""The carrier in its keeper's care: its start, its pipes, its deadline, its family.

Only the keeper's process may use a Ward: it takes over signals and reaps children.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal

from carrier import family, proof
from carrier.named import still_runs, write_down
from registry.processes import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from carrier.order import Order
    from registry.clock import Clock

STDOUT_LIMIT = 4 << 20
STDERR_LIMIT = 64 << 10
TERM_GRACE_S = 2.0
STRAY_GRACE_S = 0.5
TICK_S = 0.02

# Blocked from before the fork: the keeper takes TERM when it is ready, the others never.
HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_CHUNK = 1 << 16
_LAST_READS = 64
_HEAD_START_S = 0.005
# What Python ignores, we handle, or our caller may have ignored is no affair of the carrier.
_DEFAULTS = (*HELD, signal.SIGCHLD, signal.SIGPIPE, signal.SIGQUIT, signal.SIGXFSZ)


def wrapper_time(attempt_dir: str, wrapper_s: float, now: float) -> float:
    """The seconds that a wrapper which took this permit may still have, 0 to *wrapper_s*."""
    try:
        taken = os.stat(f"{attempt_dir}/{proof.INTENT}").st_mtime
    except OSError:
        return wrapper_s
    return min(max(taken + wrapper_s - now, 0.0), wrapper_s)


def receipts_are_there(taken: list[str]) -> bool:
    """Whether the wrapper is done with the door for all of *taken*, which shrinks meanwhile."""
    while taken and os.path.lexists(f"{taken[-1]}/{proof.RECEIPT}"):
        taken.pop()
    return not taken


class Ward:
    """One carrier, its two pipes, and everything that it starts."""

    def __init__(self, order: Order, clock: Clock):
        self.order, self.clock = order, clock
        self.out, self.err = bytearray(), bytearray()
        self.stop = False  # SIGTERM came: the deadline is now
        self.exit: int | None = None
        self.pid = 0
        self._adopts = False
        self._group = True  # the carrier's group may have members
        self._wake = self._wake_on_signals()

    def start(self) -> str | None:
        """Start the carrier; None, or why it cannot be started.

        Killed before the pid is on disk, the carrier goes on without a deadline,
        but with the lease.
        """
        program = self.order.argv[0]
        if not program.startswith("/"):
            # A bare name would be looked for in the folder that we are about to enter.
            return f"{program} is not on PATH"
        self._out, out = os.pipe()
        self._err, err = os.pipe()
        try:
            os.chdir(self.order.cwd)
            self.pid = os.posix_spawn(
                program,
                self.order.argv,
                self.order.env,
                file_actions=[(os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)],
                setpgroup=0,
                setsigmask=(),
                setsigdef=_DEFAULTS,
            )
        except OSError as error:
            return f"{error.filename or program}: {error.strerror or error}"
        except ValueError as error:
            return f"{program}: {error}"
        finally:
            os.close(out)
            os.close(err)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        self._name_on_disk()
        self._listen()
        # Adopting loads ctypes, 2 ms that an instantaneous carrier need not wait for;
        # the first child of a real one comes far later (CONTRACT j).
        over = self.wait(self.clock.monotonic() + _HEAD_START_S, self.ended)
        self._adopts = not over and family.adopt_orphans(self.order.adopt)
        return None

    def wait(self, limit: float, done: Callable[[], bool]) -> bool:
        """True as soon as *done*, False at *limit*; whatever is written meanwhile is read."""
        while not done():
            left = limit - self.clock.monotonic()
            if left <= 0:
                return False
            self._turn(min(left, TICK_S))
        return True

    def ended(self) -> bool:
        """Whether the carrier itself is over; its children may live on."""
        if self.exit is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit = os.waitstatus_to_exitcode(status)
                # Asked at once: while it has members, nobody else gets its number.
                self._group = family.signal_group(self.pid, 0)
        return self.exit is not None

    def finish(self) -> None:
        """End the carrier: a wrapper with a permit comes first, then TERM, at last KILL."""
        self.spare_wrapper()
        if not self.ended() and not self._ends_by(signal.SIGTERM):
            self._ends_by(signal.SIGKILL)

    def spare_wrapper(self) -> None:
        """The permits are withdrawn, or the wrapper that took some is done or out of time."""
        if not (taken := proof.withdraw_all(self.order.folders)):
            return
        left = wrapper_time(self.order.lead, self.order.wrapper_s, self.clock.now())
        limit = self.clock.monotonic() + left
        self.wait(limit, lambda: receipts_are_there(taken) or self._is_alone())

    def sweep(self) -> None:
        """Nothing that the ended carrier started is left; its last words are read."""
        if not self._is_cleared_by(signal.SIGTERM, STRAY_GRACE_S):
            self._is_cleared_by(signal.SIGKILL, TERM_GRACE_S)
        reads = _LAST_READS
        while reads and self._turn(0.0):
            reads -= 1

    def _ends_by(self, number: int) -> bool:
        family.signal_group(self.pid, number)
        # A carrier that has left its group is still ours.
        family.signal_each([self.pid], number)
        return self.wait(self.clock.monotonic() + TERM_GRACE_S, self.ended)

    def _is_cleared_by(self, number: int, patience: float) -> bool:
        limit = self.clock.monotonic() + patience
        return self.wait(limit, lambda: self._is_gone_after(number))

    def _is_alone(self) -> bool:
        return self._adopts and self.ended() and not self._is_left()

    def _is_left(self) -> bool:
        if self._adopts and family.reap() and self._strays():
            return True
        return self._group and family.signal_group(self.pid, 0)

    def _is_gone_after(self, number: int) -> bool:
        if not self._is_left():
            return True
        if self._group:
            family.signal_group(self.pid, number)
        if self._adopts:
            family.signal_each(self._strays(), number)
        return False

    def _strays(self) -> list[int]:
        """What the carrier started and left, but for the ear that stays (decisions/0009)."""
        found = family.descendants(os.getpid())
        # Asked last: whoever has signed in meanwhile heeds signals.
        ear = still_runs(f"{self.order.lead}/{proof.EAR}", Processes())
        return [pid for pid in found if pid != ear]

    def _turn(self, seconds: float) -> int:
        ready = self._poller.poll(seconds * 1000)
        for fd, _ in ready:
            part = os.read(fd, _CHUNK)
            if fd == self._wake:
                self.stop = self.stop or signal.SIGTERM in part
            elif not part:
                self._poller.unregister(fd)
                os.close(fd)
            elif fd == self._out:
                self.out += part[: STDOUT_LIMIT - len(self.out)]
            else:
                self.err += part
                del self.err[:-STDERR_LIMIT]
        return len(ready)

    def _wake_on_signals(self) -> int:
        """A descriptor that becomes readable when a child ends or TERM comes."""
        wake, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _noted)
        return wake

    def _listen(self) -> None:
        self._poller = select.poll()
        for fd in (self._wake, self._out, self._err):
            self._poller.register(fd, select.POLLIN)

    def _name_on_disk(self) -> None:
        # On a full disk the carrier still has its deadline.
        with contextlib.suppress(OSError):
            write_down(f"{self.order.lead}/{proof.CARRIER}", self.pid, Processes())


def _noted(_number: int, _frame: object) -> None:
    """Nothing: the wake-up descriptor has the signal's number."""
