"""The relay's own time: how long relays have watched, in steps that no clock jump can stretch.

A line's patience is counted in it.  A clock that is set forward by a year adds one
step, as a machine that slept for a year does; nothing expires unwatched.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

# Passes further apart than this count as this; cron's coarsest habit is an hour.
LONGEST_STEP_S = 900.0
SHORTEST_STEP_S = 60.0

# What a new file has: no pass has counted a step yet (dispatch/tables.py).
_NEVER = 1.5


def watched(link: Connection) -> float:
    """The seconds that relays have watched so far; it only grows."""
    return float(link.execute("SELECT watched FROM pulse").fetchone()[0])


def watched_by(link: Connection, now: float) -> float:
    """The time watched, with the step up to *now*."""
    at, so_far = link.execute("SELECT at, watched FROM pulse").fetchone()
    return float(so_far) + min(max(now - float(at), 0.0), LONGEST_STEP_S)


def last_step(link: Connection) -> float | None:
    """When a relay last counted a step; None when none ever did."""
    (at,) = link.execute("SELECT at FROM pulse").fetchone()
    return None if at == _NEVER else float(at)


def is_due(link: Connection, now: float) -> bool:
    """Whether the last step is worth counting, or lies in the future of a clock set back."""
    (at,) = link.execute("SELECT at FROM pulse").fetchone()
    return not 0 <= now - float(at) < SHORTEST_STEP_S


def beat(link: Connection, now: float) -> None:
    """Count the step up to *now*; kept when the surrounding transaction is."""
    link.execute("UPDATE pulse SET watched = ?, at = ?", (watched_by(link, now), now))
