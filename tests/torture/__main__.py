"""`make torture`: every promise that needs kills, crowds or power cuts, with its controls.

Each rig runs in a process of its own and says one JSON object.  A promise must be kept;
a control, which is the same rig with one guard taken out, must be caught.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.record import Record, fields
from tests.torture import births, crowds, drain, kills, powercut, race, rigs, stuck
from tests.torture.copies import Break, broken

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.torture.scene import Scene

ROOT = Path(__file__).parents[2]
MOST_SHOWN = 12
SLOW_MS = 150  # before and after the hook, so that a carrier is there to be met
FORGETS = 0.3  # of the lines never surface, though the door took them


class Sizes(Record):
    """How much of everything."""

    kills: int = 1000
    lines: int = 2000
    control_kills: int = 300
    births: int = 300
    doubts: int = 300
    cuts: int = 120
    acks: int = 10_000
    control_cuts: int = 30
    keys: int = 1000
    racers: int = 8
    rounds: int = 500
    control_rounds: int = 40
    targets: int = 20
    each: int = 200
    stuck: int = 100
    control_stuck: int = 5
    seed: int = 1


# Of the suite: what two busy cores do in a minute or so, all together.
SMALL = {
    "kills": 200, "lines": 300, "control_kills": 150, "births": 30, "doubts": 50, "cuts": 6,
    "acks": 100, "control_cuts": 80, "keys": 20, "rounds": 7, "control_rounds": 30,
    "targets": 4, "each": 32, "stuck": 6, "control_stuck": 3,
}  # fmt: skip


class Rig(Record):
    """One promise's rig; *breaks*: a control, that must be caught."""

    promise: str
    run: Callable[[Sizes, str | None], Record]
    breaks: tuple[Break, ...] = ()


def _caught(scene: Scene) -> bool:
    return bool(scene.overlaps() or scene.findings().doubled)


def _kills(sizes: Sizes, _tree: str | None) -> Record:
    rounds = max(1, sizes.kills // 200)
    return kills.siege(kills=sizes.kills, lines=sizes.lines, seed=sizes.seed, rounds=rounds)


def _control_kills(sizes: Sizes, tree: str | None) -> Record:
    return kills.siege(
        kills=sizes.control_kills,
        lines=sizes.control_kills * 2,
        seed=sizes.seed,
        tree=tree,
        enough=_caught,
        carrier_ms=SLOW_MS,
    )


def _births(sizes: Sizes, _tree: str | None) -> Record:
    return births.run_births(births=sizes.births, seed=sizes.seed)


def _doubt(sizes: Sizes, _tree: str | None) -> Record:
    more = {"lines": sizes.doubts * 2, "seed": sizes.seed + 1, "forgets": FORGETS}
    return kills.siege(kills=sizes.doubts, **more)


def _cuts(sizes: Sizes, _tree: str | None) -> Record:
    return powercut.cut_power(cuts=sizes.cuts, acks=sizes.acks, seed=sizes.seed)


def _control_cuts(sizes: Sizes, tree: str | None) -> Record:
    # In the suite the first loss is enough; at full size the share is told.
    soon = sizes.control_cuts > sizes.cuts
    return powercut.cut_power(
        cuts=sizes.control_cuts, acks=0, seed=sizes.seed, tree=tree, until_lost=soon
    )


def _race(sizes: Sizes, tree: str | None) -> Record:
    kill = 0 if tree else sizes.keys // 4
    return race.run_race(
        keys=sizes.keys, racers=sizes.racers, kills=kill, seed=sizes.seed, tree=tree
    )


def _crowds(sizes: Sizes, _tree: str | None) -> Record:
    return crowds.run_crowds(rounds=sizes.rounds, seed=sizes.seed)


def _control_crowds(sizes: Sizes, tree: str | None) -> Record:
    return crowds.run_crowds(
        rounds=sizes.control_rounds,
        seed=sizes.seed,
        tree=tree,
        mischief=("nothing",),
        until_met=True,
        carrier_ms=SLOW_MS,
    )


def _drain(sizes: Sizes, _tree: str | None) -> Record:
    return drain.compare(targets=sizes.targets, lines=sizes.each, seed=sizes.seed)


def _control_drain(sizes: Sizes, tree: str | None) -> Record:
    return drain.drain(targets=3, lines=40, seed=sizes.seed, bad=drain.ABSENT, tree=tree)


def _stuck(sizes: Sizes, tree: str | None) -> Record:
    trials = sizes.control_stuck if tree else sizes.stuck
    return stuck.run_trials(trials=trials, seed=sizes.seed, tree=tree, until_left=tree is not None)


RIGS = {
    "kills": Rig("P2", _kills),
    "kills-lease-not-passed": Rig("P2", _control_kills, rigs.LEASE_NOT_PASSED),
    "kills-blind-retry": Rig("P2", _control_kills, rigs.BLIND_RETRY),
    "births": Rig("P2", _births),
    "doubt": Rig("P9", _doubt),
    "cuts": Rig("P1", _cuts),
    "cuts-delete-full": Rig("P1", _control_cuts, rigs.DELETE_FULL),
    "cuts-wal-normal": Rig("P1", _control_cuts, rigs.WAL_NORMAL),
    "race": Rig("P3", _race),
    "race-key-not-unique": Rig("P3", _race, rigs.KEY_NOT_UNIQUE),
    "drain": Rig("P4", _drain),
    "drain-newest-first": Rig("P4", _control_drain, rigs.NEWEST_FIRST),
    "drain-one-holds-all": Rig("P4", _control_drain, rigs.ONE_HOLDS_ALL),
    "crowds": Rig("P7", _crowds),
    "crowds-lease-not-passed": Rig("P7", _control_crowds, rigs.LEASE_NOT_PASSED),
    "stuck": Rig("P8", _stuck),
    "stuck-not-adopted": Rig("P8", _stuck, rigs.NOT_ADOPTED),
}


def play(name: str, sizes: Sizes) -> dict[str, Any]:
    """What the rig *name* came to, and whether that is as it must be."""
    rig = RIGS[name]
    if name.startswith("cuts") and (why := powercut.impossible()) is not None:
        return {"rig": name, "promise": rig.promise, "skipped": why, "right": True}
    if rig.breaks:
        with broken(*rig.breaks) as tree:
            came = rig.run(sizes, tree)
    else:
        came = rig.run(sizes, None)
    kept = bool(came.is_kept)  # type: ignore[attr-defined]
    told = {
        "rig": name,
        "promise": rig.promise,
        "kept": kept,
        "right": kept is not bool(rig.breaks),
    }
    return told | _flat(came)


def _flat(value: Any) -> Any:
    if isinstance(value, Record):
        return {name: _flat(each) for name, each in fields(value).items()}
    if isinstance(value, float):
        return round(value, 1)
    return value


def apart(name: str, words: list[str]) -> dict[str, Any]:
    """As `play`, in a process that adopts nobody else's orphans."""
    argv = [sys.executable, "-m", "tests.torture", "--rig", name, *words]
    ended = subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if not ended.stdout.startswith("{"):
        return {"rig": name, "right": False, "crashed": ended.returncode}
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def main() -> int:
    """Run the chosen rigs; 0 when every promise was kept and every control caught."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.torture")
    for name, size in fields(Sizes()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=None, metavar=size)
    parser.add_argument("--small", action="store_true", help="the sizes of the suite")
    parser.add_argument("--only", nargs="+", choices=RIGS, help="these rigs alone")
    parser.add_argument("--rig", choices=RIGS, help="one rig, in this process, as JSON")
    given = vars(parser.parse_args())
    small, only, one = given.pop("small"), given.pop("only"), given.pop("rig")
    chosen = {name: size for name, size in given.items() if size is not None}
    sizes = Sizes(**((SMALL if small else {}) | chosen))
    if one is not None:
        told = play(one, sizes)
        print(json.dumps(told))
        return 0 if told["right"] else 1
    wrong = 0
    words = [f"--{name.replace('_', '-')}={size}" for name, size in fields(sizes).items()]
    for name in only or RIGS:
        began = time.monotonic()
        told = apart(name, words)
        wrong += not told["right"]
        print(_row(told, time.monotonic() - began), flush=True)
    print(f"{len(only or RIGS) - wrong} as it must be, {wrong} not")
    return 1 if wrong else 0


def _row(told: dict[str, Any], seconds: float) -> str:
    name = told.pop("rig")
    judged = "right" if told.pop("right") else "WRONG"
    if "skipped" in told:
        return f"{name:26} SKIPPED, NOT SHOWN: {told['skipped']}"
    told.pop("seconds", None)
    return f"{name:26} {judged} {seconds:7.1f} s  {json.dumps(_short(told))}"


def _short(value: Any) -> Any:
    """*value* for a table: of long lists the first and how many there are."""
    if isinstance(value, dict):
        if len(value) > MOST_SHOWN and all(isinstance(each, int) for each in value.values()):
            return f"{min(value.values())} to {max(value.values())}"
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list) and len(value) > 1:
        return f"{len(value)}, as {value[0]}"
    return value


if __name__ == "__main__":
    sys.exit(main())
