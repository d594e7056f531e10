"""P4: order per target, none between targets, and one that always fails delays no other.

Carriers fail and targets are away at random, by a schedule that depends on the number of
the pass alone; so two drains with the same seed, with and without the bad target, must
need the same passes.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from registry.record import Record
from tests.torture import tree as family
from tests.torture.carrier import FAILS, WAITS
from tests.torture.luck import luck
from tests.torture.scene import Scene, configuration

if TYPE_CHECKING:
    from tests.torture.scene import Servant

BAD = "bad"
ALWAYS, NEVER = "256", "0"
FAILING = 0.25  # of the passes lose every carrier run
HIDDEN = 0.15  # of the good targets do not run in a pass
LONGEST_S = 500.0


class Drain(Record):
    """How a drain went."""

    lines: int
    passes: int  # until every good target had all its lines
    done_by: dict[str, int]  # the pass in which each good target got its last line
    misplaced: tuple[str, ...]
    doubled: tuple[str, ...]
    missing: int
    waiting: int  # lines of the bad target that still wait at the end
    carriers: int
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether each good target has all its lines, once and in order."""
        return not (self.misplaced or self.doubled or self.missing)


class Both(Record):
    """The same drain without and with a target that always fails."""

    without: Drain
    beside_bad: Drain

    @property
    def is_kept(self) -> bool:
        """Whether both went as they should, the good targets in the same passes."""
        drains = (self.without, self.beside_bad)
        same = self.without.done_by == self.beside_bad.done_by
        return same and all(each.is_kept for each in drains) and self.beside_bad.waiting > 0


def compare(*, targets: int, lines: int, seed: int) -> Both:
    """How two drains of the same fate went, one of them beside a bad target."""
    return Both(
        drain(targets=targets, lines=lines, seed=seed, bad=False),
        drain(targets=targets, lines=lines, seed=seed, bad=True),
    )


def drain(*, targets: int, lines: int, seed: int, bad: bool, tree: str | None = None) -> Drain:
    """How *lines* lines for each of *targets* targets went; *bad*: one more never runs."""
    family.adopt_orphans()
    began, chance = time.monotonic(), luck(seed)
    with Scene(targets=targets, postboxes=1, tree=tree) as scene:
        good = list(scene.targets)
        Path(scene.claude + WAITS).write_text("0", encoding="ascii")
        names = [BAD, *good] if bad else good
        if bad:
            # Nobody has its id: the first in line, through the same postbox as all.
            everyone = {BAD: 999_999} | scene.targets
            scene.rig.configure(configuration(everyone, 1))
        clerk = scene.servant("sender", "clerk")
        for number in range(lines):
            for name in names:
                clerk.order("once", words=["kiss", "--queue", name, f"{name} {number:04d}"])
                if (told := clerk.answer())["status"]:
                    raise AssertionError(f"not queued: {told}")
        done_by: dict[str, int] = {}
        passes = 0
        while len(done_by) < targets and time.monotonic() - began < LONGEST_S:
            passes += 1
            _fail(scene, fails=chance.random() < FAILING)
            scene.hide({name for name in good if chance.random() < HIDDEN})
            _pass(scene, clerk)
            for name in good:
                if name not in done_by and len(scene.doors.taken(name)) >= lines:
                    done_by[name] = passes
        return _judged(scene, lines, done_by, passes, time.monotonic() - began)


def _fail(scene: Scene, *, fails: bool) -> None:
    Path(scene.claude + FAILS).write_text(ALWAYS if fails else NEVER, encoding="ascii")


def _pass(scene: Scene, clerk: Servant) -> dict[str, object]:
    scene.let_time_pass()
    clerk.order("once", words=["relay", "--json"])
    told = clerk.answer()
    found: dict[str, object] = json.loads(told["said"])
    return found


def _judged(
    scene: Scene, lines: int, done_by: dict[str, int], passes: int, seconds: float
) -> Drain:
    misplaced, doubled, missing = [], [], 0
    for name, texts in scene.taken().items():
        wanted = [f"{name} {number:04d}" for number in range(lines)]
        once = list(dict.fromkeys(texts))
        missing += len(set(wanted) - set(once))
        doubled += [text for text in once if texts.count(text) > 1]
        misplaced += [text for text, place in zip(once, wanted, strict=False) if text != place]
    clerk = scene.servants[0]
    waiting = [each for each in scene.lines(clerk) if each["target"] == BAD]
    return Drain(
        lines=lines * len(scene.targets),
        passes=passes,
        done_by=done_by,
        misplaced=tuple(misplaced),
        doubled=tuple(doubled),
        missing=missing,
        waiting=len(waiting),
        carriers=scene.carriers(),
        seconds=seconds,
    )
