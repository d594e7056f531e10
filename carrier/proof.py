"""Permit, intent and receipt: who may touch the door, who did, and what came of it.

The permit is one file.  The wrapper renames it into the intent, keeper and
dispatcher rename it into a withdrawn one, and the file system lets exactly one win.
"""

from __future__ import annotations

import json
import os

from carrier.envelope import Envelope, from_bytes, read_exactly, to_bytes
from carrier.errors import EnvelopeTorn
from registry.durable import read_plain, sync_folder, write_all, write_whole
from registry.ids import parse_uuid
from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SETTINGS = "settings.json"
PERMIT = "permit"
INTENT = "intent"
WITHDRAWN = "withdrawn"
RECEIPT = "receipt.json"
ROUND = "round"  # in the lead alone, and only where a run has more than one line
RUN = "run.json"
STDOUT = "stdout"
STDERR = "stderr"
CARRIER = "carrier"  # in the lead alone: its process, by pid and start time
DISPATCHER = "dispatcher"  # in the lead alone, while its run is being started or is waited for
EAR = "ear"  # in the lead alone, where a line is held: the process that stays for the answer

TARGET_NOT_RUNNING = "target-not-running"
DOOR_MISMATCH = "door-mismatch"
WRAPPER_TROUBLE = "wrapper-trouble"
FOUND = frozenset({TARGET_NOT_RUNNING, DOOR_MISMATCH, WRAPPER_TROUBLE})

# What a receipt means that was written before it had the field.
_LATER = {"sender": "anonymous"}
_ROUND_LIMIT = 4096
_COUNT_DIGITS = 18


class Notice(Record):
    """What the target told the wrapper's reply socket about this line (CONTRACT f)."""

    status: str  # held, delivered, denied, expired, dropped; others are kept as they came
    status_detail: str | None = None  # "refused" with expired
    drop_reason: str | None = None  # "rate-limited", "duplicate" with dropped
    reason: str | None = None


class Receipt(Record):
    """What the wrapper leaves: its own account of one attempt at the door."""

    nonce: str
    delivery_id: str
    attempt: int
    session_id: str  # of the row that was written, or looked for
    pid: int | None
    msg_id: str
    sender: str  # as the envelope had it
    door: str
    at: str
    wrote: bool  # False: no byte of the line passed; True without eof: perhaps not all
    eof: bool  # the door read everything; it says nothing about acceptance
    found: str | None  # one of FOUND, exactly when nothing was written
    detail: str | None
    notices: tuple[Notice, ...]
    transcript: str | None
    offset: int  # size of the transcript before the write
    surfaced: bool
    moved_to: str | None  # the session that the row names afterwards, if it is another
    reply: str | None
    v: int = 1


class TornReceipt(Record):
    """A receipt file that is not exactly one receipt."""

    why: str


def issue(attempt_dir: str, envelope: Envelope) -> None:
    """Put the permit into *attempt_dir*; killed in the middle, there is none."""
    write_whole(f"{attempt_dir}/{PERMIT}", to_bytes(envelope))


def write_plain(path: str, content: bytes | bytearray) -> None:
    """Put *content* at *path*, mode 0600, and flush nothing.

    For what nobody reads while it is written, and nobody needs after a power cut.
    Killed in the middle, a part of it stands.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)


def peek(attempt_dir: str) -> Envelope | None:
    """The envelope of a permit that stands, which stays; None when it is gone or torn."""
    try:
        return from_bytes(read_plain(f"{attempt_dir}/{PERMIT}"))
    except (OSError, EnvelopeTorn):
        return None


def write_round(attempt_dir: str, names: Iterable[str]) -> None:
    """Put the *names* of the other folders of a round into the lead's *attempt_dir*.

    Killed in the middle, the file is read as no round.
    """
    write_plain(f"{attempt_dir}/{ROUND}", "".join(f"{name}\n" for name in names).encode("ascii"))


def read_round(attempt_dir: str) -> tuple[str, ...]:
    """The names of the other folders, in their order; none when anything there is odd."""
    try:
        names = read_plain(f"{attempt_dir}/{ROUND}").decode("ascii").split("\n")
    except (OSError, ValueError):
        return ()
    own = os.path.basename(attempt_dir)
    # The last line is whole only with its end; a cut one may look like another number.
    if names.pop() or len(names) > _ROUND_LIMIT or len({own, *names}) <= len(names):
        return ()
    return tuple(names) if all(map(_is_attempt, names)) else ()


def _is_attempt(name: str) -> bool:
    """Whether the ASCII *name* may be put behind a slash: exactly a delivery and a number."""
    delivery, _, number = name.rpartition(".")
    return parse_uuid(delivery) == delivery and number.isdigit() and len(number) <= _COUNT_DIGITS


def take(attempt_dir: str) -> Envelope | None:
    """The envelope, once; None when the permit is withdrawn or somebody took it.

    An unreadable permit, or an intent that cannot be flushed, raises, and the
    door stays provably untouched.
    Killed in the middle, the permit either stands or has become the intent.
    """
    permit = f"{attempt_dir}/{PERMIT}"
    try:
        envelope = from_bytes(read_plain(permit))
        # A rename keeps the time of the file; the keeper counts from the taking.
        os.utime(permit)
        os.rename(permit, f"{attempt_dir}/{INTENT}")
    except FileNotFoundError:
        return None
    try:
        sync_folder(attempt_dir)
    except OSError:
        # An intent that may not survive a power cut is none: nothing will be written.
        os.rename(f"{attempt_dir}/{INTENT}", f"{attempt_dir}/{WITHDRAWN}")
        raise
    return envelope


def withdraw(attempt_dir: str) -> bool:
    """Whether the door is untouched by this attempt, and will stay so for ever.

    True only with the withdrawn permit in hand: a folder that lost its files says
    nothing.  Killed in the middle, the permit stands or is withdrawn; asking again
    gives the final answer.
    """
    try:
        os.rename(f"{attempt_dir}/{PERMIT}", f"{attempt_dir}/{WITHDRAWN}")
    except FileNotFoundError:
        pass
    except OSError:
        return False
    taken = os.path.lexists(f"{attempt_dir}/{INTENT}")
    return os.path.lexists(f"{attempt_dir}/{WITHDRAWN}") and not taken


def withdraw_all(folders: Sequence[str]) -> list[str]:
    """Those of *folders* whose door may have been touched, in their order; for ever, as above.

    The last line is withdrawn first: a wrapper that takes them in order at the same
    time is left with the first ones, and with no gap.
    """
    return [folder for folder in reversed(folders) if not withdraw(folder)][::-1]


def leave_receipt(attempt_dir: str, receipt: Receipt) -> None:
    """Put *receipt* into *attempt_dir*; killed in the middle, there is none."""
    shown = fields(receipt) | {"notices": [fields(notice) for notice in receipt.notices]}
    write_whole(f"{attempt_dir}/{RECEIPT}", json.dumps(shown).encode("ascii"))


def read_receipt(attempt_dir: str) -> Receipt | TornReceipt | None:
    """The receipt in *attempt_dir*, None when there is none; whatever lies there, no error."""
    try:
        content = read_plain(f"{attempt_dir}/{RECEIPT}")
    except FileNotFoundError:
        return None
    except OSError as error:
        return TornReceipt(f"not readable: {error.strerror or type(error).__name__}")
    return parse_receipt(content)


def parse_receipt(content: bytes) -> Receipt | TornReceipt:
    """The receipt in *content*, or what is wrong with it; total and pure."""
    try:
        given = read_exactly(content, Receipt, _LATER)
        notices = tuple(_notice(each) for each in given["notices"])
    except EnvelopeTorn as error:
        return TornReceipt(error.why)
    receipt = Receipt(**(given | {"notices": notices}))
    if receipt.wrote is not (receipt.found is None) or (receipt.eof and not receipt.wrote):
        return TornReceipt("it contradicts itself about the write")
    if receipt.found is not None and receipt.found not in FOUND:
        return TornReceipt("it found something that this zdo does not know")
    return receipt


def _notice(given: object) -> Notice:
    if not isinstance(given, dict):
        raise EnvelopeTorn("a notice is no object")
    return Notice(**read_exactly(json.dumps(given).encode("ascii"), Notice))
