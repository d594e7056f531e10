"""A stage for carrier runs: attempt folders, a lease, a fake claude, envelopes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import time

from carrier.argv import settings
from carrier.order import Order
from carrier.proof import issue
from carrier.run import run_carrier
from dispatch.rig import claude
from registry.clock import Clock
from registry.processes import Processes
from tests.fakes.envelopes import DELIVERY, P, a_round, an_envelope

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class Stage:
    """A round of *lines* about to happen under *folder*; *laid_out*: its folders have permits."""

    def __init__(self, folder, *, laid_out=True, lines=1, **behaviour):
        self.folder = str(folder)
        self.lines = lines
        self.folders = tuple(
            f"{self.folder}/attempts/{each.delivery_id}.1" for each in self.envelopes()
        )
        self.attempt_dir = self.folders[0]
        self.cwd = f"{self.folder}/postbox"
        os.makedirs(f"{self.folder}/attempts", 0o700)
        os.mkdir(self.cwd)
        self.claude = claude.install(folder, **behaviour)
        self.lock = f"{self.folder}/postbox.lock"
        self.lease_fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lease_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for each, envelope in zip(self.folders, self.envelopes(), strict=True):
            if laid_out:
                os.mkdir(each, 0o700)
                issue(each, envelope)

    def envelope(self, **changes):
        """An envelope for T through P, with this stage's folder of rows and transcripts."""
        given = {"claude_dir": f"{self.folder}/claude-config", "settle_s": 0.0}
        return an_envelope(**(given | changes))

    def envelopes(self, **changes):
        """One for each line; that of a lone line is the plain one."""
        given = {"claude_dir": f"{self.folder}/claude-config", "settle_s": 0.0}
        if self.lines == 1:
            return (self.envelope(**changes),)
        return a_round(self.lines, **(given | changes))

    def hook(self, command, timeout_s=30):
        """Put the settings file there with *command* as the hook."""
        with open(f"{self.attempt_dir}/settings.json", "wb") as file:
            file.write(settings(command, timeout_s))

    def argv(self, *more):
        """A command line for the fake."""
        words = ["-p", "--resume", P, "--settings", f"{self.attempt_dir}/settings.json"]
        return [self.claude, *words, *more, "--", f"zdo knock {DELIVERY}"]

    def order(self, **changes):
        """An order for the fake."""
        given = {
            "argv": self.argv(), "env": ENV, "cwd": self.cwd, "folders": self.folders,
            "lease_fd": self.lease_fd, "deadline_s": 10.0, "wrapper_s": 5.0,
        }  # fmt: skip
        return Order(**(given | changes))

    def run(self, **changes):
        """The run of one order, in this process."""
        return run_carrier(self.order(**changes), Clock())

    def dispatcher(self, **changes):
        """The pid of a dispatcher of its own; it has let go of nothing when it dies."""
        return in_child(lambda: self.run(**changes))

    def lease_is_free(self):
        """Whether somebody else could take the lease now."""
        fd = os.open(self.lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(fd)
        return True

    def log(self, event):
        """What the fake recorded of *event*."""
        return claude.log_of(self.claude, event)

    def has(self, name):
        """Whether the lead's folder has *name*."""
        return os.path.lexists(f"{self.attempt_dir}/{name}")

    def having(self, name):
        """The numbers of the lines whose folder has *name*, counted from 0."""
        return [at for at, each in enumerate(self.folders) if os.path.lexists(f"{each}/{name}")]


@contextlib.contextmanager
def limited(what, limit):
    """A lower *limit* for *what* in this process, until the block is left."""
    before = resource.getrlimit(what)
    resource.setrlimit(what, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


def slow_taker(folders, seconds):
    """A wrapper in shell: takes the permits in *folders*, works, leaves all receipts at last."""
    taken = "; ".join(f"mv {each}/permit {each}/intent && touch {each}/intent" for each in folders)
    left = "; ".join(f": > {each}/receipt.json" for each in folders)
    return f"trap '' TERM; {taken}; sleep {seconds}; {left}"


def in_child(act):
    """The pid of a forked process that acts and leaves with 0, or with 1 on any error."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        finally:
            os._exit(status)
    return pid


_STEPS = ("mkdir", "open", "write", "fsync", "rename", "unlink", "rmdir", "listdir", "link")


def stumble(at, trip, *, lasting=False, steps=_STEPS):
    """Let the *at*-th of this process's *steps* in the file system begin with *trip*.

    *lasting*: and every later one.  For a child's process alone: nothing is put back.
    """
    taken = 0

    def stumbling(step):
        def taking(*words, **more):
            nonlocal taken
            taken += 1
            if taken == at or (lasting and taken > at):
                trip()
            return step(*words, **more)

        return taking

    for name in steps:
        setattr(os, name, stumbling(getattr(os, name)))


def die():
    """End this process as kill -9 does."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail(number):
    """What raises the system's error *number*."""

    def failing():
        raise OSError(number, os.strerror(number))

    return failing


def status_of(pid):
    """How the child *pid* ended, as subprocess says it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def runs(pid):
    """Whether *pid* is a living process."""
    return Processes().start_token(pid) is not None


def wait_for(condition, seconds=10.0):
    """The first true value of *condition*; an AssertionError after *seconds*."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it never became true"
        time.sleep(0.005)
    return found
