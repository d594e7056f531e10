"""The folders of one run: laid out whole or not at all, and cleared in one step.

A folder gets its name by a rename when its permit is in it, and loses it by another
before its files go.  So whatever is killed, a folder that stands tells a history.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from carrier import proof
from carrier.argv import settings
from carrier.envelope import from_bytes, to_bytes
from carrier.errors import AttemptExists, EnvelopeTorn
from carrier.named import still_runs, write_down
from registry.durable import read_plain, sync_folder
from registry.errors import LeaseBusy
from registry.processes import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from carrier.envelope import Envelope

# Claude Code ends a hook that is slower; the wrapper must always be the faster one.
_HOOK_MARGIN_S = 5

PASSING = "new"  # the ending of a folder on its way into its place, or out of it
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_LAID_OUT = (
    proof.SETTINGS,
    proof.DISPATCHER,
    proof.ROUND,
    f"{proof.PERMIT}.new",
    proof.PERMIT,
    proof.WITHDRAWN,
)


def prepare(folders: Sequence[str], envelopes: Sequence[Envelope], wrapper: str) -> None:
    """Everything that one run needs is on disk, each line in a new folder, the lead's at last.

    Killed in the middle, the folders that stand are provably untouched, and the next
    `prepare` makes them anew.  After any failure none is left.
    """
    attempts = os.path.dirname(folders[0])
    _make_way(attempts, folders, envelopes)
    ending = _passing()
    made: list[str] = []
    try:
        for folder, envelope in zip(folders[1:], envelopes[1:], strict=True):
            made.append(folder + ending)
            os.mkdir(made[-1], 0o700)
            proof.write_plain(f"{made[-1]}/{proof.PERMIT}", to_bytes(envelope))
        # Later than the writing: the first flush then takes most of the others along.
        for each in made:
            _flush_names(each)
        made.append(folders[0] + ending)
        os.mkdir(made[-1], 0o700)
        _fill_lead(made[-1], folders, envelopes[0], wrapper)
        for at, folder in enumerate((*folders[1:], folders[0])):
            _put_in_place(made[at], folder)
            made[at] = folder
        # A folder that a power cut takes away would take the intent with it.
        sync_folder(attempts)
    except BaseException:
        for each in made:
            proof.withdraw(each)
            clear(each)
        raise


def clear(folder: str) -> None:
    """An attempt's *folder* is gone with its files, as far as they can be removed.

    Killed in the middle, it is out of its place all the same.
    """
    gone = folder if folder.endswith(f".{PASSING}") else folder + _passing()
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return
        os.rename(folder, gone)
    except OSError:
        return  # there is none, or it cannot be changed and stays whole
    try:
        names = os.listdir(gone)
    except OSError:
        names = list(_LAID_OUT)  # no descriptor is left, as when `prepare` fails for that
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(f"{gone}/{name}")
    with contextlib.suppress(OSError):
        os.rmdir(gone)


def _fill_lead(place: str, folders: Sequence[str], envelope: Envelope, wrapper: str) -> None:
    timeout_s = int(envelope.wrapper_s) + _HOOK_MARGIN_S
    proof.write_plain(f"{place}/{proof.SETTINGS}", settings(wrapper, timeout_s))
    write_down(f"{place}/{proof.DISPATCHER}", os.getpid(), Processes())
    if len(folders) > 1:
        proof.write_round(place, map(os.path.basename, folders[1:]))
    proof.issue(place, envelope)


def _flush_names(folder: str) -> None:
    """The names in *folder* are with the drive, whose cache the flush of the attempts empties.

    A permit's bytes need not outlast a power cut: no wrapper does, and its name is
    all that a withdrawal needs.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _put_in_place(passing: str, folder: str) -> None:
    try:
        os.rename(passing, folder)
    except OSError as error:
        if error.errno in _TAKEN:
            raise AttemptExists(folder) from None
        raise


def _make_way(attempts: str, folders: Sequence[str], envelopes: Sequence[Envelope]) -> None:
    """Nothing is left where *folders* shall stand; AttemptExists where a history is.

    What a killed dispatcher left on its way goes too, and the line in it.
    """
    numbers = {each.delivery_id: each.attempt for each in envelopes}
    names = {os.path.basename(folder) for folder in folders}
    postbox, left = envelopes[0].postbox, []
    for name in os.listdir(attempts):
        path = f"{attempts}/{name}"
        delivery, _, number = name.rpartition(".")
        if number == PASSING:
            if delivery.partition(".")[0] in numbers or _postbox_of(path) == postbox:
                left.append(path)
        elif name in names:
            if not _is_left_over(path, postbox):
                raise AttemptExists(path)
            left.append(path)
        elif _is_running(path, postbox):
            # Somebody replaced the lock file; who held the old one does not know, and drives on.
            raise LeaseBusy(postbox, 0.0)
        else:
            _refuse_later(path, numbers)
    for path in left:
        clear(path)


def _refuse_later(path: str, numbers: Mapping[str, int]) -> None:
    # The journal counts attempts; one with a higher number is from a journal that was lost.
    delivery, _, number = os.path.basename(path).rpartition(".")
    if number.isdecimal() and int(number) > numbers.get(delivery, int(number)):
        raise AttemptExists(path)


def carrier_runs(attempts: str, postbox: str) -> bool:
    """Whether one of the runs in *attempts* drives *postbox* at this moment.

    Whoever has the lease may ask: somebody may have replaced the lock file.
    """
    try:
        names = os.listdir(attempts)
    except OSError:
        return False
    return any(_is_running(f"{attempts}/{name}", postbox) for name in names)


def _is_running(folder: str, postbox: str) -> bool:
    """Whether the run in *folder* drives *postbox*, or is about to."""
    if os.path.lexists(f"{folder}/{proof.RUN}"):
        return False
    names = (proof.CARRIER, proof.DISPATCHER)
    running = {still_runs(f"{folder}/{name}", Processes()) for name in names}
    # We do one thing at a time: what we began ourselves is over.
    return bool(running - {None, os.getpid()}) and _postbox_of(folder) == postbox


def _is_left_over(folder: str, postbox: str) -> bool:
    """Whether *folder* is of a dispatcher that was killed before its claim, the door untouched.

    One of another postbox may be of a dispatcher that lives: the lease is on ours.
    """
    if os.path.islink(folder) or _postbox_of(folder) not in (None, postbox):
        return False
    return proof.withdraw(folder)


def _postbox_of(folder: str) -> str | None:
    """Through which postbox the line in *folder* was to go; None when nothing there says so."""
    for name in (proof.PERMIT, proof.WITHDRAWN, proof.INTENT):
        try:
            return from_bytes(read_plain(f"{folder}/{name}")).postbox
        except (OSError, EnvelopeTorn):
            continue
    return None


def _passing() -> str:
    return f".{os.urandom(6).hex()}.{PASSING}"
