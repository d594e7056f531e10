"""The pictures of a report's page as inline SVG: bars that stretch, and words beside them.  Pure.

Words are HTML beside the bars, not in them, so that they keep their size on every
screen.  What comes from outside is escaped here.
"""

from __future__ import annotations

import html

from dispatch.render import clean
from dispatch.report import wording
from dispatch.report.courses import FATES
from dispatch.report.spread import STEPS
from registry.clock import iso
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final

    from dispatch.report.figures import Day, Figures, Sums

DAY_S: Final = 86_400.0
# Days of one bar: of a longer time, weeks and then months are drawn.
_WIDTHS: Final = (1, 7, 30)
_MOST_BARS: Final = 62
_LEAST_BARS: Final = 8
_HEIGHT: Final = 100.0


class Bar(Record):
    """Some days in a row, and what became of what began on them."""

    first: str
    last: str
    fates: Sums

    @property
    def deliveries(self) -> int:
        """How many there are."""
        return sum(self.fates.values())


def escaped(text: object) -> str:
    """*text* as text of a page: nothing in it acts, nothing in it is invisible."""
    return html.escape(clean(text))


def bars_of(days: Sequence[Day], since: float | None, until: float) -> tuple[Bar, ...]:
    """*days*, of which there is one, as bars of equal width without gaps, up to *until*."""
    by_number = {_number(each.day): each for each in days}
    last = max([int(until // DAY_S), *by_number])
    first = min([last if since is None else int(since // DAY_S), *by_number])
    if last - first >= _MOST_BARS:
        first = min(by_number)  # years of nothing in front would press the rest together
    width = next((w for w in _WIDTHS if (last - first) // w < _MOST_BARS), None)
    width = width or -(-(last - first + 1) // _MOST_BARS)
    count = max((last - first) // width + 1, _LEAST_BARS)
    start = last - count * width + 1
    sums = [dict.fromkeys(FATES, 0) for _ in range(count)]
    for number, day in by_number.items():
        at = sums[max((number - start) // width, 0)]
        for fate, those in day.fates.items():
            at[fate] += those
    return tuple(
        Bar(_day(start + i * width), _day(start + (i + 1) * width - 1), each)
        for i, each in enumerate(sums)
    )


def day_chart(bars: Sequence[Bar]) -> str:
    """Deliveries over time, stacked by fate."""
    top = nice_top(max(bar.deliveries for bar in bars))
    total = wording.count(sum(bar.deliveries for bar in bars))
    first, last = _at_most_a_day(bars[0]), _at_most_a_day(bars[-1])
    shapes = [
        f'<line class="grid" x1="0" x2="{len(bars)}" y1="{y:g}" y2="{y:g}"/>'
        for y in (0.0, _HEIGHT / 2, _HEIGHT)
    ]
    shapes += [_stack(i, bar, top) for i, bar in enumerate(bars)]
    middle = _at_most_a_day(bars[len(bars) // 2])
    return (
        '<div class="days"><div class="scale" aria-hidden="true">'
        f"<span>{wording.count(top)}</span><span>{_half(top)}</span><span>0</span></div>"
        f'<svg role="img" aria-labelledby="days-t days-d" viewBox="0 0 {len(bars)} {_HEIGHT:g}"'
        ' preserveAspectRatio="none">'
        '<title id="days-t">Deliveries over time</title>'
        f'<desc id="days-d">{total} deliveries from {first} to {last};'
        " the table below has the figures.</desc>"
        f"{''.join(shapes)}</svg>"
        '<div class="dates" aria-hidden="true">'
        f"<span>{first}</span><span>{middle}</span><span>{last}</span></div></div>"
    )


def share_bar(fates: Sums, name: str = "") -> str:
    """One bar in full width, divided by *fates*; *name* makes it a picture with a title."""
    whole = sum(fates.values()) or 1
    x, shapes = 0.0, []
    for fate in FATES:
        width = 100 * fates[fate] / whole
        if width:
            told = f"{fate}: {wording.count(fates[fate])}"
            shapes.append(
                f'<rect class="f-{fate}" x="{x:.3f}" y="0" width="{width:.3f}" height="1">'
                f"<title>{told}</title></rect>"
            )
        x += width
    how = 'role="img"' if name else 'aria-hidden="true"'
    title = f"<title>{escaped(name)}</title>" if name else ""
    return (
        f'<svg class="share" {how} viewBox="0 0 100 1" preserveAspectRatio="none">'
        f"{title}{''.join(shapes)}</svg>"
    )


def length_bar(part: float, whole: float, kind: str = "plain") -> str:
    """A bar of *part* in the room for *whole*; the figure stands beside it."""
    # What is there is seen.
    width = max(100 * part / whole, 0.8) if part else 0.0
    return (
        '<svg class="length" aria-hidden="true" viewBox="0 0 100 1" preserveAspectRatio="none">'
        f'<rect class="f-{kind}" width="{width:.3f}" height="1"/></svg>'
    )


def step_rows(figures: Figures) -> Iterable[tuple[str, int]]:
    """The classes of the time to surfaced with their counts, without empty ones at the ends."""
    steps = figures.surfaced.steps
    used = [i for i, those in enumerate(steps) if those]
    for i in range(used[0], used[-1] + 1) if used else ():
        yield wording.step(min(i, len(STEPS))), steps[i]


def nice_top(most: int) -> int:
    """The end of a scale for values up to *most*: even, and one digit with zeros; at least 2."""
    size = 1
    while True:
        for step in (1, 2, 3, 4, 6, 8):
            if size * step >= max(most, 2):
                return size * step
        size *= 10


def _stack(at: int, bar: Bar, top: int) -> str:
    y, shapes = _HEIGHT, []
    for fate in FATES:
        height = _HEIGHT * bar.fates[fate] / top
        if height:
            y -= height
            shapes.append(
                f'<rect class="f-{fate}" x="{at + 0.12:.2f}" y="{y:.3f}" width="0.76"'
                f' height="{height:.3f}"/>'
            )
    told = ", ".join(f"{fate} {wording.count(n)}" for fate, n in bar.fates.items() if n)
    title = f"<title>{_at_most_a_day(bar)}: {told or 'none'}</title>"
    # What is hovered is the column, also where nothing is drawn.
    cover = f'<rect class="cover" x="{at}" y="0" width="1" height="{_HEIGHT:g}"/>'
    return f"<g>{title}{''.join(shapes)}{cover}</g>"


def _half(top: int) -> str:
    return f"{top / 2:,.1f}".removesuffix(".0")


def _at_most_a_day(bar: Bar) -> str:
    return bar.first if bar.first == bar.last else f"{bar.first} to {bar.last}"


def _number(day: str) -> int:
    import datetime as dt

    return dt.date.fromisoformat(day).toordinal() - dt.date(1970, 1, 1).toordinal()


def _day(number: int) -> str:
    return iso(number * DAY_S)[:10]
