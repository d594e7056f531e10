"""`zdo explain`: what a class or an exit status means."""

from __future__ import annotations

import json
import textwrap

from dispatch.cli.answering import head
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import speak
from dispatch.explain import FATES, MEANINGS
from dispatch.render import table
from dispatch.verdict import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.verdict import Verdict

_WIDTH = 88


def explain(word: str | None, session_id: str | None, *, as_object: bool) -> int:
    """`zdo explain`: 0 after everything that *word* names was told; without one, all classes."""
    house = this_house(session_id)
    rows = _named(word)
    if as_object:
        status = {"class": None, "exit": 0}
        whole = head("explain", house.speaker, status) | {"classes": [told(row) for row in rows]}
        return speak([json.dumps(whole)])
    if word is None or len(rows) > 1:
        lines = [(str(row.exit), row.name, row.fate, _advice(row)) for row in rows]
        return speak(table(("EXIT", "CLASS", "FATE", "WHAT TO DO"), lines))
    return speak(paragraphs(rows[0]))


def told(row: Verdict) -> dict[str, Any]:
    """All that is to be said of one class."""
    return {
        "class": row.name,
        "exit": row.exit,
        "fate": row.fate,
        "state": row.state,
        "meaning": MEANINGS[row.name],
        "line": FATES[row.fate],
        "advice": _advice(row),
    }


def paragraphs(row: Verdict) -> list[str]:
    """The same for a person, in lines of a readable width."""
    parts = (MEANINGS[row.name], FATES[row.fate], f"What to do: {_advice(row)}.")
    lines = [f"{row.name} (exit {row.exit}, {row.fate})"]
    for part in parts:
        lines += ["", *textwrap.wrap(part, _WIDTH)]
    return lines


def _advice(row: Verdict) -> str:
    return row.advice.replace("{id}", "DELIVERY")


def _named(word: str | None) -> list[Verdict]:
    if word is None:
        return list(TABLE.values())
    if (row := TABLE.get(word)) is not None:
        return [row]
    rows = [row for row in TABLE.values() if str(row.exit) == word]
    if not rows:
        import difflib

        near = difflib.get_close_matches(word, TABLE, n=3)
        hint = f"; close: {', '.join(near)}" if near else ""
        raise Usage(f"no class and no exit status is called {word!r}{hint}")
    return rows
