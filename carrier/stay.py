"""The ear that stays behind a held line, until its target has answered or ended.

A target tells what became of a held line to the process that wrote it and to no
other, and no transcript shows it (docs/decisions/0009).  So that process grows quiet
and stays: without the lease, with no descriptor but its sockets, and with an end.
"""

from __future__ import annotations

import contextlib
import os
import select

from carrier import proof
from carrier.late import leave_late
from carrier.named import write_down
from carrier.notices import SETTLED, is_held
from carrier.proof import Receipt
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from carrier.notices import Ear
    from registry.clock import Clock
    from registry.processes import Processes

STAY_S = 660.0  # an owner's dialog stays open for ten minutes at most, or for ever
_LOOK_S = 1.0  # between two looks whether the target and the folders are still there
_PAUSE_S = 0.05  # after each look, so that a stranger who keeps calling costs nearly nothing


class Held(Record):
    """One line that its target holds."""

    folder: str
    msg_id: str
    pid: int  # the target's process: what it holds dies with it


def held_in(lead: str) -> tuple[Held, ...]:
    """The lines of the run in *lead* that are held, as their receipts say."""
    folders = [lead, *(f"{os.path.dirname(lead)}/{name}" for name in proof.read_round(lead))]
    held = []
    for folder in folders:
        receipt = proof.read_receipt(folder)
        if isinstance(receipt, Receipt) and receipt.pid is not None and is_held(receipt.notices):
            held.append(Held(folder, receipt.msg_id, receipt.pid))
    return tuple(held)


def withdraw_from_the_run(lead: str, keep: Iterable[int], processes: Processes) -> None:
    """The calling process is no part of the run in *lead* any more, and its keeper knows.

    It has no terminal, a session of its own, and no descriptor but *keep*.  The lease
    too is let go: a carrier's child may hold a copy.
    """
    from carrier.keeper import open_numbers

    os.setsid()
    write_down(f"{lead}/{proof.EAR}", os.getpid(), processes)
    kept = frozenset(keep)
    null = os.open(os.devnull, os.O_RDWR)
    for number in {0, 1, 2} - kept:
        os.dup2(null, number)
    for number in open_numbers("/dev/fd"):
        if number > 2 and number not in kept:  # noqa: PLR2004 - stdin, stdout, stderr
            os.closerange(number, number + 1)


def stay(held: Sequence[Held], ears: Sequence[Ear], clock: Clock, processes: Processes) -> None:
    """What the targets say of *held* is in each line's folder, as far as they say it in time.

    Killed in the middle, what was heard stands, and the reply sockets stay behind.
    """
    waiting = {line.msg_id: line for line in held}
    born = {line.pid: processes.start_token(line.pid) for line in held}
    until = clock.monotonic() + STAY_S
    try:
        while waiting and clock.monotonic() < until:
            _wait(ears)
            clock.sleep(_PAUSE_S)
            # First whether a target has ended, then what it said: nothing is missed.
            ended = {pid for pid, token in born.items() if _has_ended(pid, token, processes)}
            for ear in ears:
                ear.hear()
            for msg_id, line in list(waiting.items()):
                if _is_answered(line, ears) or line.pid in ended or not _is_wanted(line):
                    del waiting[msg_id]
    finally:
        for ear in ears:
            ear.close()


def _wait(ears: Sequence[Ear]) -> None:
    poll = select.poll()
    for ear in ears:
        for fd in ear.waiting():
            poll.register(fd, select.POLLIN)
    poll.poll(_LOOK_S * 1000)


def _has_ended(pid: int, born: str | None, processes: Processes) -> bool:
    """Whether the process that was *born* then is gone; another may have its number."""
    # Empty: it runs, and this machine does not say since when.
    return born is None or processes.start_token(pid) not in (born, "")


def _is_answered(line: Held, ears: Sequence[Ear]) -> bool:
    """Whether the target has said its last word on *line*, which is on disk then."""
    said = tuple(notice for ear in ears for notice in ear.notices.get(line.msg_id, ()))
    if SETTLED.isdisjoint(notice.status for notice in said):
        return False
    # On a full disk, or when the folder went, a later look knows less, and says so.
    with contextlib.suppress(OSError):
        leave_late(line.folder, said)
    return True


def _is_wanted(line: Held) -> bool:
    """Whether the line's folder is there: when somebody has settled it, it is gone."""
    return os.path.lexists(line.folder)
