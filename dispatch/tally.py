"""What one pass of the relay did, and the one exit status that it amounts to."""

from __future__ import annotations

from dispatch.result import Result, as_json
from dispatch.verdict import DONE, FAILED, OPEN, TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.verdict import Verdict

_NOTHING = TABLE["queued"]
# What stops one line will stop every other, so somebody has to hear of it at once.
_FOR_ALL = ("interrupted", "carrier-spawn")


class Tally:
    """The counts of a pass, growing; *results* are the lines that it settled."""

    def __init__(self, sender: str | None = None) -> None:
        self._sender = sender  # who asked for the pass; None: nobody could be asked
        self.runs = 0  # carriers started
        self.delivered = self.deferred = self.open = self.dead = 0
        self.regraded = self.recovered = 0
        self.left = 0  # lines that still wait
        self.doubtful = 0  # lines that may be in; each holds its session's queue back
        self.about: str | None = None  # the delivery that the trouble is about, if it is one
        self.results: list[Result] = []
        self.trouble: tuple[str, str] | None = None  # class and sentence of the worst
        self._is_broken = self._is_ended = False

    def count(self, result: Result, *, dead: bool) -> None:
        """Take in the verdict on one line; *dead*: it will not be tried again."""
        self.results.append(result)
        fate = result.verdict.fate
        if fate == DONE:
            self.delivered += 1
        elif fate == OPEN:
            self.open += 1
            self._worse(result)
        elif dead or fate == FAILED:
            self.dead += 1
            self._worse(result)
        else:
            self.deferred += 1
            if result.verdict.name in _FOR_ALL:
                self.broken(result.verdict.name, str(result.reason))

    def broken(self, name: str, reason: str) -> None:
        """Broken surroundings outweigh what became of single lines."""
        if not self._is_broken:
            self.trouble, self._is_broken, self.about = (name, reason), True, None

    def end(self) -> None:
        """Let the pass end after the carrier run that is under way."""
        self._is_ended = True

    @property
    def stopped(self) -> bool:
        """Whether the pass is over: somebody ends it, or Ctrl-C has ended a carrier run."""
        return self._is_ended or (self.trouble is not None and self.trouble[0] == "interrupted")

    @property
    def verdict(self) -> Verdict:
        """The class of the whole pass; `queued`, exit 0, when nothing is left for a person."""
        return _NOTHING if self.trouble is None else TABLE[self.trouble[0]]

    def as_json(self) -> dict[str, Any]:
        """The one object that `zdo relay --json` prints."""
        return {
            "v": 1,
            "command": "relay",
            "class": None if self.trouble is None else self.verdict.name,
            "exit": self.verdict.exit,
            "sender": self._sender,
            "reason": None if self.trouble is None else self.trouble[1],
            "runs": self.runs,
            "delivered": self.delivered,
            "deferred": self.deferred,
            "open": self.open,
            "dead": self.dead,
            "regraded": self.regraded,
            "recovered": self.recovered,
            "left": self.left,
            "doubtful": self.doubtful,
            "lines": [as_json(result) for result in self.results],
        }

    def line(self) -> str:
        """The summary for a person."""
        counts = (
            (self.delivered, "delivered"),
            (self.deferred, "put off"),
            (self.open, "open"),
            (self.dead, "dead"),
            (self.regraded, "graded again"),
            (self.recovered, "recovered"),
            (self.left, "waiting"),
            (self.doubtful, "in doubt"),
        )
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        runs = f" in {self.runs} carrier run{'s' * (self.runs != 1)}" if self.runs else ""
        nothing = "nothing to do" if self.trouble is None else "nothing done"
        return f"relay: {told or nothing}{runs}"

    def _worse(self, result: Result) -> None:
        if self.trouble is None:
            reason = f"delivery {result.delivery_id} to {result.target.id}: {result.reason}"
            self.trouble, self.about = (result.verdict.name, reason), result.delivery_id
