"""How long something took, over many times: the middle, the slow end, how it is spread.  Pure."""

from __future__ import annotations

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

# Upper ends of the classes of a distribution, in seconds; the last class has none.
STEPS: Final = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0, 86_400.0)


class Spread(Record):
    """How long something took, in seconds; all None when it never happened."""

    count: int
    median_s: float | None
    p95_s: float | None
    most_s: float | None
    steps: tuple[int, ...]  # how many took less than each of STEPS and no less than the one before


def spread(seconds: Sequence[float]) -> Spread:
    """The spread of *seconds*, in any order."""
    ordered = sorted(seconds)
    steps = [0] * (len(STEPS) + 1)
    at = 0
    for each in ordered:
        while at < len(STEPS) and each >= STEPS[at]:
            at += 1
        steps[at] += 1
    most = ordered[-1] if ordered else None
    return Spread(len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.95), most, tuple(steps))


def quantile(ordered: Sequence[float], part: float) -> float | None:
    """The value that *part* of *ordered* lie below, between two of them by proportion."""
    if not ordered:
        return None
    whole, rest = divmod(part * (len(ordered) - 1), 1)
    low = ordered[int(whole)]
    high = ordered[min(int(whole) + 1, len(ordered) - 1)]
    return low + (high - low) * rest
