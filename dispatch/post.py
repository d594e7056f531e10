"""Everything that a carrier run gets, and what it came back with, as facts for the result."""

from __future__ import annotations

import os

from carrier import argv as carrier_argv
from carrier.attempt import clear, prepare
from carrier.envelope import Envelope
from carrier.order import Order
from carrier.proof import SETTINGS, Receipt
from carrier.report import Report
from carrier.run import find_binary
from dispatch.errors import SpoolUnwritable
from dispatch.judge import judge
from dispatch.result import CarrierFacts, Plan, ReceiptFacts
from dispatch.verdict import OPEN
from registry.ids import new_uuid
from registry.record import Record, fields, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from carrier.attempt import Evidence
    from carrier.binding import Binding
    from dispatch.house import House
    from dispatch.result import Result
    from registry.targets import Config

# How long a wrapper may take beside the settle window: 5 s for the door's EOF
# (the native client's patience), the rest for a machine under load.
WRAPPER_S = 10.0
LINE_S = 0.03  # for each line more: its permit and its receipt are flushed one by one

_TAIL = 2000  # characters of the carrier's output that the journal keeps


class Letter(Record):
    """One line of a round: what is known of it, its two sessions, what its folder gets."""

    result: Result
    binding: Binding
    envelope: Envelope
    folder: str


def letter(result: Result, binding: Binding, config: Config, house: House, line: bytes) -> Letter:
    """The letter of the attempt that *result* names; its receipt will carry a fresh nonce."""
    envelope = envelope_of(result, config, line, new_uuid())
    return Letter(result, binding, envelope, folder_of(house, result))


def pack(
    letters: Sequence[Letter], config: Config, house: House, lease_fd: int
) -> tuple[Order, tuple[Letter, ...]]:
    """The one carrier run for *letters*, all of one postbox, and the letters with its time.

    No line has a part in argv or environment; they name the first letter alone.
    """
    limit_s = WRAPPER_S + config.settle_s + LINE_S * (len(letters) - 1)
    timed = tuple(
        replace(each, envelope=replace(each.envelope, wrapper_s=limit_s)) for each in letters
    )
    argv, env = _command(timed[0].result, timed[0].binding, config, house)
    order = Order(
        argv=argv,
        env=env,
        cwd=house.places.postbox,
        folders=tuple(each.folder for each in timed),
        lease_fd=lease_fd,
        deadline_s=config.timeout_s,
        wrapper_s=limit_s,
    )
    return order, timed


def plan_of(result: Result, binding: Binding, config: Config, house: House) -> Plan:
    """What a dry run shows: argv, and the environment by name alone."""
    argv, env = _command(result, binding, config, house)
    return Plan(argv=tuple(argv), env=tuple(sorted(env)))


def _command(
    result: Result, binding: Binding, config: Config, house: House
) -> tuple[list[str], dict[str, str]]:
    folder = folder_of(house, result)
    binary = find_binary(config.claude_bin, house.env.get("PATH", os.defpath))
    argv = carrier_argv.build_argv(
        binary or config.claude_bin,
        binding.postbox,
        f"{folder}/{SETTINGS}",
        str(result.delivery_id),
        config.max_turns,
        config.max_budget_usd,
    )
    env = carrier_argv.build_env(
        house.env,
        pass_env=config.pass_env,
        claude_dir=config.claude_dir,
        target_id=str(result.target.id),
        postbox=binding.postbox,
        attempt_dir=folder,
        wrapper=carrier_argv.wrapper_command(house.python, house.root),
        sender=str(result.sender),
    )
    return argv, env


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


def lay_out(order: Order, letters: Sequence[Letter]) -> None:
    """Put everything that the run needs on disk, or SpoolUnwritable: nothing is started."""
    envelopes = tuple(each.envelope for each in letters)
    try:
        prepare(order.folders, envelopes, order.env["ZDO_CARRIER_WRAPPER"])
    except OSError as error:
        raise SpoolUnwritable(f"{order.lead}: {error.strerror or error}") from error


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
    if result.verdict.fate != OPEN:
        clear(folder_of(house, result))


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
