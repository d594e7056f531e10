"""`zdo doctor`: one line for each thing that a kiss needs, and what to do about it."""

from __future__ import annotations

import json

from dispatch import health, render
from dispatch.cli.commands import this_house
from dispatch.cli.speech import complain, speak
from dispatch.verdict import TABLE
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.health import Item

_MARK = {True: "ok", False: "FAIL", None: "?"}


def doctor(session_id: str | None, *, as_object: bool) -> int:
    """`zdo doctor`: 0 when no item is known to be ill, else 78."""
    house = this_house(session_id)
    items = health.check(house)
    ill = [item.code for item in items if item.ok is False]
    verdict = TABLE["unhealthy"] if ill else None
    status = 0 if verdict is None else verdict.exit
    if verdict is not None:
        complain(render.failure_line(verdict.name, ", ".join(ill), verdict.advice))
    if as_object:
        whole = {
            "v": 1,
            "command": "doctor",
            "class": None if verdict is None else verdict.name,
            "exit": status,
            "sender": house.speaker,
            "items": [fields(item) for item in items],
        }
        lines = [json.dumps(whole)]
    else:
        lines = item_lines(items)
    lost = speak(lines, quietly=status != 0)
    return status or lost


def item_lines(items: tuple[Item, ...]) -> list[str]:
    """A line for each item: its mark, its code, what was found; below it what mends it."""
    width = max(len(item.code) for item in items)
    lines = []
    for item in items:
        lines.append(render.clean(f"{_MARK[item.ok]:4}  {item.code:{width}}  {item.detail}"))
        if item.fix is not None:
            lines.append(render.clean(f"      fix: {item.fix}"))
    return lines
