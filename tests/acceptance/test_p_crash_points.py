"""P2, moment by moment: somebody is killed at one exact place, and sound passes go on from there.

A copy of the packages kills its own process there, at the first time it comes by, with
SIGKILL as any other killer; the kills at random moments are in test_promises.py.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import ROOT, Rig
from tests.acceptance.saying import CONFIG, OTHER, lease_is_held, wait_for
from tests.torture.copies import Break, broken

if TYPE_CHECKING:
    from collections.abc import Iterator

U = "a0000022-0000-4000-8000-000000000022"
TWO = CONFIG + f'[targets.other]\nsession = "{U}"\n'
LINES = [("fable", "a"), ("other", "x"), ("fable", "b"), ("fable", "c")]

KILL = "__import__('os').kill(__import__('os').getpid(), 9)"
KILL_BOTH = f"__import__('os').kill(__import__('os').getppid(), 9); {KILL}"


def at(file: str, line: str, how: str = KILL) -> Break:
    """Whoever comes to *line* in *file* is killed before it."""
    blanks = line[: len(line) - len(line.lstrip())]
    return Break(file, line, f"{blanks}{how}\n{line}")


# What the relay does in one pass, in its order.
RELAY = {
    "the companions are laid out": at(
        "carrier/layout.py", "        made.append(folders[0] + ending)\n"
    ),
    "all is laid out": at("dispatch/rounds.py", "        _check(lease)\n"),
    "the claim is not committed": at(
        "dispatch/serve.py", "            keep.begun(link, journal.CLAIMED"
    ),
    "the claim is committed": at("dispatch/rounds.py", "    found = attempt("),
    "the run is over": at("dispatch/serve.py", "    keep.settle(station.database, house, settled"),
    "the verdicts are on disk": at(
        "dispatch/serve.py", "    _take_back(station, ready, settled)\n"
    ),
}
KEEPER = {
    "nothing is started": ("carrier/keeper.py", "        _attend(order, clock)\n"),
    "the carrier has no name": ("carrier/ward.py", "        self._name_on_disk()\n"),
    "the run is not told": ("carrier/keeper.py", "    return _leave(order, ward, end)\n"),
}
WRITTEN = at("carrier/visit.py", "        answers = self._door.listen(self._look)\n")
NOT_WRITTEN = at("carrier/visit.py", "            answer = self._door.speak(")
LOOKED_UP = at("dispatch/verify.py", "    binding = Binding(")


@pytest.fixture
def rig(own_rig) -> Iterator[Rig]:
    """A rig with two targets through one postbox."""
    own_rig.configure(TWO)
    yield own_rig
    own_rig.tree = str(ROOT)


class Doors:
    """The two targets, and the lines that wait for them."""

    def __init__(self, rig: Rig):
        self.rig = rig
        self.fable, self.other = rig.door(), rig.door(session_id=U, name="other")
        for target, line in LINES:
            assert 0 == rig.zdo("kiss", "--queue", target, line).exit

    def crash(self, *breaks: Break) -> None:
        """A pass of a copy that is killed at *breaks*, and the end of all that it started."""
        with broken(*breaks) as copy:
            self.rig.tree = copy
            self.rig.zdo("relay")
            self.rig.tree = str(ROOT)
            if os.path.isdir(f"{self.rig.state}/locks") and os.listdir(f"{self.rig.state}/locks"):
                wait_for(lambda: not lease_is_held(self.rig), "the end of the lease")

    def passes(self, times: int = 2) -> list[str]:
        """The states of the lines that are not over after so many sound passes."""
        for _ in range(times):
            self.rig.let_time_pass()
            self.rig.zdo("relay")
        listed = self.rig.zdo("spool", "list", "--json")
        return [each["state"] for each in listed.json["lines"]]

    def taken(self) -> tuple[list[str], list[str]]:
        """What came to each door."""
        return self.fable.lines(), self.other.lines()

    def are_served_once(self) -> None:
        """Every line is at its door, once, in order, and nothing waits."""
        assert [] == self.passes()
        assert (["a", "b", "c"], ["x"]) == self.taken()


def nothing_lies_about(rig: Rig) -> None:
    """Two days later no attempt's folder stands, and with it no copy of a line."""
    then = time.time() - 2 * 86_400
    for each in Path(rig.state, "attempts").iterdir():
        os.utime(each, (then, then))
    age(rig)
    rig.zdo("relay")
    assert [] == os.listdir(f"{rig.state}/attempts")


def age(rig: Rig) -> None:
    """The day of the last sweep is long ago."""
    import contextlib
    import sqlite3

    with contextlib.closing(sqlite3.connect(f"{rig.state}/zdo.db")) as link, link:
        link.execute("PRAGMA journal_mode=PERSIST")
        link.execute("UPDATE pulse SET pruned_at = 1.5")


@pytest.mark.parametrize("when", RELAY)
def test_p02_a_relay_that_is_killed_at_any_step_loses_and_doubles_nothing(rig, when):
    """P2: before the claim nothing happened, after it the next pass judges what was left."""
    doors = Doors(rig)

    doors.crash(RELAY[when])

    doors.are_served_once()
    nothing_lies_about(rig)


@pytest.mark.parametrize("when", KEEPER)
@pytest.mark.parametrize("how", [KILL, KILL_BOTH], ids=["alone", "with its relay"])
def test_p02_a_keeper_that_is_killed_at_any_step_loses_and_doubles_nothing(rig, when, how):
    """P2: alone or with the relay that waits for it; the carrier, if there is one, goes on."""
    doors = Doors(rig)

    doors.crash(at(*KEEPER[when], how))

    doors.are_served_once()
    nothing_lies_about(rig)


def test_p02_a_wrapper_that_is_killed_after_the_write_is_found_in_the_transcripts(rig):
    """P2: no receipt says that the lines are in; the look-up settles all four, none goes again."""
    doors = Doors(rig)

    doors.crash(WRITTEN)
    assert (["a", "b", "c"], ["x"]) == doors.taken()

    doors.are_served_once()
    nothing_lies_about(rig)


def test_p02_a_wrapper_that_is_killed_before_the_write_leaves_an_honest_doubt(rig):
    """P2: of the session whose permits it had nobody can know; others go; a person may decide."""
    doors = Doors(rig)

    doors.crash(NOT_WRITTEN)

    assert {"uncertain"} == set(doors.passes())
    assert ([], ["x"]) == doors.taken()
    for _ in LINES:
        listed = json.loads(rig.zdo("spool", "list", "--json").out)["lines"]
        doubted = [each["delivery_id"] for each in listed if each["state"] == "uncertain"]
        for delivery in doubted:
            assert 0 == rig.zdo("spool", "requeue", delivery, "--i-have-looked").exit
        doors.passes(1)
    doors.are_served_once()


@pytest.mark.parametrize("first", ["the claim is committed", "the run is over"])
def test_p02_who_is_killed_while_he_judges_is_judged_by_the_next(rig, first):
    """P2: a recovery that is killed after its look, before its word, changed nothing."""
    doors = Doors(rig)

    doors.crash(RELAY[first])
    doors.crash(LOOKED_UP)

    doors.are_served_once()
    nothing_lies_about(rig)


def test_p02_a_plain_kiss_killed_before_its_claim_leaves_nothing_for_ever(rig):
    """P2, K13: nobody will use its id again; two days later its folder and its line are gone."""
    door = rig.door()
    with broken(RELAY["all is laid out"]) as copy:
        rig.tree = copy
        assert -9 == rig.zdo("kiss", "fable", "never accepted").exit
        rig.tree = str(ROOT)
    rig.zdo("kiss", "--queue", "fable", "later")
    rig.zdo("relay")

    nothing_lies_about(rig)

    assert ["later"] == door.lines()


def test_p02_control_what_kills_here_does_kill(rig):
    """P2, control: the pass of the copy ended by SIGKILL, at the place that it names."""
    rig.door()
    rig.zdo("kiss", "--queue", "fable", "a")
    with broken(RELAY["the claim is committed"]) as copy:
        rig.tree = copy
        assert -9 == rig.zdo("relay").exit
        rig.tree = str(ROOT)
    listed = rig.zdo("spool", "list", "--json").json["lines"]
    assert ["claimed"] == [each["state"] for each in listed]
    assert OTHER not in os.listdir(f"{rig.state}/locks")
