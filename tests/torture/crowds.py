"""P7: many dispatchers at once, some killed, the lock file tampered with: one driver per postbox.

The fake carrier holds a lock of its own while it runs and says when it meets another.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from registry.record import Record
from tests.torture import tree as family
from tests.torture.carrier import WAITS
from tests.torture.killer import Killer
from tests.torture.luck import luck
from tests.torture.scene import Scene, postbox_of

if TYPE_CHECKING:
    from tests.torture.scene import Servant

CROWD = 20
RELAYS, QUEUED = 0.3, 0.2  # shares of the crowd
CARRIER_MS = 40
_AT_FDCWD, _EXCHANGE = -100, 2  # renameat2(2)
VICTIM = "what a lock file must never touch"

# What is done to the lock file in the middle of a crowd.
UNDER_WAITERS = ("nothing", "symlink", "fifo", "hard-link", "folder")
UNDER_HOLDERS = ("unlink", "replace")
MISCHIEF = UNDER_WAITERS + UNDER_HOLDERS


class Rounds(Record):
    """What a number of crowds came to."""

    rounds: int
    carriers: int
    overlaps: dict[str, int]  # carriers that met another, by what had been done to the lock file
    doubled: tuple[str, ...]
    touched: int  # rounds after which the victim of a link was no longer what it was
    kills: int
    statuses: dict[int, int]
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether nobody met anybody, and nothing was touched."""
        return not (self.overlaps or self.touched or self.doubled)


class Crowd:
    """One postbox and everybody who wants it."""

    def __init__(self, scene: Scene, seed: int):
        self.scene, self.chance = scene, luck(seed)
        self.leader: Servant = scene.servant("kisser", "leader")
        self.killer = Killer(scene.family(), self.chance)
        self.lock = f"{scene.rig.state}/locks/{postbox_of(0)}.lock"
        self.victim = Path(scene.rig.root, "victim")

    def gather(self, number: int, kind: str, kills: int) -> bool:
        """Whether the victim is untouched after a crowd that saw *kind* done to the lock file."""
        scene, chance = self.scene, self.chance
        self.victim.write_text(VICTIM, encoding="utf-8")
        commands = [self._words(f"{number} {place}") for place in range(CROWD)]
        self.leader.order("crowd", commands=commands, gap_s=0.01, seed=chance.random())
        time.sleep(chance.uniform(0.05, 0.4))
        kept = tamper(kind, self.lock, str(self.victim))
        self.killer.kill(kills, 0.5, lambda: True)
        time.sleep(chance.uniform(0.0, 0.2))
        if kept is not None:
            exchange(kept, self.lock)
            _clear(kept)
        self.leader.answer()
        scene.wait_until_quiet()
        return self.victim.read_text(encoding="utf-8") == VICTIM

    def _words(self, text: str) -> list[str]:
        lot = self.chance.random()
        if lot < RELAYS:
            return ["relay"]
        words = ["kiss", self.chance.choice(list(self.scene.targets)), text]
        if lot < RELAYS + QUEUED:
            return [*words, "--queue"]
        return [*words, "--lock-timeout", "1"]


def tamper(kind: str, lock: str, victim: str) -> str | None:
    """Do *kind* to the file *lock*; where the old one lies that must come back, if it must."""
    if kind == "nothing" or not os.path.lexists(lock):
        return None
    if kind == "unlink":
        os.unlink(lock)
        return None
    if kind == "replace":
        os.close(os.open(lock + ".new", os.O_WRONLY | os.O_CREAT, 0o600))
        os.rename(lock + ".new", lock)
        return None
    kept = lock + ".kept"
    if kind == "symlink":
        os.symlink(victim, kept)
    elif kind == "fifo":
        os.mkfifo(kept, 0o600)
    elif kind == "hard-link":
        os.link(victim, kept)
    else:
        os.mkdir(kept)
    exchange(kept, lock)
    return kept


def exchange(one: str, other: str) -> None:
    """Each of two paths has what the other had, at once: nobody sees a gap between."""
    names = (os.fsencode(one), os.fsencode(other))
    if ctypes.CDLL(None).renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE):
        raise OSError(f"{one} and {other} cannot be exchanged here")


def _clear(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def run_crowds(
    *,
    rounds: int,
    seed: int,
    tree: str | None = None,
    mischief: tuple[str, ...] = MISCHIEF,
    kills: int = 3,
    until_met: bool = False,
    carrier_ms: int = CARRIER_MS,
) -> Rounds:
    """What came of *rounds* crowds through one postbox, or of fewer, *until_met*."""
    family.adopt_orphans()
    began, touched = time.monotonic(), 0
    met: Counter[str] = Counter()
    with Scene(targets=3, postboxes=1, tree=tree) as scene:
        Path(scene.claude + WAITS).write_text(str(carrier_ms), encoding="ascii")
        crowd = Crowd(scene, seed)
        for number in range(rounds):
            kind, before = mischief[number % len(mischief)], scene.overlaps()
            touched += not crowd.gather(number, kind, kills)
            met[kind] += scene.overlaps() - before
            if until_met and scene.overlaps():
                break
        counted = Counter(text for texts in scene.taken().values() for text in texts)
        ends = [end for each in crowd.leader.entries() if "ends" in each for end in each["ends"]]
        return Rounds(
            rounds=number + 1,
            carriers=scene.carriers(),
            overlaps={kind: times for kind, times in met.items() if times},
            doubled=tuple(text for text, times in counted.items() if times > 1),
            touched=touched,
            kills=crowd.killer.total,
            statuses=dict(Counter(ends)),
            seconds=time.monotonic() - began,
        )
