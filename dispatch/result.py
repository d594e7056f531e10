"""What one command says: one value, two renderings (JSON and a sentence).

The field order and names are the public face (INTERFACE 5): a field that is not
known is null, never left out and never guessed.
"""

from __future__ import annotations

from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.verdict import Verdict

VERSION = 1


class LineFacts(Record):
    """The line by its measure; its text is never shown."""

    bytes: int | None = None
    sha256: str | None = None


class TargetFacts(Record):
    """The recipient: *id* as the user named it, the rest from its row."""

    id: str | None = None
    session_id: str | None = None
    pid: int | None = None
    status: str | None = None
    route: str | None = None


class CarrierFacts(Record):
    """The carrier run: the postbox that was resumed, and what came back."""

    session_id: str | None = None
    result_session_id: str | None = None
    num_turns: int | None = None
    cost_usd: float | None = None
    exit: int | None = None
    wall_ms: int | None = None


class ReceiptFacts(Record):
    """What the wrapper left behind."""

    session_id: str | None = None
    msg_id: str | None = None
    door: str | None = None
    at: str | None = None


class Plan(Record):
    """What a dry run would have started: argv, and the environment by name."""

    argv: tuple[str, ...]
    env: tuple[str, ...]


class Result(Record):
    """Everything that a kiss, a verify or a resolve knows at its end."""

    command: str
    verdict: Verdict
    proof: str = "none"
    delivery_id: str | None = None
    key: str | None = None
    attempt: int | None = None
    sender: str | None = None
    line: LineFacts = LineFacts()
    target: TargetFacts = TargetFacts()
    carrier: CarrierFacts = CarrierFacts()
    receipt: ReceiptFacts = ReceiptFacts()
    reason: str | None = None
    plan: Plan | None = None
    warning: str | None = None  # for stderr alone: the exit status stays what it is

    @property
    def advice(self) -> str | None:
        """What to do next, or None when nothing is left to do."""
        if self.verdict.exit == 0:
            return None
        return self.verdict.advice.replace("{id}", self.delivery_id or "DELIVERY")


def as_json(result: Result) -> dict[str, Any]:
    """The one object that `--json` prints."""
    plan = {} if result.plan is None else {"plan": fields(result.plan)}
    return {
        "v": VERSION,
        "command": result.command,
        "class": result.verdict.name,
        "exit": result.verdict.exit,
        "state": result.verdict.state,
        "proof": result.proof,
        "delivery_id": result.delivery_id,
        "key": result.key,
        "attempt": result.attempt,
        "sender": result.sender,
        "line": fields(result.line),
        "target": fields(result.target),
        "carrier": fields(result.carrier),
        "receipt": fields(result.receipt),
        "reason": result.reason,
        "advice": result.advice,
        **plan,
    }
