"""`python -m bench.sessions`: `zdo sessions` beside 10, 1,000 and 5,000 stale rows.

Two sessions run, one with a ticket; every other row is of a process that ended.  In the
unit of a bare interpreter, the variants of a round in a random order.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
import uuid

from dispatch.rig.rig import Rig
from tests.fakes.tickets import Tickets

STALE, ROUNDS, PANE = (10, 1_000, 5_000), 11, "w0t1p0:bench"
# Above every pid that this kernel gives, so that nobody has it.
FIRST_PID = 5_000_000


def stage(stale: int) -> Rig:
    """A rig with two running sessions and *stale* rows of ended ones."""
    rig = Rig()
    rig.__enter__()
    rig.door(env={"TERM_SESSION_ID": PANE})
    rig.door(session_id=str(uuid.uuid4()), name="second")
    tickets = Tickets(rig.home)
    tickets.add("TK-1", "create", 60)
    tickets.add("TK-1", "comment", agent=f"claude@{PANE}")
    for number in range(stale):
        pid = FIRST_PID + number
        row = {"pid": pid, "sessionId": str(uuid.uuid4()), "cwd": "/home/u/w", "status": "idle"}
        row |= {"procStart": "1", "messagingSocketPath": f"{rig.root}/{pid}.sock", "name": "w"}
        with open(f"{rig.claude_dir}/sessions/{pid}.json", "w", encoding="ascii") as file:
            json.dump(row, file)
    return rig


def seconds(rig: Rig | None) -> float:
    """Of one `zdo sessions` in *rig*, or of a bare interpreter."""
    began = time.perf_counter()
    if rig is None:
        subprocess.run([sys.executable, "-c", "pass"], check=True)
    else:
        said = rig.zdo("sessions")
        if said.exit or "TK-1 (session_ledger)" not in said.out:
            raise SystemExit(f"not what was staged: {said}")
    return time.perf_counter() - began


def report() -> None:
    """Print the figures."""
    rigs = {stale: stage(stale) for stale in STALE}
    variants: dict[str, Rig | None] = {"python -c pass": None}
    variants |= {f"{stale:,} stale rows": rig for stale, rig in rigs.items()}
    rounds = []
    try:
        for _ in range(ROUNDS):
            order = random.sample(list(variants), len(variants))
            rounds.append({name: seconds(variants[name]) for name in order})
    finally:
        for rig in rigs.values():
            rig.__exit__()
    print(f"zdo sessions, two of them running; {ROUNDS} interleaved rounds")
    for name in variants:
        middle = statistics.median(row[name] for row in rounds) * 1e3
        ratios = [row[name] / row["python -c pass"] for row in rounds]
        low, ratio, high = statistics.quantiles(ratios, n=4)
        print(f"  {name:18}{middle:8.1f} ms   / pass {ratio:6.2f}   ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    report()
