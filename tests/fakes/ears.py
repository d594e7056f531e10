"""The ears that stay behind held lines: found, looked into, sent away."""

from __future__ import annotations

import os
import signal
import sys

from carrier.argv import wrapper_command
from carrier.family import signal_each
from carrier.named import still_runs
from carrier.proof import EAR
from dispatch.rig.door import FakeDoor
from registry.processes import Processes
from tests.fakes.runs import ENV, Stage, runs, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def target_of(stage: Stage, **script: object) -> FakeDoor:
    """A session for the lines of *stage*, whose carrier runs the real wrapper from now on."""
    stage.hook(wrapper_command(sys.executable, ROOT))
    return FakeDoor(f"{stage.folder}/claude-config", **script)


def env_of(stage: Stage) -> dict[str, str]:
    """What the carrier of *stage* needs in its environment to run the real wrapper."""
    return ENV | {"ZDO_CARRIER_ATTEMPT": stage.attempt_dir, "ZDO_CARRIER_DOOR_TARGET": "fable"}


def ear_of(folder: str) -> int | None:
    """The process that stays for the run whose lead is *folder*, if one does."""
    return still_runs(f"{folder}/{EAR}", Processes())


def the_ear_of(folder: str) -> int:
    """The process that stays for the run whose lead is *folder*; an error if none comes."""
    pid: int = wait_for(lambda: ear_of(folder))
    return pid


def is_gone(pid: int, seconds: float = 10.0) -> bool:
    """True as soon as the process *pid* is over; an error when it stays."""
    wait_for(lambda: not runs(pid), seconds)
    return True


def send_away(pid: int) -> None:
    """End the ear *pid* as a person may: at its very beginning it does not heed yet."""

    def gone() -> bool:
        signal_each([pid], signal.SIGTERM)
        return not runs(pid)

    wait_for(gone)


def descriptors(pid: int) -> dict[int, str]:
    """What *pid* has open, by number; sockets and pipes without their numbers."""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            shown = os.readlink(f"/proc/{pid}/fd/{number}")
        except FileNotFoundError:
            continue  # the listing's own
        found[int(number)] = shown.partition(":[")[0]
    return found


def started_with(text: str) -> list[int]:
    """The living processes with *text* in their environment, but for this one."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and runs(int(name)):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    shown = file.read()
            except OSError:
                continue  # it ended meanwhile
            if text.encode() in shown:
                found.append(int(name))
    return found


def is_zombie(pid: int) -> bool:
    """Whether *pid* is over and nobody has reaped it."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"Z"
    except OSError:
        return False
