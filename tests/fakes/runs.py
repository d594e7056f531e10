"""A stage for carrier runs: an attempt folder, a lease, a fake claude, an envelope."""

from __future__ import annotations

import fcntl
import os
import time

from carrier.argv import settings
from carrier.proof import issue
from carrier.run import carry_out
from carrier.ward import Order
from registry.clock import Clock
from registry.processes import Processes
from tests.fakes import claude
from tests.fakes.envelopes import DELIVERY, P, an_envelope

ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}


class Stage:
    """One attempt about to happen under *folder*; *laid_out*: its own folder has the permit."""

    def __init__(self, folder, *, laid_out=True, **behaviour):
        self.folder = str(folder)
        self.attempt_dir = f"{self.folder}/attempts/{DELIVERY}.1"
        self.cwd = f"{self.folder}/postbox"
        os.makedirs(f"{self.folder}/attempts", 0o700)
        os.mkdir(self.cwd)
        self.claude = claude.install(folder, **behaviour)
        self.lock = f"{self.folder}/postbox.lock"
        self.lease_fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self.lease_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if laid_out:
            os.mkdir(self.attempt_dir, 0o700)
            issue(self.attempt_dir, self.envelope())

    def envelope(self, **changes):
        """An envelope for T through P, with this stage's folder of rows and transcripts."""
        given = {"claude_dir": f"{self.folder}/claude-config", "settle_s": 0.0}
        return an_envelope(**(given | changes))

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
            "argv": self.argv(), "env": ENV, "cwd": self.cwd, "attempt_dir": self.attempt_dir,
            "lease_fd": self.lease_fd, "deadline_s": 10.0, "wrapper_s": 5.0,
        }  # fmt: skip
        return Order(**(given | changes))

    def run(self, **changes):
        """The run of one order, in this process."""
        return carry_out(self.order(**changes), Clock())

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
        """Whether the attempt folder has *name*."""
        return os.path.lexists(f"{self.attempt_dir}/{name}")


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
