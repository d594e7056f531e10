"""The options of `zdo kiss`, once: the plain parser and Typer read the same rows."""

from __future__ import annotations

from dispatch.errand import LOCK_TIMEOUT_S, WAIT_S
from registry.record import Record

FLAG, TEXT, SECONDS = "flag", "text", "seconds"


class Option(Record):
    """One option: its name on the command line, the field it fills, what it takes."""

    flag: str
    field: str
    kind: str
    help: str


SENDER_HELP = (
    "The sender is --session-id, else $ZDO_SESSION_ID, else $AGENT_EVENT_BUS_SESSION_ID,"
    " else $CLAUDE_CODE_SESSION_ID, else anonymous."
)

KISS = (
    Option("--json", "json", FLAG, "Print one JSON object instead of a sentence."),
    Option("--dry-run", "dry_run", FLAG, "Show both sessions and the argv; start nothing."),
    Option("--if-idle", "if_idle", FLAG, "Refuse (75) if the target is not idle at the start."),
    Option("--queue", "queue", FLAG, "Keep the line for zdo relay; start nothing now."),
    Option("--or-queue", "or_queue", FLAG, "Try now; keep it for the relay after 69, 75 or 76."),
    Option("--sign", "sign", FLAG, "Put one line in front: who speaks, and how to answer."),
    Option("--reply", "reply", TEXT, "Answer the sender of DELIVERY; there is no address then."),
    Option("--file", "file", TEXT, "Read the line from PATH instead."),
    Option("--session-id", "session_id", TEXT, SENDER_HELP),
    Option("--key", "key", TEXT, "Idempotency key: the same key is the same delivery."),
    Option("--proof", "proof", TEXT, "surfaced: wait until the model has seen the line."),
    Option("--wait", "wait", SECONDS, f"How long --proof waits; {WAIT_S:g} if not given."),
    Option(
        "--lock-timeout",
        "lock_timeout",
        SECONDS,
        f"How long to wait for the postbox; {LOCK_TIMEOUT_S:g} if not given.",
    ),
)


class KissArgs(Record):
    """`zdo kiss` as it was typed."""

    address: str | None = None  # of an answer, the first word is the line
    line: str | None = None
    json: bool = False
    dry_run: bool = False
    if_idle: bool = False
    queue: bool = False
    or_queue: bool = False
    sign: bool = False
    reply: str | None = None
    file: str | None = None
    session_id: str | None = None
    key: str | None = None
    proof: str | None = None
    wait: float = WAIT_S
    lock_timeout: float = LOCK_TIMEOUT_S
