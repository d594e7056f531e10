"""The queue and its relay against real sessions of Claude Code.  Only by `make contract`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contract.sessions import eventually
from tests.fakes.messages_script import Rule, use

if TYPE_CHECKING:
    from tests.contract.conftest import Scene
    from tests.contract.sessions import Json, Terminal

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

BUSY = "until [ -e let-go ]; do sleep 0.1; done"
BYPASS = ("--permission-mode", "bypassPermissions")
DOWN = "\x1b[B"  # from the preselected no to the yes
# The owner's patience with a dialog, which is 300 s when nothing says otherwise.
IMPATIENT = {"CLAUDE_CODE_USER_DIALOG_TIMEOUT_MS": "4000"}


@pytest.fixture(autouse=True)
def _nothing_left(scene: Scene) -> None:
    """What other tests left is over: a pass says the worst of all that it finds."""
    scene.zdo.run("verify", "--open")
    for line in json.loads(scene.zdo.run("spool", "list", "--json")[1])["lines"]:
        scene.zdo.run("spool", "drop", line["delivery_id"])
    # One finds out what became of targets that have ended, the next has nothing to say.
    eventually("a pass that finds nothing", lambda: scene.zdo.relay()["exit"] == 0)


def queued(scene: Scene, address: str, count: int) -> list[str]:
    """The delivery ids of *count* lines to *address*, in their order."""
    return [scene.zdo.queue(address, f"{scene.line} {address} {n}") for n in range(count)]


def surfaced(scene: Scene, session: Terminal) -> list[str]:
    """The ids of all lines in the model input of *session*, in their order."""
    return scene.rig.surfaced(scene.rig.session_id(session))


def note(scene: Scene, scenario: str, told: Json, proof: str) -> None:
    """A row of the table about one pass, or about several."""
    said = f"{told['delivered']} delivered, {told['open']} open, {told['runs']} runs"
    asked = scene.zdo.asked_by(scene.zdo.postbox)
    scene.add(scenario, said, proof, str(asked), "-")


def test_fifty_lines_go_to_an_idle_and_a_busy_target_in_one_run(scene: Scene) -> None:
    """25 lines each, in order, each once, all in the model's input; not one request of ours."""
    before = scene.zdo.asked_by(scene.zdo.postbox)
    idle, busy = scene.target("idle25"), scene.target("busy25")
    scene.rig.api.script(Rule(use("Bash", {"command": BUSY}), says="stay busy", times=1))
    busy.enter("stay busy")
    scene.rig.until(busy, "busy")
    sent = {"idle25": queued(scene, "idle25", 25), "busy25": queued(scene, "busy25", 25)}

    told = scene.zdo.relay()

    note(scene, "25 lines to an idle, 25 to a busy target", told, "surfaced")
    assert (0, 1, 50, 0) == (told["exit"], told["runs"], told["delivered"], told["left"])
    assert sent["idle25"] == eventually(
        "25 at the idle one", lambda: s if len(s := surfaced(scene, idle)) == 25 else None
    )
    assert surfaced(scene, busy) == []
    Path(busy.cwd, "let-go").touch()
    assert sent["busy25"] == eventually(
        "25 at the busy one", lambda: s if len(s := surfaced(scene, busy)) == 25 else None
    )
    again = scene.zdo.relay()
    assert (25, 0) == (again["regraded"], again["runs"])
    states = {line["state"] for line in lines_of(scene, *sent["idle25"], *sent["busy25"])}
    assert {"surfaced", "delivered-start"} >= states
    assert scene.zdo.run("verify", "--open", "--json")[0] == 0
    assert before == scene.zdo.asked_by(scene.zdo.postbox)


def lines_of(scene: Scene, *deliveries: str) -> list[Json]:
    """The present verdict on each of *deliveries*."""
    return [scene.zdo.verify(delivery) for delivery in deliveries]


def test_forty_five_lines_arrive_at_the_receivers_pace(scene: Scene) -> None:
    """30 at once, the others a minute later: all arrive, in order, and none is dropped."""
    target = scene.target("many")
    sent = queued(scene, "many", 45)
    first = scene.zdo.relay()
    assert (1, 30, 15) == (first["runs"], first["delivered"], first["left"])
    passes, end = [first], time.monotonic() + 100

    while passes[-1]["left"] and time.monotonic() < end:
        time.sleep(5)
        passes.append(scene.zdo.relay())

    runs = sum(told["runs"] for told in passes)
    total = {"delivered": sum(t["delivered"] for t in passes), "open": 0, "runs": runs}
    note(scene, "45 lines to one target", total, "surfaced")
    assert (45, 0, 2) == (total["delivered"], passes[-1]["left"], runs)
    assert sent == eventually(
        "45 at the target", lambda: s if len(s := surfaced(scene, target)) == 45 else None
    )
    assert {"delivered-start", "surfaced"} >= {one["class"] for one in lines_of(scene, *sent)}


def test_a_held_line_that_nobody_approves_is_found_expired_by_a_later_pass(scene: Scene) -> None:
    """Held first, and that is said; then expired, by what the target told afterwards."""
    scene.target("guarded", *BYPASS, **IMPATIENT)
    delivery = scene.zdo.queue("guarded", scene.line)

    held = scene.zdo.relay()
    note(scene, "queued, held by a bypass target", held, "written")
    assert (3, "door-held", 1) == (held["exit"], held["class"], held["open"])
    passes: list[Json] = []

    def expired() -> bool:
        time.sleep(1)
        passes.append(scene.zdo.relay())
        return bool(passes[-1]["dead"])

    eventually("a pass that finds it expired", expired, within=30)

    note(scene, "the same, a few seconds later", passes[-1] | {"delivered": 0}, "expired")
    assert "expired" == scene.zdo.verify(delivery)["class"]
    assert (69, "expired") == (passes[-1]["exit"], passes[-1]["class"])
    eventually("the ear is gone", lambda: not scene.rig.ears())
    scene.never()


def test_a_held_line_that_is_denied_is_found_denied(scene: Scene) -> None:
    """The owner's no reaches whoever asks later."""
    guarded = scene.target("denier", *BYPASS)
    delivery = scene.zdo.queue("denier", scene.line)
    assert "door-held" == scene.zdo.relay()["class"]
    scene.rig.until(guarded, "waiting")

    guarded.press("\r")

    eventually("denied", lambda: scene.zdo.verify(delivery)["class"] == "door-denied")
    scene.never()


def test_a_held_line_that_is_approved_is_found_surfaced(scene: Scene) -> None:
    """The owner's yes is in the transcript, and the ear does not outstay it."""
    guarded = scene.target("approver", *BYPASS)
    delivery = scene.zdo.queue("approver", scene.line)
    assert "door-held" == scene.zdo.relay()["class"]
    scene.rig.until(guarded, "waiting")

    guarded.press(DOWN)
    time.sleep(0.3)
    guarded.press("\r")

    eventually("surfaced", lambda: scene.zdo.verify(delivery)["class"] == "surfaced")
    assert [delivery] == surfaced(scene, guarded)
    scene.once(guarded)
    eventually("the ear is gone", lambda: not scene.rig.ears())


def test_a_held_line_dies_with_its_target(scene: Scene) -> None:
    """No notice comes from a killed target, but what it held is certainly gone."""
    guarded = scene.target("killed", *BYPASS)
    delivery = scene.zdo.queue("killed", scene.line)
    assert "door-held" == scene.zdo.relay()["class"]

    guarded.end()

    assert "expired" == scene.zdo.verify(delivery)["class"]
    eventually("the ear is gone", lambda: not scene.rig.ears())
