"""The wrapper is two processes: whichever dies at whatever moment, the line's story is true."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import Rig
from tests.acceptance.saying import CONFIG, answered, spool, wait_for
from tests.fakes.ears import ear_of, send_away, started_with
from tests.torture.copies import Break, broken

if TYPE_CHECKING:
    from collections.abc import Iterator

KILLED = "os.kill(os.getpid(), 9)"
IN_MAIN = "            os.close(told)\n            said"
AT_PERMIT = "    envelope = take(attempt_dir)"
AT_DOOR = "        tour.listen()\n"
AT_END = '    done = "wrote" if receipt.wrote'
TELLING = '        os.write(told, said.encode("ascii", "replace"))\n'


def dies(file: str, before: str) -> Break:
    """A wrapper that is killed before it comes to the text *before* in *file*."""
    indent = before[: len(before) - len(before.lstrip())]
    kill = f"{indent}import os; {KILLED}\n"
    return Break(file, before, kill + before)


# The child has the permit by then.
LATER = (
    '            while not os.path.exists(os.environ["ZDO_CARRIER_ATTEMPT"] + "/intent"): pass\n'
)
ALONE = Break("carrier/wrapper.py", IN_MAIN, f"{LATER}            {KILLED}\n{IN_MAIN}")
REFUSED = Break(
    "carrier/wrapper.py",
    "            os.fork() or",
    '            raise BlockingIOError(11, "Resource temporarily unavailable")\n'
    "            os.fork() or",
)

# However slow the target is, its transcript has the line by then.
AT_A_DOOR_THAT_ANSWERED = Break(
    "carrier/knock.py",
    AT_DOOR,
    '        while set(tour._look().values()) != {"surfaced"}: pass\n'
    f"        import os; {KILLED}\n{AT_DOOR}",
)

# What breaks, the class and the exit of the kiss, and how often the line is in the target.
DEATHS = {
    "no second process": (REFUSED, "wrapper-not-run", 76, 0),
    "child, before the permit": (dies("carrier/knock.py", AT_PERMIT), "wrapper-not-run", 76, 0),
    "child, at the door": (AT_A_DOOR_THAT_ANSWERED, "surfaced", 0, 1),
    "child, with its receipt": (dies("carrier/knock.py", AT_END), "delivered-start", 0, 1),
    "child, before its word": (dies("carrier/wrapper.py", TELLING), "delivered-start", 0, 1),
    "parent, at the door": (ALONE, "delivered-start", 0, 1),
}


@contextlib.contextmanager
def rig_with(*breaks: Break) -> Iterator[Rig]:
    """A rig whose zdo has *breaks*; no process of it is left at the end."""
    with broken(*breaks) as tree, Rig(tree) as rig:
        rig.configure(CONFIG)
        yield rig
        rig.close_doors()
        wait_for(lambda: not started_with(rig.root), "the end of every process")


@pytest.mark.parametrize("death", DEATHS)
def test_a_death_of_the_wrapper_is_told_as_it_was(death):
    """Blocked always; untouched, delivered or found in the transcript, and never twice."""
    broke, name, status, times = DEATHS[death]
    with rig_with(broke) as rig:
        door = rig.door()

        told = answered(rig.zdo("kiss", "--json", "fable", "one"))

        assert (name, status) == (told["class"], told["exit"]), told
        assert ["one"] * times == door.lines()
        [hooks] = [one["runs"] for one in rig.log() if one["event"] == "hooks"]
        assert all("block" in run["stdout"] or run["status"] == 2 for run in hooks)
        assert [] == spool(rig)


def test_a_child_that_died_at_a_silent_door_is_a_doubt():
    """Nothing shows whether the line is in: it stays open, and only a person repeats it."""
    with rig_with(dies("carrier/knock.py", AT_DOOR)) as rig:
        door = rig.door(accept="drop")

        said = rig.zdo("kiss", "--json", "fable", "one")

        assert (3, "receipt-missing") == (said.exit, said.json["class"])
        assert ["one"] == door.lines()
        assert ["uncertain"] == [line["state"] for line in spool(rig)]


@pytest.mark.parametrize("death", ["child, before its word", "parent, at the door"])
def test_a_held_line_is_held_however_the_wrapper_died(death):
    """The receipt says so; the ear of a killed parent stays, one that is killed does not."""
    with rig_with(DEATHS[death][0]) as rig:
        rig.door(accept="hold")

        said = rig.zdo("kiss", "--json", "fable", "one")

        assert (3, "door-held") == (said.exit, said.json["class"])
        ear = ear_of(f"{rig.state}/attempts/{said.json['delivery_id']}.1")
        assert (death == "parent, at the door") == (ear is not None)
        if ear is not None:
            send_away(ear)
