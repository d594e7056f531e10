"""P2: kill -9 of everybody at random moments; no line is lost, none comes twice, order is kept.

Senders queue numbered lines, others kiss at once, relays pass again and again, and a
killer ends now one of them, now a keeper, carrier or wrapper.  Then all is left in
peace until nothing waits any more, and the doors are compared with the promises.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from registry.record import Record, replace
from tests.torture import tree as family
from tests.torture.carrier import WAITS
from tests.torture.killer import Killer
from tests.torture.luck import luck
from tests.torture.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.torture.judge import Findings

TARGETS, POSTBOXES, CARRIER_MS = 20, 3, 8
RELAY = ("relay", "--json")
FOLLOW = ("relay", "--json", "--follow")
PEACE_S = 120.0

QUEUE, NOW, EITHER = ("--queue",), ("--lock-timeout", "3"), ("--or-queue", "--lock-timeout", "1")
# Who says lines: role, how, how often each line under a key, and whether order is promised.
PEOPLE = {
    "s0": ("sender", QUEUE, 1, True),
    "s1": ("sender", QUEUE, 1, True),
    "again": ("sender", QUEUE, 8, True),
    "k0": ("kisser", NOW, 1, True),
    "insists": ("kisser", NOW, 5, True),
    "either": ("kisser", EITHER, 1, False),  # a plain kiss does not wait for the queue
}

# A person who looks does so when nobody is at the door any more.
RELAY_ENDS = (0, -9, -15, 3, 69, 75, 76)  # by us, or by what became of a line
OPEN_STATES = ("queued", "claimed", "uncertain")


class Toll(Record):
    """What one run came to."""

    findings: Findings
    lines: int
    promised: int
    kills: dict[str, int]
    carriers: int
    requeued: int  # lines of which nobody could know, which a person put back
    dropped: int  # such lines that a person found at their door, where nothing shows them
    left: int  # lines that no amount of passes settled
    folders: int  # of attempts that still stand two days later, though all lines are over
    statuses: dict[int, int]  # of the senders' commands
    broken: tuple[str, ...]  # relays that ended as no relay should
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether every promise was kept and every line came to its end."""
        return self.findings.are_none and not (self.left or self.broken or self.folders)


class Siege:
    """One scene under fire."""

    def __init__(self, scene: Scene, seed: int):
        self.scene, self.chance = scene, luck(seed)
        self.people = [scene.servant(PEOPLE[name][0], name) for name in PEOPLE]
        self.relays = [scene.servant("relay", f"r{n}") for n in range(3)]
        self.clerk = scene.servant("relay", "clerk")
        self.killer = Killer(scene.family(), self.chance)
        self.requeued = self.dropped = 0
        self.first = 0

    def storm(self, kills: int, lines: int, limit_s: float, on: Callable[[], bool]) -> None:
        """Lines and kills at once, until both are through or *on* says no."""
        scene = self.scene
        Path(scene.hush).unlink(missing_ok=True)
        each = -(-lines // len(self.people))
        for person in self.people:
            _, words, tries, ordered = PEOPLE[person.name]
            person.order(
                "say",
                targets=list(scene.targets),
                lines=each,
                first=self.first,
                words=list(words),
                tries=tries,
                ordered=ordered,
                pause_s=2 * _pause(kills, each),
                seed=self.chance.random(),
                until=scene.hush,
            )
        self.first += each
        for number, relay in enumerate(self.relays):
            words = FOLLOW if number == len(self.relays) - 1 else RELAY
            relay.order(
                "repeat",
                words=list(words),
                until=scene.hush,
                pause_s=0.05,
                seed=self.chance.random(),
            )
        # Small bites, so that hours pass for the lines that wait for a moment.
        until, wanted = time.monotonic() + limit_s, self.killer.total + kills
        while (more := wanted - self.killer.total) > 0 and time.monotonic() < until and on():
            self.killer.kill(min(more, 20), until - time.monotonic(), on)
            scene.let_time_pass()
        if not on():
            Path(scene.hush).touch()
        for person in self.people:
            person.answer()
        Path(scene.hush).touch()
        for relay in self.relays:
            relay.answer()

    def peace(self, limit_s: float = PEACE_S) -> int:
        """Passes without kills until nothing waits; how many lines are left over."""
        scene, until = self.scene, time.monotonic() + limit_s
        before: list[str] = []
        while True:
            scene.wait_until_quiet()
            scene.let_time_pass()
            self.clerk.order("once", words=list(RELAY))
            self.clerk.answer()
            left = [e for e in scene.lines(self.clerk) if e["state"] in OPEN_STATES]
            if not left or time.monotonic() > until:
                return len(left)
            now = sorted(f"{e['delivery_id']} {e['state']}" for e in left)
            if now == before:
                self._decide(left)
                time.sleep(0.1)
            before = now

    def _decide(self, left: list[dict[str, Any]]) -> None:
        """What a person does about lines of which zdo cannot know: look, then put them back."""
        scene = self.scene
        scene.wait_until_quiet()
        there = {own for name in scene.targets for own, _ in scene.texts_at(name)}
        for each in left:
            if each["state"] != "uncertain":
                continue
            own = each["delivery_id"]
            if own not in there:
                self.requeued += self._clerk_does("spool", "requeue", own, "--i-have-looked")
            elif not self._clerk_does("verify", own):
                self.dropped += self._clerk_does("spool", "drop", own)

    def _clerk_does(self, *words: str) -> bool:
        """Whether the command ended well."""
        self.clerk.order("once", words=list(words))
        return bool(self.clerk.answer()["status"] == 0)


def _pause(kills: int, lines: int) -> float:
    """How long a person waits between two lines, so that lines last as long as kills."""
    return min(0.12 * kills / max(lines, 1), 1.0)


def siege(
    *,
    kills: int,
    lines: int,
    seed: int,
    rounds: int = 1,
    tree: str | None = None,
    forgets: float = 0.0,
    carrier_ms: int = CARRIER_MS,
    limit_s: float = 600.0,
    enough: Callable[[Scene], bool] = lambda _: False,
) -> Toll:
    """What came of *kills* kills over *lines* lines; it ends early when *enough* is true.

    Makes this process the adopter of orphans: it wants one of its own.
    """
    family.adopt_orphans()
    began = time.monotonic()
    with Scene(targets=TARGETS, postboxes=POSTBOXES, tree=tree, forgets=forgets) as scene:
        Path(scene.claude + WAITS).write_text(str(carrier_ms), encoding="ascii")
        siege = Siege(scene, seed)
        left, stopped = 0, False
        for number in range(rounds):
            until = limit_s * (number + 1) / rounds - (time.monotonic() - began)
            more = kills // rounds + (number < kills % rounds)
            siege.storm(more, lines // rounds, until, lambda: not enough(scene))
            if stopped := enough(scene):
                break
            left = siege.peace()
        if not stopped:
            scene.let_days_pass()
            siege.peace()
        said, findings = scene.said(), scene.findings()
        if stopped:
            # Without peace at the end nothing is late yet.
            findings = replace(findings, lost=())
        return Toll(
            findings=findings,
            lines=len(said),
            promised=sum(each.acked for each in said),
            kills=dict(siege.killer.kills),
            carriers=scene.carriers(),
            requeued=siege.requeued,
            dropped=siege.dropped,
            left=left,
            folders=_folders(scene),
            statuses=dict(Counter(each.status for each in said)),
            broken=tuple(_broken(scene)),
            seconds=time.monotonic() - began,
        )


def _folders(scene: Scene) -> int:
    path = f"{scene.rig.state}/attempts"
    return len(os.listdir(path)) if os.path.isdir(path) else 0


def _broken(scene: Scene) -> list[str]:
    """The relays that ended neither by us nor with a class of their lines."""
    ends = [each for each in scene.complaints() if each["status"] not in RELAY_ENDS]
    return [f"{each['status']}: {each['said'][-300:]}" for each in ends]


def is_possible() -> bool:
    """Whether this machine can tell whom to kill."""
    return os.path.exists("/proc/self/stat") and family.is_possible()
