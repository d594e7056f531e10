"""Everything that one attempt gets, and what it came back with, as facts for the result."""

from __future__ import annotations

import contextlib
import os

from carrier import argv as carrier_argv
from carrier.attempt import attempt, prepare
from carrier.envelope import Envelope
from carrier.proof import SETTINGS, Receipt
from carrier.report import Report
from carrier.run import find_binary
from dispatch.errors import SpoolUnwritable
from dispatch.judge import judge
from dispatch.result import CarrierFacts, Plan, ReceiptFacts
from dispatch.verdict import OPEN
from registry.record import Record, fields, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from carrier.attempt import Evidence
    from carrier.binding import Binding
    from dispatch.aim import Aim
    from dispatch.house import House
    from dispatch.result import Result
    from registry.locks import Lease
    from registry.targets import Config

# How long a wrapper may take beside the settle window: 5 s for the door's EOF
# (the native client's patience), the rest for a machine under load.
WRAPPER_S = 10.0

_TAIL = 2000  # characters of the carrier's output that the journal keeps


class Parcel(Record):
    """One attempt, ready to start: its folder, argv and environment."""

    folder: str
    argv: tuple[str, ...]
    env: dict[str, str]


def pack(aim: Aim, config: Config, house: House, result: Result) -> Parcel:
    """The parcel of the attempt that *result* names.  The line has no part in it."""
    folder = folder_of(house, result)
    binary = find_binary(config.claude_bin, house.env.get("PATH", os.defpath))
    argv = carrier_argv.build_argv(
        binary or config.claude_bin,
        aim.binding.postbox,
        f"{folder}/{SETTINGS}",
        str(result.delivery_id),
        config.max_turns,
        config.max_budget_usd,
    )
    env = carrier_argv.build_env(
        house.env,
        pass_env=config.pass_env,
        claude_dir=config.claude_dir,
        target_id=aim.target.id,
        postbox=aim.binding.postbox,
        attempt_dir=folder,
        wrapper=carrier_argv.wrapper_command(house.python, house.root),
        sender=str(result.sender),
    )
    return Parcel(folder, tuple(argv), env)


def envelope_of(result: Result, config: Config, line: bytes, nonce: str) -> Envelope:
    """The envelope of the attempt that *result* names; *nonce* marks its receipt."""
    return Envelope(
        delivery_id=str(result.delivery_id),
        msg_id=str(result.delivery_id),
        attempt=int(result.attempt or 1),
        nonce=nonce,
        sender=str(result.sender),
        line=line.decode(),
        target_id=str(result.target.id),
        session_id=str(result.target.session_id),
        pid=int(result.target.pid or 0),
        postbox=str(result.carrier.session_id),
        claude_dir=config.claude_dir,
        settle_s=config.settle_s,
        wrapper_s=WRAPPER_S + config.settle_s,
    )


def folder_of(house: House, result: Result) -> str:
    """The private folder of the attempt that *result* names."""
    return f"{house.places.attempts}/{result.delivery_id}.{result.attempt or 1}"


def plan_of(parcel: Parcel) -> Plan:
    """What a dry run shows of *parcel*: argv, and the environment by name alone."""
    return Plan(argv=parcel.argv, env=tuple(sorted(parcel.env)))


def lay_out(parcel: Parcel, envelope: Envelope) -> None:
    """Put everything that the carrier needs on disk, or SpoolUnwritable: nothing is started."""
    try:
        prepare(parcel.folder, parcel.env["ZDO_CARRIER_WRAPPER"], envelope)
    except OSError as error:
        raise SpoolUnwritable(f"{parcel.folder}: {error.strerror or error}") from error


def post(
    parcel: Parcel, envelope: Envelope, lease: Lease, config: Config, house: House
) -> Evidence:
    """Run the attempt in its own new folder.  Killed in the middle, the keeper ends it."""
    return attempt(
        envelope,
        argv=list(parcel.argv),
        env=parcel.env,
        cwd=house.places.postbox,
        attempt_dir=parcel.folder,
        lease_fd=lease.fd,
        deadline_s=config.timeout_s,
        clock=house.clock,
    )


def conclude(result: Result, evidence: Evidence, binding: Binding, nonce: str) -> Result:
    """*result* with its verdict, and with the facts that led to it."""
    finding = judge(evidence, binding, nonce)
    receipt = evidence.receipt
    if isinstance(receipt, Receipt) and receipt.wrote:
        # The session may have been restarted since the aim was taken.
        result = replace(result, target=replace(result.target, pid=receipt.pid))
    return replace(
        result,
        verdict=finding.verdict,
        proof=finding.proof,
        reason=finding.reason,
        carrier=_carrier_facts(evidence, binding.postbox),
        receipt=_receipt_facts(evidence),
    )


def forget_if_settled(result: Result, house: House) -> None:
    """Remove the attempt's folder, and with it the only copy of the line outside the spool.

    An open outcome keeps its folder: intent and receipt are its evidence.  A
    wrapper that wakes up later finds nothing and does nothing.
    """
    if result.verdict.fate == OPEN:
        return
    folder = folder_of(house, result)
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def _carrier_facts(evidence: Evidence, postbox: str) -> CarrierFacts:
    """The carrier's part of the result; what it did not say is null."""
    run, report = evidence.run, evidence.report
    said = report if isinstance(report, Report) else None
    return CarrierFacts(
        session_id=postbox,
        result_session_id=None if said is None else said.session_id,
        num_turns=None if said is None else said.num_turns,
        cost_usd=None if said is None else said.cost_usd,
        exit=run.exit,
        wall_ms=run.wall_ms,
    )


def _receipt_facts(evidence: Evidence) -> ReceiptFacts:
    """The receipt's part of the result; nulls when the wrapper wrote no door."""
    receipt = evidence.receipt
    if not isinstance(receipt, Receipt) or not receipt.wrote:
        return ReceiptFacts()
    return ReceiptFacts(
        session_id=receipt.session_id, msg_id=receipt.msg_id, door=receipt.door, at=receipt.at
    )


def evidence_facts(evidence: Evidence) -> dict[str, Any]:
    """The evidence as the journal keeps it: everything but the line, of the output the tails."""
    run, receipt = evidence.run, evidence.receipt
    return {
        "run": fields(run)
        | {
            "stdout": run.stdout[-_TAIL:].decode(errors="replace"),
            "stderr": run.stderr[-_TAIL:].decode(errors="replace"),
        },
        "report": fields(evidence.report),
        "intent": evidence.intent,
        "receipt": None if receipt is None else _receipt_as_json(receipt),
        "proof": evidence.proof,
        "transcript": evidence.transcript,
        "offset": evidence.offset,
    }


def _receipt_as_json(receipt: Record) -> dict[str, Any]:
    flat = fields(receipt)
    return flat | {"notices": [fields(notice) for notice in flat.get("notices", ())]}
