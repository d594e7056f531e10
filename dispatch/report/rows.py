"""The tables of a report's page: rows that become blocks on a narrow screen.  Pure.

Whatever comes from outside is escaped here.
"""

from __future__ import annotations

from dispatch.report import wording
from dispatch.report.as_object import advice_of
from dispatch.report.charts import escaped, share_bar
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from dispatch.report.figures import Dead, Doubt, Hold, Recipient

# So many rows are on the page, the newest or the greatest; the rest is counted.
MOST: Final = 100


class Cell(Record):
    """One cell: HTML, and the class that sets it; a number stands right."""

    html: str
    kind: str = ""


def table(heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table with a head for each column; the first cell of a row is the head of that row.

    The roles say what the layout of a narrow screen would hide from a reader of screens.
    """
    body = "".join(_row(heads, row) for row in rows)
    head = "".join(
        f'<th role="columnheader" scope="col" class="{cell.kind}">{each}</th>'
        for each, cell in zip(heads, rows[0], strict=True)
    )
    return (
        '<table class="rows" role="table"><thead role="rowgroup">'
        f'<tr role="row">{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table>'
    )


def section(title: str, about: str, inner: str, place: str = "") -> str:
    """One card of the page; *title* and *about* are our own words, *place* is a link's end."""
    name = f' id="{place}"' if place else ""
    return f'<section{name}><h2>{title}</h2><p class="soft">{about}</p>{inner}</section>'


def name_of(target: str | None) -> str:
    """An address: two lines of it at most, and all of it where somebody points."""
    whole = escaped("(no address)" if target is None else target)
    return f'<span class="name" title="{whole}">{whole}</span>'


def dot(fate: str) -> str:
    """The colour of *fate*; its word stands beside it."""
    return (
        '<span class="dot"><svg aria-hidden="true" viewBox="0 0 1 1">'
        f'<rect class="f-{fate}" width="1" height="1"/></svg></span>'
    )


def doubts(those: Sequence[Doubt]) -> str:
    """The lines in doubt, the newest first, each with what to do; empty when there is none."""
    if not those:
        return ""
    rows = [
        (
            Cell(name_of(each.target)),
            Cell(f"<time>{wording.moment(each.at)}</time>"),
            Cell(f"{escaped(each.name or '-')}<br>{_soft(each.reason)}", "wide"),
            Cell(_what_to_do(each), "wide"),
        )
        for each in those[::-1][:MOST]
    ]
    heads = ("Target", "Since", "Why", "What to do")
    about = "They may be in. None is repeated by itself."
    title = f"In doubt: {wording.count(len(those))}"
    return section(title, about, table(heads, rows) + _rest(len(those)), "doubt")


def _what_to_do(each: Doubt) -> str:
    """The advice, its command set as one; the delivery's id where that does not have it."""
    words, zdo, command = advice_of(each.name, each.delivery).partition("zdo ")
    told = escaped(words) + (f"<br><code>{zdo}{escaped(command)}</code>" if zdo else "")
    if each.delivery in command:
        return f'<span class="soft">{told}</span>'
    return f'<code>{escaped(each.delivery)}</code><br><span class="soft">{told}</span>'


def holds(those: Sequence[Hold]) -> str:
    """The lines that were held, the newest first, and what became of each; empty for none."""
    if not those:
        return ""
    rows = [
        (
            Cell(name_of(each.target)),
            Cell(f"<time>{wording.moment(each.at)}</time>"),
            Cell(f"{dot(each.fate)}{escaped(each.name or '-')}"),
            Cell(wording.seconds(each.held_s) if each.held_s is not None else "still held", "n"),
            Cell(f"<code>{escaped(each.delivery)}</code><br>{_soft(each.reason)}", "wide"),
        )
        for each in those[::-1][:MOST]
    ]
    heads = ("Target", "Held at", "Is now", "For", "Delivery, and why")
    still = sum(each.held_s is None for each in those)
    about = (
        f"{wording.count(still)} of them still wait for a yes in the target."
        if still
        else "All of them have their answer."
    )
    title = f"Held for approval: {wording.count(len(those))}"
    return section(title, about, table(heads, rows) + _rest(len(those)), "held")


def dead_letters(those: Sequence[Dead]) -> str:
    """The lines that were given up, by class; empty when there is none."""
    if not those:
        return ""
    rows = [
        (
            Cell(escaped(each.name or "-")),
            Cell(wording.count(each.count), "n"),
            Cell(wording.count(each.by_hand), "n"),
            Cell(_soft(each.reason), "wide"),
        )
        for each in those
    ]
    heads = ("Class", "Lines", "By hand", "The newest says")
    total = wording.count(sum(each.count for each in those))
    return section(
        f"Not delivered: {total}",
        "Accepted once, and nobody tries them by itself.",
        table(heads, rows),
    )


def targets(those: Sequence[Recipient]) -> str:
    """The addresses, the one with the most deliveries first."""
    rows = [
        (
            Cell(name_of(each.target)),
            Cell(share_bar(each.fates, _told(each)), "mid"),
            Cell(wording.count(each.deliveries), "n"),
            Cell(wording.seconds(each.surfaced.median_s), "n"),
            Cell(wording.seconds(each.surfaced.p95_s), "n"),
            Cell(wording.count(each.retries), "n"),
        )
        for each in those[:MOST]
    ]
    heads = ("Target", "What became of them", "Deliveries", "Median", "95 %", "Retries")
    about = "Median and 95 %: time to surfaced."
    return section("Targets", about, table(heads, rows) + _rest(len(those)))


def _told(each: Recipient) -> str:
    return ", ".join(f"{fate} {wording.count(n)}" for fate, n in each.fates.items() if n)


def _row(heads: Sequence[str], row: Sequence[Cell]) -> str:
    first, *others = row
    cells = "".join(
        f'<td role="cell" class="{cell.kind}" data-is="{head}">{cell.html}</td>'
        for head, cell in zip(heads[1:], others, strict=True)
    )
    return f'<tr role="row"><th role="rowheader" scope="row">{first.html}</th>{cells}</tr>'


def _soft(text: str | None) -> str:
    return f'<span class="soft">{escaped(text)}</span>' if text else ""


def _rest(count: int) -> str:
    more = count - MOST
    told = f"and {wording.count(more)} more: zdo report --json"
    return f'<p class="soft more">{told}</p>' if more > 0 else ""
