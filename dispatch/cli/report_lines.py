"""A report as a person reads it: plain lines, and bars where a terminal draws them."""

from __future__ import annotations

from dispatch.render import clean, table
from dispatch.report import wording
from dispatch.report.as_object import advice_of
from dispatch.report.charts import step_rows
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

    from dispatch.report.figures import Figures
    from dispatch.report.page import Period

MOST: Final = 8  # of each list; the rest is counted
_NARROWEST: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


class Paper(Record):
    """What the lines are for; *bars*: a bar of full width in it, from nothing to all; or none."""

    width: int = 100
    bars: str = ""


def paper_of(width: int | None, encoding: str) -> Paper:
    """The paper of a terminal of *width* columns; None: it is a pipe, and has no bars."""
    if width is None:
        return Paper()
    try:
        _EIGHTHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return Paper(max(width, _NARROWEST), " #")
    return Paper(max(width, _NARROWEST), _EIGHTHS)


def lines(figures: Figures, period: Period, paper: Paper) -> list[str]:
    """*figures* in lines no wider than *paper*, but for commands, which are never cut."""
    about = "" if period.target is None else f" to {wording.shortened(period.target)}"
    head = f"{wording.deliveries(figures.deliveries)}{about}"
    shown = [head, wording.period(period.since, period.until)]
    if not figures.deliveries:
        return [*shown, "", "look further back: zdo report --since all"]
    whole = figures.deliveries
    fates = [(f, n, wording.share(n, whole)) for f, n in figures.fates.items() if n]
    shown += ["", *_bars(fates, paper)]
    shown += [
        "",
        "VERDICT",
        *_bars([(c or "under way", n, "") for c, n in figures.classes], paper),
    ]
    shown += _times(figures, paper) + _days(figures, paper)
    shown += _doubts(figures) + _holds(figures) + _dead(figures, paper)
    tries = figures.tries
    if tries.retries:
        shown += ["", f"RETRIES {tries.retries} of {tries.lines} lines, at most {tries.most} tries"]
    return shown + _targets(figures, paper)


def _bars(rows: Sequence[tuple[str, int, str]], paper: Paper) -> list[str]:
    """A line for each of *rows*: a name, a count, a bar, a word behind it."""
    names = [wording.shortened(name, 24) for name, _, _ in rows]
    counts = [wording.count(count) for _, count, _ in rows]
    left, middle = max(map(len, names), default=0), max(map(len, counts), default=0)
    behind = max((len(word) for _, _, word in rows), default=0)
    room = min(paper.width - left - middle - behind - 6, 50) if paper.bars else 0
    most = max((count for _, count, _ in rows), default=1)
    return [
        (
            f"{name:{left}}  {number:>{middle}}"
            + (f"  {bar(count / most, room, paper.bars):{room}}" if room > 0 else "")
            + (f"  {word:>{behind}}" if word else "")
        ).rstrip()
        for name, number, (_, count, word) in zip(names, counts, rows, strict=True)
    ]


def bar(part: float, room: int, blocks: str) -> str:
    """*part* of *room* columns in *blocks*, from the empty one to the full one."""
    steps = len(blocks) - 1
    eighths = max(round(part * room * steps), int(part > 0))
    whole, rest = divmod(eighths, steps)
    return (blocks[-1] * whole + (blocks[rest] if rest else ""))[:room]


def _times(figures: Figures, paper: Paper) -> list[str]:
    spread = figures.surfaced
    if not spread.count:
        return ["", "TIME TO SURFACED nothing surfaced"]
    said = (
        f"TIME TO SURFACED median {wording.seconds(spread.median_s)},"
        f" 95 % {wording.seconds(spread.p95_s)}, longest {wording.seconds(spread.most_s)}"
    )
    rows = [(name, count, "") for name, count in step_rows(figures)]
    late = [f"only a later look found {wording.count(figures.late)}"] if figures.late else []
    return ["", said, *_bars(rows, paper), *late]


def _days(figures: Figures, paper: Paper) -> list[str]:
    days = figures.days[-14:]
    cut = "" if len(days) == len(figures.days) else f", the last {len(days)} of {len(figures.days)}"
    rows = [(day.day, sum(day.fates.values()), "") for day in days]
    return ["", f"DAY (UTC{cut})", *_bars(rows, paper)]


def _doubts(figures: Figures) -> list[str]:
    if not figures.doubt:
        return []
    shown = ["", f"IN DOUBT {len(figures.doubt)}"]
    for each in figures.doubt[::-1][:MOST]:
        shown.append(
            clean(f"{wording.shortened(each.target)}  {wording.moment(each.at)}  {each.name}")
        )
        shown.append(clean(f"    {advice_of(each.name, each.delivery)}"))
    return shown + _more(len(figures.doubt))


def _holds(figures: Figures) -> list[str]:
    if not figures.held:
        return []
    rows = [
        (
            wording.shortened(each.target),
            wording.moment(each.at),
            "still held"
            if each.held_s is None
            else f"{each.name} after {wording.seconds(each.held_s)}",
            each.delivery,
        )
        for each in figures.held[::-1][:MOST]
    ]
    became: dict[str, int] = {}
    for each in figures.held:
        became[each.fate] = became.get(each.fate, 0) + 1
    told = ", ".join(f"{count} {fate}" for fate, count in sorted(became.items()))
    shown = table(("TARGET", "HELD AT", "NOW", "DELIVERY"), rows)
    return ["", f"HELD {len(figures.held)}: {told}", *shown, *_more(len(figures.held))]


def _dead(figures: Figures, paper: Paper) -> list[str]:
    if not figures.dead:
        return []
    shown = ["", f"NOT DELIVERED {sum(each.count for each in figures.dead)}"]
    for each in figures.dead:
        by_hand = f", {each.by_hand} by hand" if each.by_hand else ""
        why = f": {each.reason}" if each.reason else ""
        shown.append(_cut(clean(f"{each.count} {each.name}{by_hand}{why}"), paper.width))
    return shown


def _targets(figures: Figures, paper: Paper) -> list[str]:
    most = max(paper.width - 42, 8)
    rows = [
        (
            wording.shortened(each.target, most),
            wording.count(each.deliveries),
            wording.share(each.fates["surfaced"], each.deliveries),
            wording.seconds(each.surfaced.median_s),
            wording.seconds(each.surfaced.p95_s),
        )
        for each in figures.targets[: 3 * MOST]
    ]
    shown = table(("TARGET", "LINES", "SURFACED", "MEDIAN", "95 %"), rows)
    return ["", *shown, *_more(len(figures.targets), 3 * MOST)]


def _more(count: int, most: int = MOST) -> list[str]:
    return [f"and {wording.count(count - most)} more: zdo report --json"] if count > most else []


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
