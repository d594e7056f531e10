"""The figures of a report as the one object that `zdo report --json` prints; no list is cut."""

from __future__ import annotations

from dispatch.report.spread import STEPS
from dispatch.verdict import TABLE
from registry.clock import iso
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.report.figures import Figures, Hold, Recipient
    from dispatch.report.spread import Spread


def as_json(figures: Figures) -> dict[str, Any]:
    """*figures* by name; what was not measured is null."""
    return {
        "entries": figures.entries,
        "deliveries": figures.deliveries,
        "fates": figures.fates,
        "classes": [{"class": name, "deliveries": count} for name, count in figures.classes],
        "days": [{"day": day.day, "fates": day.fates} for day in figures.days],
        "to_surfaced": _spread(figures.surfaced) | {"later_looks": figures.late},
        "to_door": _spread(figures.door),
        "held": [_hold(each) for each in figures.held],
        "doubt": [
            {
                "delivery_id": each.delivery,
                "target": each.target,
                "at": iso(each.at),
                "class": each.name,
                "reason": each.reason,
                "advice": advice_of(each.name, each.delivery),
            }
            for each in figures.doubt
        ],
        "dead": [
            {
                "class": each.name,
                "deliveries": each.count,
                "by_hand": each.by_hand,
                "reason": each.reason,
            }
            for each in figures.dead
        ],
        "tries": fields(figures.tries),
        "targets": [_recipient(each) for each in figures.targets],
    }


def advice_of(name: str | None, delivery: str) -> str:
    """What to do about a *delivery* of that class; of one that is not known, look."""
    verdict = TABLE.get(name or "")
    advice = "look: zdo show {id}" if verdict is None else verdict.advice
    return advice.replace("{id}", delivery)


def _spread(spread: Spread) -> dict[str, Any]:
    ends = (*STEPS, None)
    steps = [
        {"under_s": end, "deliveries": count} for end, count in zip(ends, spread.steps, strict=True)
    ]
    return fields(spread) | {"steps": steps}


def _hold(hold: Hold) -> dict[str, Any]:
    return {
        "delivery_id": hold.delivery,
        "target": hold.target,
        "at": iso(hold.at),
        "reason": hold.reason,
        "class": hold.name,
        "fate": hold.fate,
        "held_s": hold.held_s,
    }


def _recipient(each: Recipient) -> dict[str, Any]:
    return {
        "target": each.target,
        "deliveries": each.deliveries,
        "fates": each.fates,
        "to_surfaced": _spread(each.surfaced),
        "retries": each.retries,
        "last_at": iso(each.last_at),
    }
