"""P4: order per target, none between targets, and one that always fails delays no other.

Carriers fail and targets are away at random, by a schedule that depends on the number of
the pass alone; so two drains with the same seed, with and without the bad target, must
need the same passes.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.record import Record
from tests.torture import tree as family
from tests.torture.carrier import FAILS, WAITS
from tests.torture.luck import luck
from tests.torture.scene import Scene, configuration

if TYPE_CHECKING:
    from tests.torture.scene import Servant

BAD, ABSENT, FROZEN = "bad", "absent", "frozen"
ALWAYS, NEVER = "256", "0"
FAILING = 0.25  # of the passes lose every carrier run
HIDDEN = 0.15  # of the good targets do not run in a pass
BURST = 30  # lines that a session takes in one pass, at best


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


class Drains(Record):
    """The same drain alone, beside a target that never runs, and beside one that is frozen."""

    alone: Drain
    absent: Drain
    frozen: Drain

    @property
    def is_kept(self) -> bool:
        """Whether all went as they should, the good targets in the same passes."""
        drains = (self.alone, self.absent, self.frozen)
        same = all(each.done_by == self.alone.done_by for each in drains)
        left = self.absent.waiting and self.frozen.waiting
        return bool(same and left and all(each.is_kept for each in drains))


def compare(*, targets: int, lines: int, seed: int, tree: str | None = None) -> Drains:
    """How drains of the same fate went, two of them beside a bad target."""
    return Drains(
        *(
            drain(targets=targets, lines=lines, seed=seed, bad=bad, tree=tree)
            for bad in ("", ABSENT, FROZEN)
        )
    )


def drain(*, targets: int, lines: int, seed: int, bad: str, tree: str | None = None) -> Drain:
    """How *lines* lines for each of *targets* targets went, and as many for a *bad* one."""
    family.adopt_orphans()
    began, chance = time.monotonic(), luck(seed)
    with Scene(targets=targets + bool(bad), postboxes=1, tree=tree) as scene:
        # By its name the bad one is looked at first; all share one postbox.
        names = ([BAD] if bad else []) + [f"good{number:02d}" for number in range(targets)]
        good, sessions = names[bool(bad) :], dict(zip(names, scene.targets, strict=True))
        scene.rig.configure(configuration({n: scene.targets[sessions[n]] for n in names}, 1))
        Path(scene.claude + WAITS).write_text("0", encoding="ascii")
        if bad == FROZEN:
            scene.freeze(sessions[BAD])
        clerk = scene.servant("sender", "clerk")
        for number in range(lines):
            for name in names:
                clerk.order("once", words=["kiss", "--queue", name, f"{name} {number:04d}"])
                if (told := clerk.answer())["status"]:
                    raise AssertionError(f"not queued: {told}")
        done_by: dict[str, int] = {}
        passes, most = 0, 10 + 4 * -(-lines // BURST)
        while len(done_by) < targets and passes < most:
            passes += 1
            _fail(scene, fails=chance.random() < FAILING)
            away = {sessions[name] for name in good if chance.random() < HIDDEN}
            scene.hide(away | {sessions[BAD]} if bad == ABSENT else away)
            _pass(scene, clerk)
            for name in good:
                if name not in done_by and len(scene.doors.taken(sessions[name])) >= lines:
                    done_by[name] = passes
        taken = {name: scene.taken()[sessions[name]] for name in good}
        waiting = [each for each in scene.lines(clerk) if each["target"] == BAD]
        return Drain(
            lines=lines * targets,
            passes=passes,
            done_by=done_by,
            waiting=len(waiting),
            carriers=scene.carriers(),
            seconds=time.monotonic() - began,
            **_judged(taken, lines),
        )


def _fail(scene: Scene, *, fails: bool) -> None:
    Path(scene.claude + FAILS).write_text(ALWAYS if fails else NEVER, encoding="ascii")


def _pass(scene: Scene, clerk: Servant) -> dict[str, object]:
    scene.let_time_pass()
    clerk.order("once", words=["relay", "--json"])
    told = clerk.answer()
    found: dict[str, object] = json.loads(told["said"])
    return found


def _judged(taken: dict[str, list[str]], lines: int) -> dict[str, Any]:
    misplaced: list[str] = []
    doubled: list[str] = []
    missing = 0
    for name, texts in taken.items():
        wanted = [f"{name} {number:04d}" for number in range(lines)]
        once = list(dict.fromkeys(texts))
        missing += len(set(wanted) - set(once))
        doubled += [text for text in once if texts.count(text) > 1]
        misplaced += [text for text, place in zip(once, wanted, strict=False) if text != place]
    return {"misplaced": tuple(misplaced), "doubled": tuple(doubled), "missing": missing}
