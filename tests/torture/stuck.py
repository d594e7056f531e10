"""P8: carriers that will not end, in every combination; nothing of them is left in time.

Each trial queues a few lines, has one pass meet a stuck carrier, and then passes with a
sound one: every line is at its door exactly once, whatever the first pass came to.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatch.rig import claude
from registry.record import Record
from tests.torture import tree as family
from tests.torture.luck import luck
from tests.torture.scene import HEAD, Scene, configuration, postbox_of

if TYPE_CHECKING:
    import random

    from tests.torture.scene import Servant

DEADLINE_S = 1.0
GRACE_S = 5.0
LINES = 3
FOREVER_S = 300.0

# The one that a group alone does not hold.
WORST = {
    "ignore_term": True,
    "hang_s": FOREVER_S,
    "stray": {"s": FOREVER_S, "setsid": True, "double": True, "ignore_term": True},
}


class Trials(Record):
    """What a number of stuck carriers came to."""

    trials: int
    late: tuple[str, ...]  # passes that took longer than deadline and grace
    left: tuple[str, ...]  # processes that outlived their pass
    held: int  # passes after which the lease was not free
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    longest_s: float
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether everything ended in time and every line came once."""
        return not (self.late or self.left or self.held or self.lost or self.doubled)


def behaviour(chance: random.Random) -> dict[str, Any]:
    """A carrier that does not end by itself."""
    chosen: dict[str, Any] = {"ignore_term": chance.random() < 0.7}
    kind = chance.choice(("before", "hang", "no-hook", "flood"))
    if kind == "before":
        chosen["before_s"] = FOREVER_S
    elif kind == "no-hook":
        chosen |= {"hook": "none", "hang_s": FOREVER_S}
    elif kind == "flood":
        chosen |= {"flood_stdout": 6 << 20, "flood_stderr": 1 << 20, "hang_s": FOREVER_S}
    else:
        chosen["hang_s"] = FOREVER_S
    if chance.random() < 0.8:
        lots = {name: chance.random() < 0.5 for name in ("double", "ignore_term", "holds_stdout")}
        chosen["stray"] = {"s": FOREVER_S, "setsid": chance.random() < 0.7} | lots
    return chosen


def run_trials(
    *, trials: int, seed: int, tree: str | None = None, until_left: bool = False
) -> Trials:
    """What came of *trials* stuck carriers, or of fewer, *until_left* somebody behind."""
    family.adopt_orphans()
    began, chance = time.monotonic(), luck(seed)
    late: list[str] = []
    left: list[str] = []
    held, longest, said = 0, 0.0, []
    with Scene(targets=2, postboxes=1, tree=tree) as scene:
        scene.rig.configure(_impatient(scene))
        clerk = scene.servant("relay", "clerk")
        for number in range(trials):
            chosen = WORST if until_left else behaviour(chance)
            program = claude.install(scene.rig.bin, **chosen)
            Path(program + ".log.jsonl").unlink(missing_ok=True)
            for place in range(LINES):
                text = f"{number} {place}"
                said.append(text)
                _does(clerk, "kiss", "--queue", f"t{place % 2:02d}", text)
            started = time.monotonic()
            _does(clerk, "relay", "--for", "0.1")
            took = time.monotonic() - started
            longest = max(longest, took)
            if took > DEADLINE_S + GRACE_S:
                late.append(f"{took:.1f} s: {chosen}")
            left += [f"{pid}: {chosen}" for pid in _survivors(program)]
            held += not _is_free(f"{scene.rig.state}/locks/{postbox_of(0)}.lock")
            claude.install(scene.rig.bin)
            _peace(scene, clerk)
            if until_left and left:
                break
        texts = [text for taken in scene.taken().values() for text in taken]
    return Trials(
        trials=number + 1,
        late=tuple(late),
        left=tuple(left),
        held=held,
        lost=tuple(text for text in said if text not in texts),
        doubled=tuple(text for text in set(texts) if texts.count(text) > 1),
        longest_s=longest,
        seconds=time.monotonic() - began,
    )


def _impatient(scene: Scene) -> str:
    text = configuration(scene.targets, 1)
    return text.replace(HEAD, HEAD.replace("timeout_s = 10", f"timeout_s = {DEADLINE_S}"))


def _does(clerk: Servant, *words: str) -> dict[str, Any]:
    clerk.order("once", words=list(words))
    told: dict[str, Any] = clerk.answer()
    return told


def _survivors(program: str) -> list[int]:
    """Who of those that the fake wrote down still runs; they are ended."""
    found = []
    for entry in claude.log_of(program):
        if entry["event"] in ("start", "stray") and family.words(entry["pid"]):
            found.append(entry["pid"])
            os.kill(entry["pid"], signal.SIGKILL)
    return found


def _is_free(lock: str) -> bool:
    fd = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _peace(scene: Scene, clerk: Servant) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and scene.lines(clerk):
        scene.let_time_pass()
        _does(clerk, "relay")
