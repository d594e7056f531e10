"""How the figures of a report are worded: fates, numbers, lengths of time, names.  Pure."""

from __future__ import annotations

from dispatch.render import clean
from dispatch.report import courses
from dispatch.report.spread import STEPS
from registry.clock import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MEANING: Final = {
    courses.SURFACED: "the model's input holds it",
    courses.STARTED: "delivered at its start; the model has not been seen to have it",
    courses.WAITING: "queued, or under way",
    courses.HELD: "the target waits for its owner's yes",
    courses.DOUBT: "may be in; never repeated by itself",
    courses.DEAD: "not delivered, and nobody tries it by itself",
    courses.REFUSED: "nothing was started, nothing was kept",
}
# So long is a name that is shown whole, in characters.
LONGEST: Final = 28

_UNITS: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))


def count(number: int) -> str:
    """*number* with its thousands apart: 12,345."""
    return f"{number:,}"


def deliveries(number: int) -> str:
    """So many of them: 1 delivery, 12,345 deliveries."""
    return f"{count(number)} {'delivery' if number == 1 else 'deliveries'}"


def share(part: int, whole: int) -> str:
    """*part* of *whole* in percent; what is there never looks like nothing, nor like all."""
    if whole == 0 or part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{min(max(100 * part / whole, 0.1), 99.9):.1f} %"


def seconds(length: float | None) -> str:
    """A length of time in two figures or so: 0.42 s, 1.9 s, 88 s, 2.5 min, 3.1 h, 12 d."""
    if length is None:
        return "-"
    size, unit = next((each for each in _UNITS if length >= 1.5 * each[0]), (1.0, "s"))
    found = length / size
    digits = 2 if found < 1 and unit == "s" else int(found < 10)  # noqa: PLR2004 - two figures
    return f"{found:.{digits}f} {unit}"


def step(number: int) -> str:
    """Class *number* of a distribution by its bounds: under 1 s, 1 s to 2 s, up to over 1 d."""
    if number == 0:
        return f"under {_plain(STEPS[0])}"
    if number == len(STEPS):
        return f"over {_plain(STEPS[-1])}"
    return f"{_plain(STEPS[number - 1])} to {_plain(STEPS[number])}"


def moment(at: float) -> str:
    """*at* to the minute, UTC: 2026-11-30 14:24."""
    return iso(at)[:16].replace("T", " ")


def period(since: float | None, until: float) -> str:
    """From when to when a report looks."""
    return f"{'from the beginning' if since is None else moment(since)} to {moment(until)} UTC"


def shortened(name: str | None, most: int = LONGEST) -> str:
    """*name*, clean; of a longer one than *most* characters beginning and end."""
    text = clean("(no address)" if name is None else name)
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _plain(length: float) -> str:
    size, unit = next((each for each in _UNITS if length >= each[0]), (1.0, "s"))
    return f"{length / size:g} {unit}"
