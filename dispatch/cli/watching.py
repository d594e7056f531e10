"""`zdo watch`: the view of everything, drawn anew every few seconds, or once in a pipe."""

from __future__ import annotations

import json
import signal
import sys

from dispatch.cli.answering import head
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import speak
from dispatch.present import session_as_json
from dispatch.render import clean
from dispatch.watching import look
from registry.clock import iso
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.house import House
    from dispatch.watching import View

INTERVAL_S = 2.0
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHORTEST_S = 0.2
_WIDTH = 160  # of a pipe, where nobody has a width


def watch(session_id: str | None, *, interval: float, once: bool, as_object: bool) -> int:
    """`zdo watch`: 0 when whoever watches has had enough."""
    if not _SHORTEST_S <= interval <= 86_400:  # noqa: PLR2004 - a day
        raise Usage(f"--interval takes {_SHORTEST_S:g} seconds to a day")
    house = this_house(session_id)
    if as_object:
        return speak([json.dumps(head("watch", house.speaker, _FINE) | told(look(house)))])
    if once or not sys.stdout.isatty():
        return speak(_lines(look(house)))
    return _live(house, interval)


_FINE = {"class": None, "exit": 0}


def told(view: View) -> dict[str, Any]:
    """*view* as one object."""
    return {
        "at": iso(view.at),
        "needs": [fields(each) | {"do": list(each.do)} for each in view.needs],
        "more_needs": view.more_needs,
        "sessions": [session_as_json(each) for each in view.sessions],
        "skipped": view.skipped,
        "queues": [fields(each) for each in view.queues],
        "waiting": view.waiting,
        "latest": [fields(each) for each in view.latest],
        "relay_ago_s": view.relay_ago_s,
        "relay_is_late": view.relay_is_late,
        "troubles": list(view.troubles),
    }


def _lines(view: View) -> list[str]:
    import io

    from rich.console import Console

    from dispatch.cli.drawing import drawn

    page = io.StringIO()
    Console(file=page, width=_WIDTH, color_system=None).print(drawn(view, height=None))
    return [clean(line.rstrip()) for line in page.getvalue().rstrip("\n").split("\n")]


def _live(house: House, interval: float) -> int:
    """Draw until Ctrl-C or SIGTERM; the terminal is as it was afterwards."""
    from rich.console import Console
    from rich.live import Live

    from dispatch.cli.drawing import drawn

    console = Console()
    ended: list[int] = []
    for number in ENDS:
        signal.signal(number, lambda number, _frame: ended.append(number))
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not ended:
            live.update(drawn(look(house), height=console.height), refresh=True)
            until = house.clock.monotonic() + interval
            while not ended and (left := until - house.clock.monotonic()) > 0:
                # A resized terminal is drawn anew within the second.
                house.clock.sleep(min(left, 1.0))
                live.refresh()
    return 0
