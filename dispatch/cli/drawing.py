"""The view of everything as a terminal shows it: what needs somebody stands first."""

from __future__ import annotations

import time

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dispatch.present import TICKET_REQUIRED, lasting
from dispatch.render import clean, short
from dispatch.verdict import DONE, NONE, QUEUE, TABLE
from dispatch.watching import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from rich.console import RenderableType

    from dispatch.present import Presence
    from dispatch.watching import View

# Each is legible on a dark and on a light terminal, and none says what no word says.
_STATUS: Final = {"idle": "green", "busy": "blue", "waiting": "bold magenta"}
_FATE: Final = {DONE: "green", QUEUE: "blue", NONE: "magenta"}
_BAD: Final = "bold red"
_FIXED: Final = 14  # lines that are always there: heads, gaps, the first line


def drawn(view: View, *, height: int | None) -> RenderableType:
    """*view* for a terminal of so many lines; None: as long as it is."""
    room = None if height is None else max(height - _FIXED - 3 * len(view.needs), 4)
    parts: list[RenderableType] = [_first_line(view)]
    parts += [Text(clean(each), style=_BAD) for each in view.troubles]
    parts += [Text(), *_needs(view), Text(), _sessions(view, room)]
    if view.queues:
        parts += [Text(), _queues(view, room)]
    if view.latest:
        parts += [Text(), _latest(view)]
    return Group(*parts)


def _first_line(view: View) -> Text:
    at = time.strftime("%H:%M:%S", time.localtime(view.at))
    relay = "never" if view.relay_ago_s is None else f"{lasting(view.relay_ago_s)} ago"
    line = Text.assemble(("zdo", "bold"), f"  {at}   sessions {len(view.sessions)}")
    line.append(f"   lines waiting {view.waiting}")
    line.append(f"   relay {relay}", _BAD if view.relay_is_late else "")
    return line


def _needs(view: View) -> list[Text]:
    if not view.needs and not view.relay_is_late:
        return [Text("Nothing needs you.", style="green")]
    lines = [Text("NEEDS YOU", style="bold")]
    if view.relay_is_late:
        lines += [Text("lines wait and no relay comes", style=_BAD), _command("zdo relay")]
    for each in view.needs:
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{each.kind:6}", "red" if each.kind == DEAD else _BAD)
        line.append(f"{clean(each.target)}  {lasting(each.age_s)} old")
        line.append(f"  {each.name}" if each.name else "")
        lines += [line, *map(_command, each.do)]
    if view.more_needs:
        lines.append(Text("      and more: zdo spool list, zdo verify --open"))
    return lines


def _command(text: str) -> Text:
    # Never cut: it is there to be copied.
    return Text(f"      {text}", style="cyan", overflow="fold")


def _sessions(view: View, room: int | None) -> RenderableType:
    if not view.sessions:
        return Text("No session runs.", style="bold")
    table = _table("SESSION", "STATUS", "FOR", "TICKET", "DOOR", "FOLDER")
    shown = view.sessions[: room or None]
    for each in shown:
        table.add_row(*_presence(each))
    rest = len(view.sessions) - len(shown)
    tail = [f"and {rest} more"] if rest else []
    tail += [f"{view.skipped} rows are no sessions: zdo sessions --all"] if view.skipped else []
    return Group(table, Text("; ".join(tail))) if tail else table


def _presence(each: Presence) -> tuple[Text, ...]:
    row, owner = each.row, each.owner
    status = row.status or "-"
    return (
        _cell(row.name or short(row.session_id)),
        Text(clean(status), style=_STATUS.get(status, _BAD)),
        Text(lasting(each.status_s)),
        _cell(owner.ticket or TICKET_REQUIRED),
        Text("open") if each.reachable else Text("SHUT", style=_BAD),
        _cell(_tail(row.cwd or "-")),
    )


def _queues(view: View, room: int | None) -> RenderableType:
    table = _table("WAITING FOR", "LINES", "OLDEST")
    shown = view.queues[: room or None]
    for each in shown:
        table.add_row(_cell(each.target), Text(str(each.waiting)), Text(lasting(each.age_s)))
    rest = len(view.queues) - len(shown)
    return Group(table, Text(f"and {rest} more targets")) if rest else table


def _latest(view: View) -> RenderableType:
    table = _table("LAST", "TARGET", "VERDICT", "DELIVERY")
    for each in view.latest:
        verdict = TABLE.get(each.name)
        style = _FATE.get(verdict.fate, _BAD) if verdict else _BAD
        ago = Text(f"{lasting(each.ago_s)} ago")
        table.add_row(ago, _cell(each.target or "-"), Text(each.name, style=style), each.delivery)
    return table


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in heads:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    return table


def _cell(text: str) -> Text:
    return Text(clean(text), no_wrap=True, overflow="ellipsis")


def _tail(path: str, most: int = 40) -> str:
    """The end of *path*, which says more than its beginning."""
    return path if len(path) <= most else f"…{path[1 - most :]}"
