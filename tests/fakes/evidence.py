"""Evidence, rows and clocks for tests of the decision: values, valid by construction."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from carrier.attempt import WRITTEN, Evidence
from carrier.binding import Binding
from carrier.proof import Notice, Receipt
from carrier.report import Report
from carrier.run import Run
from registry.clock import Clock
from registry.row import Listing, Row
from registry.targets import DEFAULTS, Config, Target
from tests.fakes.envelopes import P, T, a_receipt

if TYPE_CHECKING:
    from collections.abc import Callable

OTHER = "0a000000-0000-4000-8000-00000000000f"
NONCE = "n0nce"
BINDING = Binding(T, P)


def a_run(**changes: Any) -> Run:
    """A carrier that ended by itself with 0, with *changes*."""
    plain = {
        "exit": 0,
        "timed_out": False,
        "spawn_error": None,
        "stdout": b"",
        "stderr": b"",
        "wall_ms": 561,
    }
    return Run(**(plain | changes))


def a_report(**changes: Any) -> Report:
    """What a carrier says whose prompt was blocked by its hook, with *changes*."""
    plain = {
        "session_id": P,
        "is_error": False,
        "subtype": "success",
        "num_turns": 0,
        "cost_usd": 0.0,
        "result": "zdo wrote",
        "api_error_status": None,
    }
    return Report(**(plain | changes))


def an_evidence(**changes: Any) -> Evidence:
    """The evidence of a line that the door read, with *changes*.

    Transcript and offset are those of our own receipt, as `collect` takes them.
    """
    receipt = changes.get("receipt", a_receipt())
    ours = isinstance(receipt, Receipt) and (receipt.nonce, receipt.session_id) == (NONCE, T)
    plain = {
        "run": a_run(),
        "report": a_report(),
        "intent": True,
        "receipt": a_receipt(),
        "proof": WRITTEN,
        "transcript": receipt.transcript if ours else None,
        "offset": receipt.offset if ours and receipt.wrote else None,
    }
    return Evidence(**(plain | changes))


def told(*statuses: str, **more: Any) -> tuple[Notice, ...]:
    """Notices with these *statuses*."""
    return tuple(Notice(status, **more) for status in statuses)


def a_row(**changes: Any) -> Row:
    """The running session T, idle, with *changes*."""
    plain = {
        "file": "4201.json",
        "pid": 4201,
        "session_id": T,
        "name": "fable",
        "status": "idle",
        "cwd": "/home/u/fable",
        "socket": "/run/4201.sock",
        "proc_start": "1",
        "started_at": None,
        "status_at": None,
        "waiting_for": None,
        "version": None,
        "entrypoint": None,
        "pid_domain": None,
    }
    return Row(**(plain | changes))


def a_listing(*rows: Row) -> Listing:
    """A listing of *rows*, none skipped."""
    return Listing(rows, ())


def a_config(*targets: Target, **changes: Any) -> Config:
    """The configuration that no file makes, with *targets* and *changes*."""
    plain = DEFAULTS | {"station": "mini", "pass_env": (), "targets": targets}
    return Config(**(plain | changes))


class StoppedClock(Clock):
    """Time that passes only by sleeping; *at_sleep* runs at each sleep."""

    def __init__(self, at_sleep: Callable[[], object] | None = None):
        self.at, self.slept, self._at_sleep = 1_796_048_644.751, 0, at_sleep

    def now(self) -> float:
        """The same day, later by what was slept."""
        return self.at

    def monotonic(self) -> float:
        """The same clock."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Pass at once."""
        self.at += seconds
        self.slept += 1
        if self._at_sleep is not None:
            self._at_sleep()


class TranscriptFile:
    """The target's own transcript under *claude_dir*, written row by row."""

    def __init__(self, claude_dir: str, session_id: str = T):
        folder = f"{claude_dir}/projects/-home-u-fable"
        os.makedirs(folder, exist_ok=True)
        self.path, self.session_id = f"{folder}/{session_id}.jsonl", session_id
        self.add({"type": "mode", "mode": "normal"})

    @property
    def size(self) -> int:
        """How long it is now: where a line written from now on begins."""
        return os.path.getsize(self.path)

    def add(self, row: dict[str, Any]) -> None:
        """One more row."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row | {"sessionId": self.session_id}) + "\n")

    def enqueue(self, text: str) -> None:
        """The line *text* waits."""
        self.add({"type": "queue-operation", "operation": "enqueue", "content": text})

    def surface(self, msg_id: str) -> None:
        """The line *msg_id* stands in the model's input."""
        self.add({"type": "user", "origin": {"kind": "peer", "msg_id": msg_id}})
