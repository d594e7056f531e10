"""`python -m bench.drain`: 1,000 kept lines through one relay, against 1,000 bare carriers.

A bare carrier waits 300 ms and does nothing else; ten of them stand for a thousand.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from bench.__main__ import compile_c
from dispatch import keep
from dispatch.cli.commands import this_house
from dispatch.result import Result
from dispatch.rig.rig import P, Rig
from dispatch.spool import Draft
from dispatch.verdict import TABLE

TARGETS, LINES = 50, 20
CARRIER_MS = 300
BARE = 10


def main() -> None:
    """Print the ratio."""
    with tempfile.TemporaryDirectory(prefix="zdo-drain-") as folder, Rig() as rig:
        bare = compile_c(Path(folder), "fake.c", delay_ms=CARRIER_MS)
        sessions = [str(uuid.uuid4()) for _ in range(TARGETS)]
        doors = [rig.door(session_id=session, name=f"t{n}") for n, session in enumerate(sessions)]
        queue(rig, sessions)
        env = rig.env | {"ZDO_CLAUDE_BIN": bare}

        began = time.perf_counter()
        ended = subprocess.run(
            rig.command("relay", "--json", "--for", "600"), env=env, capture_output=True, check=True
        )
        relay_s = time.perf_counter() - began

        began = time.perf_counter()
        for _ in range(BARE):
            subprocess.run([bare], env={}, check=True, stdout=subprocess.DEVNULL)
        bare_s = (time.perf_counter() - began) / BARE * TARGETS * LINES

        told = json.loads(ended.stdout)
        arrived = sum(len(lines_at(door)) for door in doors)
        wrapper_s = int(Path(bare + ".log").read_text().split()[1]) / 1e9
        print(f"{told['delivered']} delivered in {told['runs']} runs, {arrived} at the doors")
        print(f"relay {relay_s:.2f} s (wrapper {wrapper_s:.2f} s), bare carriers {bare_s:.1f} s")
        print(f"ratio {relay_s / bare_s:.4f}")


def queue(rig: Rig, sessions: list[str]) -> None:
    """LINES lines to each of *sessions*, as `zdo kiss --queue` keeps them."""
    import os

    os.environ.update(rig.env)
    database = keep.open_database(this_house())
    for number in range(TARGETS * LINES):
        line, key = b"line %d" % number, str(uuid.uuid4())
        target = sessions[number % TARGETS]
        draft = Draft(key, hashlib.sha256(line).digest(), line, target, key, P)
        result = Result(command="kiss", verdict=TABLE["queued"], delivery_id=key, key=key)
        keep.enqueue(database, draft, result, time.time())
    database.close()


def lines_at(door) -> list[str]:
    """The lines that *door* got."""
    return door.lines()


if __name__ == "__main__":
    sys.exit(main())
