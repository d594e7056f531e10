"""A report as one page of HTML that needs nothing else: no script, no network, no font.  Pure.

Whatever comes from outside stands in it as text.
"""

from __future__ import annotations

from dispatch import __version__
from dispatch.report import rows as tables
from dispatch.report import wording
from dispatch.report.charts import (
    bars_of,
    day_chart,
    escaped,
    length_bar,
    share_bar,
    step_rows,
)
from dispatch.report.courses import DOUBT, FATES, HELD, SURFACED
from dispatch.report.rows import section
from dispatch.report.style import STYLE
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from dispatch.report.figures import Figures

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MEASURED: Final = (
    "Surfaced: the target's own transcript shows the line in the model's input. The time to it"
    " runs from the delivery's first entry in the journal to the first entry that knows of it, so"
    " it is never shorter than the truth; what only a later look found counts up to that look."
)
_EMPTY: Final = (
    '<section class="empty"><h2>No deliveries in this time</h2>'
    '<p class="soft">Make one: <code>zdo kiss TARGET LINE</code><br>'
    "or look further back: <code>zdo report --since all</code></p></section>"
)


class Period(Record):
    """What a report is about: from when to when, in seconds since 1970, and to whom."""

    since: float | None
    until: float
    target: str | None = None


def page(figures: Figures, period: Period) -> str:
    """The page of *figures*, in ASCII: it is read right whatever takes it for which encoding."""
    return _page(figures, period).encode("ascii", "xmlcharrefreplace").decode()


def _page(figures: Figures, period: Period) -> str:
    about = "" if period.target is None else f" to {wording.shortened(period.target)}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(f'zdo report{about}')}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<header><h1>{escaped(f'Deliveries{about}')}</h1>"
        f'<p class="soft">{wording.period(period.since, period.until)}</p></header>\n'
        f"<main>\n{_main(figures, period) if figures.deliveries else _EMPTY}\n</main>\n"
        f"<footer><p>{_MEASURED}</p>"
        f"<p>Days are UTC. zdo {escaped(__version__)},"
        f" {_of(figures.entries, 'entry of the journal', 'entries of the journal')}.</p>"
        "</footer>\n</body>\n</html>\n"
    )


def _main(figures: Figures, period: Period) -> str:
    parts = (
        _tiles(figures),
        _over_time(figures, period),
        f'<div class="two">{_times(figures)}{_classes(figures)}</div>',
        tables.targets(figures.targets),
        tables.doubts(figures.doubt),
        tables.holds(figures.held),
        tables.dead_letters(figures.dead),
    )
    return "\n".join(filter(None, parts))


def _tiles(figures: Figures) -> str:
    whole, fates, tries = figures.deliveries, figures.fates, figures.tries
    needing = fates[HELD] + fates[DOUBT]
    to_all = f"to {_of(len(figures.targets), 'address', 'addresses')}"
    place = "doubt" if fates[DOUBT] else "held"
    retries = _of(tries.retries, "retry", "retries")
    tiles = (
        _tile(wording.count(whole), f"{wording.deliveries(whole).partition(' ')[2]} {to_all}"),
        _tile(wording.share(fates[SURFACED], whole), "surfaced: the model's input holds it"),
        _tile(wording.seconds(figures.surfaced.median_s), "median time to surfaced"),
        _tile(
            wording.count(needing),
            f'<a href="#{place}">held or in doubt</a>'
            if needing
            else f"held or in doubt; {retries}",
            "ask" if needing else "",
        ),
    )
    return f'<ul class="tiles">{"".join(tiles)}</ul>'


def _tile(figure: str, told: str, kind: str = "") -> str:
    return f'<li class="tile {kind}"><b>{figure}</b><span>{told}</span></li>'


def _over_time(figures: Figures, period: Period) -> str:
    bars = bars_of(figures.days, period.since, period.until)
    rows = [[day.day, *(wording.count(day.fates[fate]) for fate in FATES)] for day in figures.days]
    same = _plain_table(["Day", *FATES], rows)
    keys = "".join(
        f"<li>{tables.dot(fate)}<div><b>{fate}</b><small>{wording.MEANING[fate]}</small></div>"
        f'<span class="n">{wording.count(count)}<small>'
        f"{wording.share(count, figures.deliveries)}</small></span></li>"
        for fate, count in figures.fates.items()
    )
    total = wording.count(figures.deliveries)
    return section(
        "Over time",
        "Each delivery once, on the day it began, by what is known of it now.",
        f'{day_chart(bars)}<div class="big">{share_bar(figures.fates, f"All {total}")}</div>'
        f'<ul class="key">{keys}</ul>'
        f"<details><summary>Day by day as a table</summary><div>{same}</div></details>",
    )


def _times(figures: Figures) -> str:
    spread, rows = figures.surfaced, list(step_rows(figures))
    if not rows:
        return section("Time to surfaced", "Nothing surfaced in this time.", "")
    later = f"{_of(figures.late, 'line', 'lines')} of these only by a later look"
    about = (
        f"Median {wording.seconds(spread.median_s)}, 95 % {wording.seconds(spread.p95_s)},"
        f" longest {wording.seconds(spread.most_s)}; {later}."
        f" To the door: median {wording.seconds(figures.door.median_s)}."
    )
    most = max(count for _, count in rows)
    return section("Time to surfaced", about, _bars(("Took", "Lines"), rows, most, "surfaced"))


def _classes(figures: Figures) -> str:
    rows = [(name or "under way", count) for name, count in figures.classes]
    most = max(count for _, count in rows)
    about = "The class of each delivery as it stands now: zdo explain CLASS."
    return section("Verdicts", about, _bars(("Class", "Deliveries"), rows, most, "plain"))


def _bars(heads: tuple[str, str], rows: Iterable[tuple[str, int]], most: int, kind: str) -> str:
    first, last = heads
    body = "".join(
        f'<tr><th scope="row">{escaped(name)}</th>'
        f'<td class="mid">{length_bar(count, most, kind)}</td>'
        f'<td class="n">{wording.count(count)}</td></tr>'
        for name, count in rows
    )
    return (
        f'<table class="bars"><thead><tr><th scope="col">{first}</th><td></td>'
        f'<th scope="col" class="n">{last}</th></tr></thead><tbody>{body}</tbody></table>'
    )


def _plain_table(heads: list[str], rows: list[list[str]]) -> str:
    head = "".join(f'<th scope="col" class="{"n" * (i > 0)}">{h}</th>' for i, h in enumerate(heads))
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f'<td class="n">{each}</td>' for each in row[1:])
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _of(count: int, one: str, many: str) -> str:
    return f"{wording.count(count)} {one if count == 1 else many}"
