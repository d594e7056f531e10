"""P7: two runs of one postbox never overlap, whatever somebody does to its lock file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import P, Said
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    OTHER,
    SHELL,
    at_gate,
    delivered,
    journal,
    open_gate,
    passed,
    queued,
    refused,
    shell_claude,
    shell_runs,
    wait_for,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from dispatch.rig.rig import Rig

Q = "90000000-0000-4000-8000-000000000001"
TWO = f'{CONFIG}\n[targets.other]\nsession = "{OTHER}"\ncarrier_session = "{Q}"\n'


def unlinked(rig: Rig) -> None:
    """The lock file is gone."""
    os.unlink(f"{rig.state}/locks/{P}.lock")


def replaced(rig: Rig) -> None:
    """Another file stands in its place."""
    path = Path(f"{rig.state}/locks/{P}.lock")
    path.with_suffix(".fresh").touch(mode=0o600)
    path.with_suffix(".fresh").rename(path)


@contextlib.contextmanager
def gated(rig: Rig, gate: str) -> Iterator[subprocess.Popen[str]]:
    """A kiss whose carrier waits at *gate*: before its wrapper, or after it."""
    program = shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "one")
    if gate == "after":
        open_gate(rig, "before")
    at_gate(rig, gate)
    shell_claude(rig, SHELL % "")
    assert program == f"{rig.bin}/claude"
    try:
        yield kiss
    finally:
        for each in ("before", "after"):
            open_gate(rig, each)
        kiss.communicate()


@pytest.fixture
def rig(own_rig: Rig) -> Rig:
    """A rig of the test's own, with two targets, each through a postbox of its own."""
    own_rig.configure(TWO)
    return own_rig


@pytest.mark.parametrize("gate", ["before", "after"])
@pytest.mark.parametrize("spoil", [unlinked, replaced])
def test_p07_a_second_kiss_is_told_that_the_postbox_is_busy(rig, spoil, gate):
    """75, and nothing is started; when the first is over the next one goes."""
    door = rig.door()
    with gated(rig, gate) as first:
        spoil(rig)

        said = rig.zdo("kiss", "--json", "fable", "two")

        refused(rig, said, "carrier-busy", 75)
        assert 0 == shell_runs(rig)
        for each in ("before", "after"):
            open_gate(rig, each)
        out, err = first.communicate()
        assert ("delivered-start", 0) == (json.loads(out)["class"], first.returncode), err
    delivered(rig.zdo("kiss", "--json", "fable", "three"))
    assert ["one", "three"] == door.lines()
    assert 1 == shell_runs(rig)


@pytest.mark.parametrize("gate", ["before", "after"])
@pytest.mark.parametrize("spoil", [unlinked, replaced])
def test_p07_a_pass_takes_nothing_from_a_carrier_that_runs(rig, spoil, gate):
    """Neither its line, which is under way, nor its postbox; the other postbox is served."""
    doors = rig.door(), rig.door(session_id=OTHER, name="other")
    queued(rig, "fable", "two")
    queued(rig, "other", "three")
    with gated(rig, gate) as first:
        spoil(rig)

        passed(rig.zdo("relay", "--json"), runs=1, delivered=1, recovered=0, left=1)

        assert 1 == shell_runs(rig)
        for each in ("before", "after"):
            open_gate(rig, each)
        said = json.loads(first.communicate()[0])
        assert ("delivered-start", 0) == (said["class"], said["exit"])
        assert [None, "delivered-start"] == journal(rig, said["delivery_id"])
    passed(rig.zdo("relay", "--json"), runs=1, delivered=1, left=0)
    assert [["one", "two"], ["three"]] == [door.lines() for door in doors]


@pytest.mark.parametrize("gate", ["before", "after"])
def test_p07_a_look_at_a_line_under_way_leaves_it_alone(rig, gate):
    """`zdo verify` gets the new lock, and knows better than to judge."""
    rig.door()
    with gated(rig, gate) as first:
        [folder] = os.listdir(f"{rig.state}/attempts")
        unlinked(rig)

        said = rig.zdo("verify", "--json", folder.partition(".")[0])

        assert "unknown" == said.json["class"]
        assert "a carrier still drives the postbox" in said.json["reason"]
        assert [folder] == os.listdir(f"{rig.state}/attempts")
        for each in ("before", "after"):
            open_gate(rig, each)
        assert "delivered-start" == json.loads(first.communicate()[0])["class"]


def test_p07_another_postbox_is_not_affected(rig):
    """Its kiss goes while the first one's carrier still runs."""
    rig.door()
    other = rig.door(session_id=OTHER, name="other")
    with gated(rig, "before"):
        unlinked(rig)

        said: Said = rig.zdo("kiss", "--json", "other", "two")

        delivered(said)
        assert ["two"] == other.lines()


def test_p07_a_relay_that_lost_its_keeper_lets_the_postbox_go(rig):
    """What became of that line nobody knows; its folder stays, and keeps nobody waiting."""
    door = rig.door(accept="drop")
    shell_claude(rig, GATED)
    (delivery,) = queued(rig, "fable", "one")
    relay = rig.start("relay", "--follow")
    try:
        open_gate(rig, "before")
        carrier = at_gate(rig, "after")
        shell_claude(rig, SHELL % "")
        os.kill(parent_of(carrier), signal.SIGKILL)
        wait_for(lambda: journal(rig, delivery)[-1] == "unknown", "the verdict")
        assert not os.path.exists(f"{rig.state}/attempts/{delivery}.1/run.json")

        delivered(rig.zdo("kiss", "--json", "fable", "two"))
    finally:
        relay.send_signal(signal.SIGINT)
        relay.communicate()
    assert ["one", "two"] == door.lines()


def parent_of(pid: int) -> int:
    """Whose child *pid* is."""
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
