"""All faults, each in the module of what it is about."""

from __future__ import annotations

from tests.mutation import care, lines, readers, tickets, tools, views
from tests.mutation.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS = (
    *lines.FAULTS,
    *tickets.FAULTS,
    *readers.FAULTS,
    *care.FAULTS,
    *tools.FAULTS,
    *views.FAULTS,
)
