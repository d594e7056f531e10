"""The journal's own records, read back strictly: our file, so nothing unknown in it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict

from dispatch import result as shapes
from dispatch.verdict import TABLE


class _Ours(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _known(name: str) -> str:
    if name not in TABLE:
        raise ValueError("a class of a later zdo")
    return name


class KeptLine(_Ours):
    """LineFacts on disk."""

    bytes: int | None
    sha256: str | None


class KeptTarget(_Ours):
    """TargetFacts on disk."""

    id: str | None
    session_id: str | None
    pid: int | None
    status: str | None
    route: str | None


class KeptCarrier(_Ours):
    """CarrierFacts on disk."""

    session_id: str | None
    result_session_id: str | None
    num_turns: int | None
    cost_usd: float | None
    exit: int | None
    wall_ms: int | None


class KeptReceipt(_Ours):
    """ReceiptFacts on disk."""

    session_id: str | None
    msg_id: str | None
    door: str | None
    at: str | None


class KeptResult(_Ours):
    """A result on disk: the object that `--json` printed."""

    v: Literal[1]
    command: str
    class_: Annotated[str, AfterValidator(_known)]
    exit: int
    state: str
    proof: Literal["none", "written", "enqueued", "surfaced"]
    delivery_id: str | None
    key: str | None
    attempt: int | None
    sender: str | None
    line: KeptLine
    target: KeptTarget
    carrier: KeptCarrier
    receipt: KeptReceipt
    reason: str | None
    advice: str | None


def result_from(kept: dict[str, Any]) -> shapes.Result:
    """The result that the journal holds as *kept*; pydantic.ValidationError when it is not one."""
    renamed = {("class_" if name == "class" else name): value for name, value in kept.items()}
    model = KeptResult.model_validate(renamed)
    return shapes.Result(
        command=model.command,
        verdict=TABLE[model.class_],
        proof=model.proof,
        delivery_id=model.delivery_id,
        key=model.key,
        attempt=model.attempt,
        sender=model.sender,
        line=shapes.LineFacts(**model.line.model_dump()),
        target=shapes.TargetFacts(**model.target.model_dump()),
        carrier=shapes.CarrierFacts(**model.carrier.model_dump()),
        receipt=shapes.ReceiptFacts(**model.receipt.model_dump()),
        reason=model.reason,
    )
