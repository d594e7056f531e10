"""P9: an outcome that nobody knows is looked up, never guessed, and never written twice."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import Rig
from tests.acceptance.saying import CONFIG as PLAIN
from tests.acceptance.saying import (
    GATED,
    OTHER,
    SHELL,
    at_gate,
    lease_is_held,
    open_gate,
    shell_claude,
    shell_runs,
    wait_for,
)
from tests.torture.copies import broken
from tests.torture.rigs import BLIND_RETRY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

U = "a0000022-0000-4000-8000-000000000022"
CONFIG = PLAIN + f'[targets.other]\nsession = "{U}"\ncarrier_session = "{OTHER}"\n'
PASSES = 2


@pytest.fixture
def rig(own_rig) -> Iterator[Rig]:
    """A rig of the test's own with a second target; whatever is left over in it is ended."""
    own_rig.configure(CONFIG)
    shell_claude(own_rig, GATED)
    yield own_rig
    for gate in ("before", "after"):
        open_gate(own_rig, gate)


def queue(rig: Rig, *lines: str, target: str = "fable") -> None:
    """*lines* wait for the relay."""
    for line in lines:
        assert 0 == rig.zdo("kiss", "--queue", target, line).exit


def passes(rig: Rig, times: int = PASSES) -> list[dict]:
    """What so many passes said, with hours between them; no claude is gated any more."""
    shell_claude(rig, SHELL % "")
    told = []
    for _ in range(times):
        rig.let_time_pass()
        told.append(json.loads(rig.zdo("relay", "--json").out))
    return told


def listed(rig: Rig) -> list[tuple[str, str]]:
    """Target and state of each line that is not over."""
    lines = rig.zdo("spool", "list", "--json").json["lines"]
    return [(each["target"], each["state"]) for each in lines]


def only_id(rig: Rig) -> str:
    """The delivery id of the first line that is not over."""
    lines = rig.zdo("spool", "list", "--json").json["lines"]
    return str(lines[0]["delivery_id"])


def parent(pid: int) -> int:
    """The parent of *pid*."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def is_named(rig: Rig) -> bool:
    """Whether the keeper has named its carrier on disk; killed earlier, nobody would end it."""
    return any(Path(rig.state, "attempts").glob("*/carrier"))


def kill(rig: Rig, relay: subprocess.Popen[str], who: str, carrier: int) -> None:
    """*who* are gone by SIGKILL, the pass is over, and the lease is free."""
    wait_for(lambda: is_named(rig), "the carrier's name on disk")
    keeper = parent(carrier)
    pids = {"relay": relay.pid, "keeper": keeper, "carrier": carrier}
    for name in who.split():
        os.kill(pids[name], signal.SIGKILL)
    if "carrier" not in who and "keeper" not in who:
        for gate in ("before", "after"):
            open_gate(rig, gate)
    relay.communicate(timeout=30)
    wait_for(lambda: not lease_is_held(rig), "the end of the lease")


def killed_before_the_write(rig: Rig, who: str) -> None:
    """A pass in which *who* were killed when the carrier had not started the wrapper."""
    relay = rig.start("relay")
    kill(rig, relay, who, at_gate(rig, "before"))


def killed_after_the_write(rig: Rig, who: str) -> None:
    """A pass in which *who* were killed when the lines were at the door."""
    relay = rig.start("relay")
    at_gate(rig, "before")
    open_gate(rig, "before")
    kill(rig, relay, who, at_gate(rig, "after"))


WHO = ("carrier", "relay", "relay carrier", "keeper", "relay keeper carrier")


@pytest.mark.parametrize("who", WHO)
def test_p09_killed_before_the_write_the_lines_go_once(rig, who):
    """P9: the permits say that the door was not touched; each line comes once, in order."""
    door = rig.door()
    queue(rig, "a", "b", "c")

    killed_before_the_write(rig, who)
    passes(rig)

    assert (["a", "b", "c"], []) == (door.lines(), listed(rig))


@pytest.mark.parametrize("who", WHO)
def test_p09_killed_after_the_write_the_look_up_settles_the_lines(rig, who):
    """P9: the transcript shows them: no second run, and the next line goes after them."""
    door = rig.door()
    queue(rig, "a", "b")

    killed_after_the_write(rig, who)
    passes(rig)
    assert (["a", "b"], [], 0) == (door.lines(), listed(rig), shell_runs(rig))

    queue(rig, "c")
    passes(rig, 1)
    assert (["a", "b", "c"], []) == (door.lines(), listed(rig))


@pytest.mark.parametrize("who", ["carrier", "relay carrier", "relay keeper carrier"])
def test_p09_what_no_transcript_shows_stays_uncertain_and_holds_its_target_back(rig, who):
    """P9: no pass writes it again; lines behind it wait, other targets do not."""
    door, other = rig.door(accept="bare"), rig.door(session_id=U, name="other")
    queue(rig, "a")
    killed_after_the_write(rig, who)
    queue(rig, "b")
    queue(rig, "x", target="other")

    passes(rig)

    assert (["a"], ["x"]) == (door.lines(), other.lines())
    assert [("fable", "uncertain"), ("fable", "queued")] == listed(rig)


def test_p09_what_surfaces_late_is_found_by_a_later_pass(rig):
    """P9: held back as long as it is uncertain; once the transcript shows it the next line goes."""
    door = rig.door(accept="surface", surface_after=None)
    queue(rig, "a")
    killed_after_the_write(rig, "relay keeper carrier")
    queue(rig, "b")
    passes(rig, 1)
    assert ("fable", "queued") in listed(rig)
    assert ["a"] == door.lines()
    own = only_id(rig)

    surface_now(rig, own, "a")
    door.change(surface_after=0.0)
    passes(rig, 2)

    assert (["a", "b"], []) == (door.lines(), listed(rig))
    assert "surfaced" == rig.zdo("verify", "--json", own).json["class"]


def surface_now(rig: Rig, own: str, text: str) -> None:
    """The target's transcript has *text* in the model's input."""
    from dispatch.rig.script import T
    from tests.acceptance.saying import peer, transcript_of

    transcript_of(rig, T).surface(text, peer(own))


@pytest.mark.parametrize("then", ["denied", "expired", None])
@pytest.mark.parametrize("after", [0.0, 0.3])
def test_p09_a_held_line_is_never_written_again(rig, then, after):
    """P9: held, then denied or expired or neither, in time or too late to be heard: once."""
    door = rig.door(accept="hold", hold_then=then, hold_after=after)
    queue(rig, "a")
    for gate in ("before", "after"):
        open_gate(rig, gate)
    rig.zdo("relay")
    over = time.monotonic() + 2 * after

    passes(rig)
    wait_for(lambda: time.monotonic() > over, "the owner's decision")
    passes(rig)

    assert (["a"], 0) == (door.lines(), shell_runs(rig))
    assert ("fable", "queued") not in listed(rig)


def test_p09_a_held_line_that_is_approved_is_found(rig):
    """P9: approved after the attempt was over; the transcript tells a later pass."""
    door = rig.door(accept="hold", hold_then="delivered", hold_after=0.5)
    queue(rig, "a")
    for gate in ("before", "after"):
        open_gate(rig, gate)
    rig.zdo("relay")
    wait_for(lambda: any("msg_id" in str(row) for row in door.rows()), "the approval")

    passes(rig, 2)

    assert (["a"], [], 0) == (door.lines(), listed(rig), shell_runs(rig))


def test_p09_a_person_who_has_looked_may_put_it_back_once(rig):
    """P9: `requeue --i-have-looked` is the only way; without the words it is refused."""
    door = rig.door(accept="bare")
    queue(rig, "a")
    killed_after_the_write(rig, "relay keeper carrier")
    passes(rig, 1)
    wait_for(lambda: [("fable", "uncertain")] == settle(rig), "the doubt")
    own = only_id(rig)

    refused = rig.zdo("spool", "requeue", own)
    assert refused.exit != 0
    assert ["a"] == door.lines()

    door.change(accept="surface")
    assert 0 == rig.zdo("spool", "requeue", own, "--i-have-looked").exit
    passes(rig, 2)
    assert (["a", "a"], []) == (door.lines(), listed(rig))


def settle(rig: Rig) -> list[tuple[str, str]]:
    """The states after one more pass."""
    passes(rig, 1)
    return listed(rig)


def test_p09_control_a_blind_retry_writes_twice():
    """P9, control: without look-up and permit check the same kill puts the line in twice."""
    with broken(*BLIND_RETRY) as copy, Rig(copy) as rig:
        rig.configure(CONFIG)
        shell_claude(rig, GATED)
        door = rig.door(accept="bare")
        queue(rig, "a")
        killed_after_the_write(rig, "relay keeper carrier")

        passes(rig)

        assert door.lines().count("a") > 1
