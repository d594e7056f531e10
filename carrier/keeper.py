"""The keeper: stays with one carrier until nothing that it started is left.

It has its own session, so that neither a Ctrl-C nor the death of the dispatcher
ends it, and it holds the lease all the while.  Its last act is run.json; killed
before, the carrier lives on with the lease, and `carrier` on disk names it.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os

from carrier import proof
from carrier.ward import Ward
from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn

    from carrier.order import Order
    from registry.clock import Clock

_FIRST_FREE = 3
_LIKELY = 1024


class End(Record):
    """How a carrier run ended, as run.json has it."""

    exit: int | None = None  # negative: the signal
    timed_out: bool = False
    interrupted: bool = False
    spawn_error: str | None = None
    wall_ms: int = 0


def keep(order: Order, clock: Clock) -> NoReturn:
    """Run *order* to its end in this forked process, and leave the process."""
    status = 1
    try:
        # A finaliser would close the dispatcher's database under its feet.
        gc.disable()
        os.setsid()
        lease_fd = _close_all_but(order.lease_fd)
        fcntl.fcntl(lease_fd, fcntl.F_SETFD, 0)
        _attend(order, clock)
        status = 0
    finally:
        # Never exit(): buffers and exit handlers in here are the dispatcher's.
        os._exit(status)


def _attend(order: Order, clock: Clock) -> None:
    ward = Ward(order, clock)
    began = clock.monotonic()
    error = ward.start()
    if error is not None:
        proof.withdraw_all(order.folders)
        return _leave(order, ward, End(spawn_error=error))
    deadline = began + order.deadline_s
    ward.wait(deadline, lambda: ward.stop or ward.ended())
    late = not ward.ended()
    if late:
        ward.finish()
    wall_ms = round((clock.monotonic() - began) * 1000)
    ward.spare_wrapper()
    ward.sweep()
    end = End(ward.exit, late and not ward.stop, ward.stop, None, wall_ms)
    return _leave(order, ward, end)


def _leave(order: Order, ward: Ward, end: End) -> None:
    """What was printed, where it is anything, and at last run.json, in every folder of the round.

    Each tells the whole run, so that none needs another later.  Killed in the
    middle, run.json is absent or torn in some, as if the keeper had died earlier.
    """
    told = {proof.STDOUT: ward.out, proof.STDERR: ward.err}
    told[proof.RUN] = bytearray(json.dumps(fields(end)), "ascii")
    whole = tell(order.lead, told, None)
    for folder in order.folders[1:]:
        tell(folder, told, order.lead if whole else None)


def tell(folder: str, told: dict[str, bytearray], shared: str | None) -> bool:
    """Whether *folder* has all that is *told*, by the names that stand in *shared* if it can."""
    try:
        for name, content in told.items():
            if content and not (shared and _linked(f"{shared}/{name}", f"{folder}/{name}")):
                proof.write_plain(f"{folder}/{name}", content)
    except OSError:
        return False  # no reason to leave the other folders without
    return True


def _linked(path: str, name: str) -> bool:
    try:
        os.link(path, name)
    except OSError:
        return False  # not every file system has hard links, and none has any number
    return True


def _close_all_but(lease_fd: int) -> int:
    """The lease's descriptor; beside it only /dev/null is open afterwards, on 0, 1 and 2.

    Whoever reads our caller's stdout must not wait for the keeper, and nothing
    that our caller left open may reach the carrier.
    """
    if lease_fd < _FIRST_FREE:
        lease_fd = fcntl.fcntl(lease_fd, fcntl.F_DUPFD, _FIRST_FREE)
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(_FIRST_FREE):
        os.dup2(null, number)
        fcntl.fcntl(number, fcntl.F_SETFD, 0)
    for number in open_numbers("/dev/fd"):
        if number >= _FIRST_FREE and number != lease_fd:
            # It passes over what is not open, as the listing's own descriptor is by now.
            os.closerange(number, number + 1)
    return lease_fd


def open_numbers(folder: str) -> Iterable[int]:
    """The open descriptors as *folder* lists them; without it, all that are likely."""
    try:
        return map(int, os.listdir(folder))
    except OSError:
        return range(_LIKELY)
