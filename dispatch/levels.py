"""How much an entry of the journal matters to somebody who reads along.  Pure."""

from __future__ import annotations

from dispatch import journal
from dispatch.verdict import TABLE

LIFECYCLE, INFO, ACTIONABLE = "lifecycle", "info", "actionable"
# The least first.
LEVELS = (LIFECYCLE, INFO, ACTIONABLE)

_ON_ITS_WAY = (
    journal.ACCEPTED,
    journal.QUEUED,
    journal.CLAIMED,
    journal.DEFERRED,
    journal.REQUEUED,
)


def level_of(kind: str, name: str | None) -> str:
    """The level of an entry of *kind* with the class *name*.

    A line on its way, the good end of one, or something to do.  What this zdo does not
    know is something to do: a later one may have meant anything.
    """
    if kind in _ON_ITS_WAY:
        return LIFECYCLE
    verdict = TABLE.get(name or "")
    if kind == journal.DROPPED or (verdict is not None and verdict.exit == 0):
        return INFO
    return ACTIONABLE
