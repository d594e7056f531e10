"""What is known so far of one command, so that a refusal can say it all."""

from __future__ import annotations

from registry.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.result import Result


class Telling:
    """A result that grows, and how far the command has come."""

    def __init__(self, result: Result, address: str = ""):
        self.result = result
        self.address = address  # as it was spelled; of an answer, once its sender was found
        self.line = b""  # once it was read; a pipe gives it only once
        self.started = False  # a carrier may run, or have run
        self.concluded = False  # the result is a verdict

    def add(self, **changes: Any) -> Result:
        """The result with *changes*, kept as the one so far."""
        self.result = replace(self.result, **changes)
        return self.result
