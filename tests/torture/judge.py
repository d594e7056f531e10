"""What the doors saw against what the senders were told.  Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from registry.record import Record

# Exits that leave open whether the line is in; every other failure says that it is not.
OPEN = frozenset({3, 70, 74})


class Said(Record):
    """One line that a sender said, and how its command ended; negative by a signal."""

    sender: str
    target: str
    text: str
    status: int
    ordered: bool = True  # False: its sender does not mind which of his lines comes first

    @property
    def acked(self) -> bool:
        """Whether zdo has promised it."""
        return self.status == 0

    @property
    def denied(self) -> bool:
        """Whether zdo has said that it is not delivered."""
        return self.status > 0 and self.status not in OPEN


class Findings(Record):
    """Every broken promise, by kind; empty when all were kept."""

    lost: tuple[str, ...]  # promised and not at its door
    doubled: tuple[str, ...]  # at a door more than once, promised or not
    misplaced: tuple[str, ...]  # came before a line that its sender was promised earlier
    astray: tuple[str, ...]  # at a door that it was not for, or said by nobody
    denied: tuple[str, ...]  # at its door, though zdo said that it never would be
    overlaps: int  # carrier runs that met another of their postbox

    @property
    def are_none(self) -> bool:
        """Whether every promise was kept."""
        return not (self.overlaps or any(self.lists()))

    def lists(self) -> tuple[tuple[str, ...], ...]:
        """The broken promises about lines."""
        return self.lost, self.doubled, self.misplaced, self.astray, self.denied


def judge(said: list[Said], taken: dict[str, list[str]], overlaps: int = 0) -> Findings:
    """What is wrong with *taken*, the texts at each door in the order of their coming."""
    wanted = {each.text: each for each in said}
    counted = Counter(text for texts in taken.values() for text in texts)
    return Findings(
        lost=tuple(each.text for each in said if each.acked and not counted[each.text]),
        doubled=tuple(text for text, times in counted.items() if times > 1),
        misplaced=tuple(_misplaced(said, taken)),
        astray=tuple(
            text
            for target, texts in taken.items()
            for text in texts
            if text not in wanted or wanted[text].target != target
        ),
        denied=tuple(each.text for each in said if each.denied and counted[each.text]),
        overlaps=overlaps,
    )


def _misplaced(said: list[Said], taken: dict[str, list[str]]) -> list[str]:
    """The promised lines that came before an earlier promise of the same sender to their target."""
    wrong = []
    for target, texts in taken.items():
        at = {text: place for place, text in reversed(list(enumerate(texts)))}
        latest: dict[str, int] = {}
        for each in said:
            if each.target == target and each.acked and each.ordered and each.text in at:
                place = at[each.text]
                if place < latest.get(each.sender, -1):
                    wrong.append(each.text)
                latest[each.sender] = max(place, latest.get(each.sender, -1))
    return wrong


def said_in(entries: list[dict[str, Any]]) -> list[Said]:
    """The lines that a servant wrote down, in its order."""
    names = ("sender", "target", "text", "status", "ordered")
    return [Said(**{name: each[name] for name in names}) for each in entries if "text" in each]
