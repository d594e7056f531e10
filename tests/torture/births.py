"""P2, at its start: the first lines of a new state folder, and kills while it is being made.

Whoever comes afterwards must be able to go on, and what was promised must be there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections import Counter

from registry.record import Record
from tests.torture import tree as family
from tests.torture.killer import Killer
from tests.torture.luck import luck
from tests.torture.scene import Scene

AT_ONCE = 3  # commands of each of the two servants
LONGEST_S = 0.03


class Births(Record):
    """What a number of new state folders came to."""

    births: int
    promised: int
    kills: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    stuck: tuple[int, ...]  # statuses of the next command, where it was refused
    statuses: dict[int, int]
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether nothing that was promised is missing, and everybody could go on."""
        return not (self.lost or self.doubled or self.stuck)


def run_births(*, births: int, seed: int, tree: str | None = None) -> Births:
    """What came of *births* new state folders."""
    family.adopt_orphans()
    began, chance = time.monotonic(), luck(seed)
    ends: Counter[int] = Counter()
    lost: list[str] = []
    doubled: list[str] = []
    stuck: list[int] = []
    with Scene(targets=1, postboxes=1, tree=tree) as scene:
        target = next(iter(scene.targets))
        pair = [scene.servant("sender", name) for name in ("one", "two")]
        killer = Killer(scene.family(), chance)
        for number in range(births):
            shutil.rmtree(scene.rig.state, ignore_errors=True)
            texts = {each: [f"{number} {each.name} {n}" for n in range(AT_ONCE)] for each in pair}
            for each, said in texts.items():
                commands = [["kiss", "--queue", target, text] for text in said]
                each.order("crowd", commands=commands, gap_s=0.004, seed=chance.random())
            for _ in range(2):
                time.sleep(chance.uniform(0, LONGEST_S))
                killer.strike()
            answers = {
                t: end for each in pair for t, end in zip(texts[each], each.answer(), strict=True)
            }
            kept = Counter(_kept(f"{scene.rig.state}/zdo.db"))
            ends.update(answers.values())
            lost += [text for text, status in answers.items() if status == 0 and not kept[text]]
            doubled += [text for text, times in kept.items() if times > 1]
            pair[0].order("once", words=["kiss", "--queue", target, "after"])
            if (status := pair[0].answer()["status"]) != 0:
                stuck.append(status)
    return Births(
        births=births,
        promised=ends[0],
        kills=killer.total,
        lost=tuple(lost),
        doubled=tuple(doubled),
        stuck=tuple(stuck),
        statuses=dict(ends),
        seconds=time.monotonic() - began,
    )


def _kept(database: str) -> list[str]:
    """The lines in the spool; none where nobody has got as far as a table."""
    if not os.path.exists(database):
        return []
    with contextlib.closing(sqlite3.connect(database)) as link:
        try:
            return [body.decode() for (body,) in link.execute("SELECT body FROM line")]
        except sqlite3.OperationalError:
            return []
