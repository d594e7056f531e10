"""`python -m bench.ledger`: reading 1,000,000 ticket events, against `wc -l` of the same file.

A first read folds all of it and writes the memory; a second one has that memory, as
every later call.  The variants of a round run in a random order.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

from registry.clock import iso
from registry.ledger_file import read_ledger

EVENTS, TICKETS, AGENTS, ROUNDS = 1_000_000, 20_000, 500, 7
BEGAN, STEP_S = 1_764_000_000.0, 20.0
NOW = BEGAN + EVENTS * STEP_S
MIX = {"read": 60, "comment": 14, "action": 10, "status": 8, "assign": 5, "blocker": 3}
NOTES = ("", "looked at the page", "tests are green; the last one took its time", "see TK-11665")
WC, FIRST, SECOND = "wc -l", "first read", "second read"


def fill(path: str, events: int) -> None:
    """A ledger of *events*: each ticket is created once, then worked on and mostly read."""
    draw = random.Random(1)  # noqa: S311 - the same file every time
    agents = [str(uuid.UUID(int=draw.getrandbits(128))) for _ in range(AGENTS)]
    kinds = draw.choices(list(MIX), list(MIX.values()), k=events)
    births = max(events // TICKETS, 1)
    with open(path, "w", encoding="utf-8") as file:
        for number, kind in enumerate(kinds):
            is_new, agent = number % births == 0, draw.randrange(AGENTS)
            # One of ten processes that the agent has had; every second event names it.
            pid = 2_000 + agent * 10 + draw.randrange(10)
            other = uuid.UUID(int=draw.getrandbits(128))
            event = {
                "id": f"TK-{10_000 + (number // births if is_new else draw.randrange(TICKETS))}",
                "type": "create" if is_new else kind,
                "agent": f"claude@{agents[agent]}",
                "ts": iso(BEGAN + number * STEP_S),
                "correlation_id": f"run-{pid}-{number:x}" if number % 2 else str(other),
                "note": draw.choice(NOTES),
            }
            file.write(json.dumps(event) + "\n")


def seconds(variant: str, path: str, folder: str) -> float:
    """Of one run of *variant*."""
    memory = f"{folder}/{variant}.json"
    if variant == FIRST and os.path.exists(memory):
        os.unlink(memory)
    began = time.perf_counter()
    if variant == WC:
        subprocess.run([WC.split(maxsplit=1)[0], "-l", path], check=True, stdout=subprocess.DEVNULL)
    else:
        read_ledger(path, memory, NOW, None)
    return time.perf_counter() - began


def report(events: int = EVENTS) -> None:
    """Print the figures."""
    variants = [WC, FIRST, SECOND]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/events.jsonl"
        fill(path, events)
        mb = os.path.getsize(path) / 1e6
        for variant in variants:  # and the memory of the second read is there
            seconds(variant, path, folder)
        rounds = []
        for _ in range(ROUNDS):
            order = random.sample(variants, len(variants))
            rounds.append({variant: seconds(variant, path, folder) for variant in order})
        kept = os.path.getsize(f"{folder}/{SECOND}.json") / 1e6
    print(f"{events:,} events, {mb:.0f} MB, memory {kept:.2f} MB; {ROUNDS} interleaved rounds")
    for variant in variants:
        middle = statistics.median(row[variant] for row in rounds) * 1e3
        ratios = [row[variant] / row[WC] for row in rounds]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        print(
            f"  {variant:12}{middle:9.1f} ms{middle / mb:9.3f} ms/MB"
            f"   / wc -l {ratio:7.2f}   ({low:.2f} to {high:.2f})"
        )


if __name__ == "__main__":
    report(int(sys.argv[1]) if sys.argv[1:] else EVENTS)
