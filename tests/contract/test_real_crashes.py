"""What is true after something died or froze in the middle of a kiss.  Only by `make contract`."""

from __future__ import annotations

import os
import signal
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.contract.installed import WAIT
from tests.contract.sessions import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.conftest import Scene
    from tests.contract.sessions import Terminal

pytestmark = pytest.mark.contract


@contextmanager
def frozen(session: Terminal) -> Iterator[None]:
    """*session* takes no breath: its door still accepts, and nobody reads."""
    os.kill(session.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(session.pid, signal.SIGCONT)


def carrier_of(scene: Scene) -> int:
    """The pid of the carrier, as the real binary registers it while it runs."""

    def look() -> int | None:
        rows = scene.rig.rows().items()
        return next((pid for pid, row in rows if row["sessionId"] == scene.zdo.postbox), None)

    return eventually("the carrier is registered", look)


def test_a_frozen_target_is_a_doubt_that_the_transcript_settles(scene: Scene) -> None:
    """The line is in the door and nobody read it: open, until verify sees it surface."""
    target = scene.target("frozen")
    with frozen(target):
        kissed = scene.zdo.kiss("frozen", scene.line)

    scene.delivered("target frozen", kissed, target, (3, "unknown", "none", 0))
    eventually("verify sees it", lambda: scene.zdo.verify(kissed.delivery)["proof"] == "surfaced")


def test_a_carrier_killed_at_the_door_leaves_no_doubt(scene: Scene) -> None:
    """Its hook lives on and finishes; the next kiss is not kept away by the row it left."""
    target = scene.target("patient")
    with frozen(target):
        call = scene.zdo.call("patient", scene.line)
        carrier = carrier_of(scene)
        eventually("the hook is at the door", scene.rig.ears)
        os.kill(carrier, signal.SIGKILL)

    kissed = call.result()

    scene.delivered("carrier killed at the door", kissed, target, (0, "surfaced", "surfaced", 0))
    assert carrier in scene.rig.rows()
    scene.rig.until(target, "idle")
    again = scene.zdo.kiss("patient", f"{scene.line} again")
    assert again.told == (0, "delivered-start", "surfaced", 0), again


def test_a_dispatcher_killed_before_the_write_loses_nothing(scene: Scene) -> None:
    """Keeper and carrier go on; the line arrives once, and verify says so."""
    target = scene.target("orphan")
    delivery = str(uuid.uuid4())
    shim = scene.zdo.shim(WAIT)
    call = scene.zdo.call("orphan", scene.line, "--key", delivery, shim=shim)
    shim.arrived()
    call.kill()
    shim.let_go()

    scene.once(target)

    eventually("verify sees it", lambda: scene.zdo.verify(delivery)["proof"] == "surfaced")
