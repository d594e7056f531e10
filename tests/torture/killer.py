"""Kills at random moments: now one process, now all that belong to one run."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from tests.torture.tree import Tree

# How likely each is the next victim, among those that run.
WEIGHTS = {
    "driver": 5, "keeper": 4, "carrier": 4, "wrapper": 4, "sender": 4, "relay": 1, "kisser": 1,
}  # fmt: skip

# Seconds from kill to kill: chance, least, most.  A run of many lines takes 100 ms.
GAPS = ((0.65, 0.004, 0.060), (0.28, 0.060, 0.250), (0.07, 0.250, 0.700))

# Sometimes a whole machine's worth goes at once.
ALL_AT_ONCE = 0.06


class Killer:
    """Kills below a harness, by a repeatable chance as far as the machine allows."""

    def __init__(self, tree: Tree, chance: random.Random):
        self.tree, self.chance = tree, chance
        self.kills: Counter[str] = Counter()

    def kill(self, kills: int, limit_s: float, busy: Callable[[], bool]) -> None:
        """Kill so many, or until *limit_s* or no longer *busy*."""
        until, wanted = time.monotonic() + limit_s, self.total + kills
        while self.total < wanted and time.monotonic() < until and busy():
            time.sleep(self._gap())
            self.strike()

    @property
    def total(self) -> int:
        """How many were killed so far."""
        return sum(self.kills.values())

    def strike(self) -> None:
        """Kill one, or a whole run; nobody when nobody runs."""
        living = {role: pids for role, pids in self.tree.living().items() if role in WEIGHTS}
        if living:
            roles = sorted(living)
            role = self.chance.choices(roles, [WEIGHTS[each] for each in roles])[0]
            victims = [(role, self.chance.choice(living[role]))]
            if self.chance.random() < ALL_AT_ONCE:
                run = ("driver", "keeper", "carrier", "wrapper")
                victims = [(each, pid) for each in run for pid in living.get(each, ())]
            for name, pid in victims:
                self._end(name, pid)
        self.tree.bury()

    def _end(self, role: str, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended meanwhile
        self.kills[role] += 1

    def _gap(self) -> float:
        lot = self.chance.random()
        for share, least, most in GAPS:
            if lot < share:
                return self.chance.uniform(least, most)
            lot -= share
        return GAPS[0][1]
