"""P8: a carrier that will not end is ended with all it started, and its lines are looked up."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.saying import CONFIG, lease_is_held, shell_claude
from tests.fakes.runs import runs

if TYPE_CHECKING:
    from dispatch.rig.rig import Rig

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere a child that leaves the group is not found again"
)

DEADLINE_S = 1.0
GRACE_S = 5.0
LINES = [f"line {number}" for number in range(4)]
STRAY = {"s": 120, "setsid": True, "ignore_term": True}

# Closes what it was given to write on, then hangs, deaf; its child in a session of its own too.
CLOSED = """\
#!/usr/bin/env python3
import os, signal, subprocess, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
note = open(__file__ + ".pids", "a")
print(os.getpid(), file=note, flush=True)
if %(hook)r:
    subprocess.run(["sh", "-c", os.environ["ZDO_CARRIER_WRAPPER"]], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
child = subprocess.Popen(["sleep", "120"], start_new_session=True)
print(child.pid, file=note, flush=True)
os.close(1)
os.close(2)
time.sleep(120)
"""


@pytest.fixture
def rig(own_rig) -> Rig:
    """A rig whose carriers have a second."""
    own_rig.configure(CONFIG.replace("timeout_s = 20", f"timeout_s = {DEADLINE_S}"))
    own_rig.env["PATH"] = f"{own_rig.bin}:{os.path.dirname(sys.executable)}:/usr/bin:/bin"
    return own_rig


def queue(rig: Rig) -> None:
    """LINES wait for the relay."""
    for line in LINES:
        assert 0 == rig.zdo("kiss", "--queue", "fable", line).exit


def relay(rig: Rig) -> tuple[dict, float]:
    """What one pass said, and how long it took."""
    began = time.monotonic()
    said = rig.zdo("relay", "--json", "--for", "0.5")
    return json.loads(said.out), time.monotonic() - began


def states(rig: Rig) -> list[str]:
    """The states of the lines that are not over."""
    listed = rig.zdo("spool", "list", "--json")
    return [each["state"] for each in listed.json["lines"]]


def pids(rig: Rig) -> list[int]:
    """Everybody that the fake carrier was and started."""
    found = [entry["pid"] for entry in rig.log() if entry["event"] in ("start", "stray")]
    path = f"{rig.bin}/claude.pids"
    if os.path.exists(path):
        with open(path, encoding="ascii") as file:
            found += map(int, file)
    return found


def nobody_is_left(rig: Rig, seconds: float) -> None:
    """All descendants were gone in time, and the postbox is free."""
    started = pids(rig)
    assert len(started) >= 1
    assert [] == [pid for pid in started if runs(pid)]
    assert not lease_is_held(rig)
    assert seconds < DEADLINE_S + GRACE_S


@pytest.mark.parametrize(
    "behaviour",
    [
        {"ignore_term": True, "stray": STRAY},
        {"ignore_term": True, "flood_stdout": 6 << 20, "flood_stderr": 1 << 20, "after_s": 60.0},
        {"stray": STRAY | {"double": True, "holds_stdout": True}},
    ],
)
def test_p08_a_stuck_carrier_whose_lines_are_in_costs_its_deadline_alone(rig, behaviour):
    """P8: deaf, with a detached child, or with full pipes: gone in time, each line settled once."""
    door = rig.door()
    rig.install_claude(**({"hang_s": 60.0} | behaviour))
    queue(rig)

    told, seconds = relay(rig)

    nobody_is_left(rig, seconds)
    assert (LINES, len(LINES), []) == (door.lines(), told["delivered"], states(rig))


@pytest.mark.parametrize("behaviour", [{"before_s": 60.0}, {"hook": "none", "hang_s": 60.0}])
def test_p08_lines_of_a_stuck_carrier_that_touched_no_door_are_due_again(rig, behaviour):
    """P8: their permits were withdrawn, so a later pass delivers them, once and in order."""
    door = rig.door()
    rig.install_claude(ignore_term=True, stray=STRAY, **behaviour)
    queue(rig)

    _, seconds = relay(rig)

    nobody_is_left(rig, seconds)
    assert (["queued"] * len(LINES), []) == (states(rig), door.calls())
    rig.install_claude()
    rig.let_time_pass()
    relay(rig)
    assert (LINES, []) == (door.lines(), states(rig))


def test_p08_lines_of_a_stuck_carrier_that_nobody_can_prove_stay_uncertain(rig):
    """P8: they are at a door that shows nothing: no later pass writes them again."""
    door = rig.door(accept="bare", eof_after=None)
    rig.install_claude(ignore_term=True, stray=STRAY, hang_s=60.0)
    queue(rig)
    relay(rig)
    first = door.lines()

    rig.install_claude()
    for _ in range(3):
        rig.let_time_pass()
        relay(rig)

    assert (LINES, LINES) == (first, door.lines())
    assert {"uncertain"} == set(states(rig))


@pytest.mark.parametrize("hook", [True, False])
def test_p08_a_carrier_that_closes_its_streams_and_hangs_is_ended(rig, hook):
    """P8: the end of its pipes is not its end; it and its child are gone in time."""
    door = rig.door()
    shell_claude(rig, CLOSED % {"hook": hook})
    queue(rig)

    _, seconds = relay(rig)

    nobody_is_left(rig, seconds)
    assert 2 == len(pids(rig))
    assert (LINES if hook else []) == door.lines()
    assert ([] if hook else ["queued"] * len(LINES)) == states(rig)
