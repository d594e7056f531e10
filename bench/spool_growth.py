"""P18: what a claim costs when the spool has grown, divided by what it costs when it is small.

`python -m bench.spool_growth [ROWS]` fills three spools with 1,000 live lines to 100 targets:
with nothing else, with ROWS delivered lines before them (1,000,000 by itself), and the same
without the partial index, as the control.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time

from dispatch import due, kept, outcome, spool
from dispatch.database import Database
from registry.ids import new_uuid
from tests.fakes.spools import NOW, a_line, put

LIVE, TARGETS, ROUNDS, WARM_UP = 1_000, 100, 200, 5
MANY = 1_000_000
GOAL = 2.0


def fill(path: str, delivered: int) -> None:
    """A spool with *delivered* lines that are over, and LIVE queued ones behind them."""
    Database(path).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("PRAGMA synchronous=OFF")
        link.execute("BEGIN")
        over = a_line(1, state=kept.DELIVERED, status=kept.DONE, body=b"x" * 300)
        names = [name for name in over if name not in ("id", "key")]
        link.executemany(
            f"INSERT INTO line(key, {', '.join(names)}) VALUES(?{', ?' * len(names)})",
            ((new_uuid(), *(over[name] for name in names)) for _ in range(delivered)),
        )
        for number in range(LIVE):
            target = f"target-{number % TARGETS}"
            changes = {"id": None, "key": new_uuid(), "target": target, "body": b"x" * 300}
            put(link, "line", a_line(number, **changes))
        link.execute("COMMIT")


def cost(database: Database, targets: tuple[str, ...] = ()) -> tuple[float, float]:
    """Seconds of one look at what is due, to all or one of *targets*, and of one claim's life."""
    began = time.perf_counter()
    with database.reading() as link:
        chosen = random.choice(targets or due.targets_with_work(link))  # noqa: S311
        lines = due.first_lines(link, chosen, 1)
    looked = time.perf_counter()
    owner = new_uuid()
    with database.writing() as link:
        spool.claim(link, lines, owner, owner, NOW)
    with database.writing() as link:
        spool.settle(link, lines[0].key, owner, outcome.queued(), NOW)
    return looked - began, time.perf_counter() - looked


def growth(delivered: int, folder: str) -> dict[str, tuple[float, float]]:
    """Medians in ms of look and claim: of the small spool, the grown one, and the control."""
    opened = {}
    for name in ("small", "grown", "control"):
        path = f"{folder}/{name}/zdo.db"
        os.mkdir(os.path.dirname(path), 0o700)
        fill(path, 0 if name == "small" else delivered)
        if name == "control":
            with contextlib.closing(sqlite3.connect(path)) as link:
                link.execute("DROP INDEX line_live")
        opened[name] = Database(path)
    pairs = {name: [] for name in ("small", "grown")}
    for _ in range(WARM_UP + ROUNDS):
        # In a random order, so that a drift of the machine meets both.
        for name in random.sample(list(pairs), len(pairs)):
            pairs[name].append(cost(opened[name]))
    found = {name: medians(rounds[WARM_UP:]) for name, rounds in pairs.items()}
    # Of one target only: without the index every one of them costs the whole table.
    found["control"] = medians([cost(opened["control"], ("target-1",)) for _ in range(3)])
    return found


def medians(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    """The medians of both columns, in ms."""
    looks, claims = zip(*rounds, strict=True)
    return statistics.median(looks) * 1e3, statistics.median(claims) * 1e3


def report(delivered: int = MANY) -> float:
    """Print the figures; the ratio of the whole, which may be GOAL at most."""
    with tempfile.TemporaryDirectory() as folder:
        found = growth(delivered, folder)
    small = sum(found["small"])
    print(f"a claim from the spool, {LIVE} live lines to {TARGETS} targets (P18)")
    for name, (look, claim) in found.items():
        rows = LIVE + (0 if name == "small" else delivered)
        print(
            f"  {name:9}{rows:10,} lines   look {look:9.3f} ms   claim and settle {claim:7.3f} ms"
            f"   ratio {(look + claim) / small:8.2f}"
        )
    ratio = sum(found["grown"]) / small
    print(f"grown / small                     goal <= {GOAL:g}    {ratio:6.2f}")
    return ratio


if __name__ == "__main__":
    sys.exit(report(int(sys.argv[1]) if sys.argv[1:] else MANY) > GOAL)
