"""Clocks that do more than tell the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from registry.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable


class Meanwhile(Clock):
    """A clock whose first look runs *act*, as another process would at that moment."""

    def __init__(self, act: Callable[[], object]):
        self._act = act

    def monotonic(self) -> float:
        """The time, after the world had its turn."""
        act, self._act = self._act, lambda: None
        act()
        return super().monotonic()
