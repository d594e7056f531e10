"""Permit, intent and receipt: who may touch the door, who did, and what came of it.

The permit is one file.  The wrapper renames it into the intent, keeper and
dispatcher rename it into a withdrawn one, and the file system lets exactly one win.
"""

from __future__ import annotations

import json
import os

from carrier.envelope import Envelope, from_bytes, read_exactly, to_bytes
from carrier.errors import EnvelopeTorn
from registry.durable import read_plain, sync_folder, write_whole
from registry.record import Record, fields

SETTINGS = "settings.json"
PERMIT = "permit"
INTENT = "intent"
WITHDRAWN = "withdrawn"
RECEIPT = "receipt.json"
RUN = "run.json"
STDOUT = "stdout"
STDERR = "stderr"

TARGET_NOT_RUNNING = "target-not-running"
DOOR_MISMATCH = "door-mismatch"
WRAPPER_TROUBLE = "wrapper-trouble"
FOUND = frozenset({TARGET_NOT_RUNNING, DOOR_MISMATCH, WRAPPER_TROUBLE})


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
        given = read_exactly(content, Receipt)
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
