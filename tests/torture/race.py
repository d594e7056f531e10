"""P3: many processes queue under the same keys at once; each key is one line.

Half of them say one text under a key and half another, for every second key, and a
killer ends some of them.  Whoever has other bytes than the row must have been told.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter

from registry.record import Record
from tests.torture import tree as family
from tests.torture.killer import Killer
from tests.torture.luck import luck
from tests.torture.scene import Scene

CONFLICT = 65


class Outcome(Record):
    """What a race came to."""

    keys: int
    puts: int
    kills: int
    rows: int
    doubled: tuple[str, ...]  # keys with more than one row
    missing: tuple[str, ...]  # keys that somebody was promised, without a row
    unsaid: tuple[str, ...]  # other bytes than the row's, and not told so
    wronged: tuple[str, ...]  # the row's own bytes, and not accepted
    statuses: dict[int, int]
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether every key was one line, and everybody was told the truth."""
        return not (self.doubled or self.missing or self.unsaid or self.wronged)


def run_race(*, keys: int, racers: int, kills: int, seed: int, tree: str | None = None) -> Outcome:
    """What came of *racers* processes on the same *keys* keys."""
    family.adopt_orphans()
    began = time.monotonic()
    chance = luck(seed)
    names = [f"key-{number:04d}" for number in range(keys)]
    with Scene(targets=1, postboxes=1, tree=tree) as scene:
        target = next(iter(scene.targets))
        running = [scene.servant("sender", f"racer{number}") for number in range(racers)]
        for number, racer in enumerate(running):
            texts = [_text(each, place, number) for place, each in enumerate(names)]
            racer.order("race", keys=names, texts=texts, target=target)
        killer = Killer(scene.family(), chance)
        puts = keys * racers
        killer.kill(kills, 60.0, lambda: sum(len(each.entries()) for each in running) < puts)
        for racer in running:
            racer.answer()
        entries = [each for racer in running for each in racer.entries()]
        rows = _rows(f"{scene.rig.state}/zdo.db")
    return _judged(entries, rows, keys, killer.total, time.monotonic() - began)


def _text(key: str, place: int, racer: int) -> str:
    return f"{key} said by {'odd' if place % 2 and racer % 2 else 'all'}"


def _rows(database: str) -> list[tuple[str, str]]:
    with contextlib.closing(sqlite3.connect(database)) as link:
        found = link.execute("SELECT given_key, body FROM line ORDER BY id").fetchall()
    return [(key, body.decode()) for key, body in found]


def _judged(
    entries: list[dict[str, object]],
    rows: list[tuple[str, str]],
    keys: int,
    kills: int,
    seconds: float,
) -> Outcome:
    counted, kept = Counter(key for key, _ in rows), dict(rows)
    told = [(str(e["key"]), str(e["line"]), e["status"]) for e in entries]
    heard = [each for each in told if each[2] != -9]
    return Outcome(
        keys=keys,
        puts=len(told),
        kills=kills,
        rows=len(rows),
        doubled=tuple(key for key, times in counted.items() if times > 1),
        missing=tuple(key for key, _, status in told if status == 0 and key not in kept),
        unsaid=tuple(k for k, text, s in heard if kept.get(k) != text and s != CONFLICT),
        wronged=tuple(k for k, text, s in heard if kept.get(k) == text and s != 0),
        statuses=dict(Counter(int(str(each[2])) for each in told)),
        seconds=seconds,
    )
