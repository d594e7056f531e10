"""The lease: one holder a postbox, also when the holder is a child of a killed parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.clock import Clock
from registry.errors import LeaseBusy, StateUnsafe
from registry.locks import Lease, still_ours, take_lease

if TYPE_CHECKING:
    from collections.abc import Callable

POSTBOX = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
ROOT = Path(__file__).parents[2]


class StepClock(Clock):
    """Time that passes only by sleeping; *step* is done at each sleep."""

    def __init__(self, step: Callable[[], None] = lambda: None):
        self.slept: list[float] = []
        self._step = step

    def monotonic(self) -> float:
        """The sum of all sleeps."""
        return sum(self.slept)

    def sleep(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self.slept.append(seconds)
        self._step()


def take(folder: Path, *, timeout_s: float = 0, clock: Clock | None = None) -> Lease:
    """The lease on POSTBOX."""
    return take_lease(str(folder), POSTBOX, timeout_s=timeout_s, clock=clock or StepClock())


def lock_file(folder: Path) -> Path:
    """Where the lease on POSTBOX is."""
    return folder / f"{POSTBOX}.lock"


def busy(folder: Path) -> bool:
    """Whether somebody else holds the lease."""
    try:
        take(folder).close()
    except LeaseBusy:
        return True
    return False


def test_a_lease_excludes_the_next_taker(tmp_path: Path) -> None:
    """Two takers, one lease; after the close the next one has it."""
    lease = take(tmp_path)

    with pytest.raises(LeaseBusy) as caught:
        take(tmp_path)
    lease.close()

    assert (caught.value.postbox, caught.value.waited) == (POSTBOX, 0)
    assert not busy(tmp_path)


def test_postboxes_do_not_exclude_each_other(tmp_path: Path) -> None:
    """A lease is on one postbox."""
    first = take(tmp_path)
    other = "388e03f6-0000-4000-8000-000000000001"
    second = take_lease(str(tmp_path), other, timeout_s=0, clock=StepClock())

    assert (POSTBOX, other) == (first.postbox, second.postbox)
    first.close()
    second.close()


def test_every_spelling_of_an_id_is_one_lease(tmp_path: Path) -> None:
    """Otherwise upper case would be a second driver."""
    lease = take(tmp_path)

    with pytest.raises(LeaseBusy):
        take_lease(str(tmp_path), f" URN:UUID:{POSTBOX.upper()}", timeout_s=0, clock=StepClock())
    lease.close()


@pytest.mark.parametrize("postbox", ["", "../x", "name", "/etc/passwd", "a\0b"])
def test_what_is_no_id_is_no_file(tmp_path: Path, postbox: str) -> None:
    """A name from outside never becomes a path."""
    with pytest.raises(ValueError, match="a postbox is a UUID"):
        take_lease(str(tmp_path), postbox, timeout_s=0, clock=StepClock())

    assert list(tmp_path.iterdir()) == []


def test_the_file_is_private_and_closed_on_exec(tmp_path: Path) -> None:
    """Nobody else may open it, and no program gets it by accident."""
    lease = take(tmp_path)

    assert lock_file(tmp_path).stat().st_mode & 0o777 == 0o600
    assert not os.get_inheritable(lease.fd)
    lease.close()


def test_closing_twice_closes_nobody_elses_descriptor(tmp_path: Path) -> None:
    """A second close must not hit the number that the first one freed."""
    lease = take(tmp_path)
    number = lease.fd
    lease.close()
    reused = os.open(os.devnull, os.O_RDONLY)

    lease.close()

    assert number == reused
    os.fstat(reused)
    os.close(reused)


def test_no_patience_is_busy_at_once(tmp_path: Path) -> None:
    """A lock timeout of 0 does not sleep."""
    lease, clock = take(tmp_path), StepClock()

    with pytest.raises(LeaseBusy):
        take(tmp_path, clock=clock)

    assert clock.slept == []
    lease.close()


def test_patience_is_as_long_as_asked(tmp_path: Path) -> None:
    """Looks come every 20 ms, the last wait is only what is left."""
    lease, clock = take(tmp_path), StepClock()

    with pytest.raises(LeaseBusy) as caught:
        take(tmp_path, timeout_s=0.05, clock=clock)

    assert [0.02, 0.02, pytest.approx(0.01)] == clock.slept
    assert f"postbox {POSTBOX} was in use for all of 0.05 s" == str(caught.value)
    lease.close()


def test_a_lease_that_becomes_free_is_taken(tmp_path: Path) -> None:
    """The waiting one gets it at its next look."""
    first = take(tmp_path)
    clock = StepClock(first.close)

    second = take(tmp_path, timeout_s=1, clock=clock)

    assert clock.slept == [0.02]
    assert still_ours(second)
    second.close()


def test_a_lock_file_that_stays_behind_is_free(tmp_path: Path) -> None:
    """What a killed holder leaves, also its pid, stops nobody."""
    lock_file(tmp_path).write_text(str(os.getpid()))

    assert not busy(tmp_path)
    assert lock_file(tmp_path).exists()


def test_an_unlinked_file_is_no_longer_ours(tmp_path: Path) -> None:
    """A second file of the same name would be a second lease, so the holder must know."""
    lease = take(tmp_path)
    lock_file(tmp_path).unlink()
    unlinked = still_ours(lease)
    second = take(tmp_path)

    assert not unlinked
    assert not still_ours(lease)
    assert still_ours(second)
    lease.close()
    assert not still_ours(lease)
    second.close()


# Takes the lease in a process whose flock does more than the kernel's: argv is the
# folder, the postbox, what else flock does, and how often.
ODD_FLOCK = """
import errno, fcntl, os, sys
from registry import locks
from registry.clock import Clock
folder, postbox, fault, times = sys.argv[1:]
real, times = fcntl.flock, [int(times)]
def flock(fd, flags):
    if fault == "unsupported":
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
    real(fd, flags)
    if times[0]:
        times[0] -= 1
        path = f"{folder}/{postbox}.lock"
        os.rename(path, path + ".old") if fault == "renamed" else os.unlink(path)
locks.fcntl.flock = flock
try:
    lease = locks.take_lease(folder, postbox, timeout_s=0, clock=Clock())
    print(locks.still_ours(lease))
except locks.StateUnsafe as error:
    print(error.why)
"""


@pytest.mark.parametrize(
    ("fault", "times", "outcome"),
    [
        ("renamed", 1, "True"),
        ("unlinked", 49, "True"),
        ("unlinked", 10**6, "is replaced again and again"),
        ("unsupported", 0, "cannot be locked: No locks available"),
    ],
)
def test_a_lock_on_a_file_that_is_not_at_the_path_is_none(
    tmp_path: Path, fault: str, times: int, outcome: str
) -> None:
    """Replaced between open and lock: opened again.  Not lockable: refused, not assumed."""
    argv = [sys.executable, "-c", ODD_FLOCK, str(tmp_path), POSTBOX, fault, str(times)]

    done = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, text=True)

    assert f"{outcome}\n" == done.stdout


def symlink(path: Path) -> None:
    """A link to somebody's file."""
    victim = path.with_name("victim")
    victim.write_text("dear")
    path.symlink_to(victim)


def dangling(path: Path) -> None:
    """A link to where a file would be made."""
    path.symlink_to(path.with_name("victim"))


def hard_link(path: Path) -> None:
    """Somebody's file under a second name."""
    victim = path.with_name("victim")
    victim.write_text("dear")
    path.hardlink_to(victim)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (symlink, "is a symlink"),
        (dangling, "is a symlink"),
        (hard_link, "has a second name"),
        (os.mkfifo, "is not a plain file"),
        (Path.mkdir, "Is a directory"),
    ],
)
def test_what_is_planted_at_the_path_is_refused(
    tmp_path: Path, plant: Callable[[Path], None], why: str
) -> None:
    """Refused at once, and the victim keeps its bytes."""
    path = lock_file(tmp_path)
    plant(path)

    with pytest.raises(StateUnsafe) as caught:
        take(tmp_path)

    victim = tmp_path / "victim"
    assert (str(path), why) == (caught.value.path, caught.value.why)
    assert plant is not dangling or not victim.exists()
    assert not victim.exists() or victim.read_text() == "dear"


def test_without_its_folder_there_is_no_lease(tmp_path: Path) -> None:
    """A folder is never made here."""
    with pytest.raises(StateUnsafe, match="No such file"):
        take(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """Its owner could unlock or replace it."""
    lock_file(tmp_path).touch(0o600)
    os.chown(lock_file(tmp_path), 12345, -1)

    with pytest.raises(StateUnsafe, match="belongs to user 12345, not to you"):
        take(tmp_path)


def test_the_lease_never_takes_the_number_of_a_standard_stream(tmp_path: Path) -> None:
    """With stdin closed, the carrier would otherwise get the lease as its stdin."""
    program = (
        "import os, sys\n"
        "from registry.locks import take_lease\n"
        "from registry.clock import Clock\n"
        "os.close(0)\n"
        "lease = take_lease(sys.argv[1], sys.argv[2], timeout_s=0, clock=Clock())\n"
        "low = os.open(os.devnull, os.O_RDONLY)\n"
        "print(lease.fd > 2, low, os.get_inheritable(lease.fd))\n"
    )

    argv = [sys.executable, "-c", program, str(tmp_path), POSTBOX]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, text=True)

    assert done.stdout == "True 0 False\n"


HOLDER = """
import os, subprocess, sys, time
from registry.locks import take_lease
from registry.clock import Clock
lease = take_lease(sys.argv[1], sys.argv[2], timeout_s=0, clock=Clock())
passed = (lease.fd,) if sys.argv[3] == "passed" else ()
child = subprocess.Popen(["sleep", "600"], pass_fds=passed)
print(child.pid, flush=True)
if sys.argv[4] == "close":
    lease.close()
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("passed", "parent", "held"),
    [("passed", "kill", True), ("passed", "close", True), ("kept", "kill", False)],
)
def test_a_child_keeps_the_lease_that_it_inherited(
    tmp_path: Path, passed: str, parent: str, held: bool
) -> None:
    """A dispatcher that is killed or closes its copy does not free a carrier's postbox.

    The last case is the control: not passed, the lease is gone with its taker.
    """
    argv = [sys.executable, "-c", HOLDER, str(tmp_path), POSTBOX, passed, parent]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        if parent == "kill":
            holder.kill()
            holder.wait()
        found = busy(tmp_path)
        os.kill(child, signal.SIGKILL)
        if parent == "close":
            holder.kill()
    deadline = time.monotonic() + 10
    while busy(tmp_path):
        assert time.monotonic() < deadline

    assert held == found
