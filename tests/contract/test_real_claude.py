"""The installed zdo against real sessions of Claude Code 2.1.332.  Only by `make contract`."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contract.installed import NO_HOOK, NO_PYTHON, WAIT
from tests.contract.sessions import eventually
from tests.fakes.messages_script import Rule, use

if TYPE_CHECKING:
    from tests.contract.conftest import Scene
    from tests.contract.sessions import Terminal

pytestmark = pytest.mark.contract

BYPASS = ("--permission-mode", "bypassPermissions")
SURFACED = (0, "delivered-start", "surfaced", 0)
ENQUEUED = (0, "delivered-start", "enqueued", 0)
# A tool that runs until the test lets it end.
BUSY = "until [ -e let-go ]; do sleep 0.1; done"


def inbound(rule: str) -> tuple[str, str]:
    """The target's own setting for the lines of other sessions."""
    return "--settings", f'{{"crossSessionInbound":"{rule}"}}'


def bash(scene: Scene, command: str, when: str) -> None:
    """The model answers the prompt *when* with one Bash call of *command*."""
    scene.rig.api.script(Rule(use("Bash", {"command": command}), says=when, times=1))


def test_an_idle_target_reads_the_line_at_once(scene: Scene, idle: Terminal) -> None:
    """Delivered with the transcript's proof, each session under its own name."""
    kissed = scene.zdo.kiss("fable", scene.line)

    scene.delivered("idle", kissed, idle, SURFACED)
    session_id = scene.rig.session_id(idle)
    assert session_id == kissed.verdict["receipt"]["session_id"]
    assert scene.zdo.postbox == kissed.verdict["carrier"]["result_session_id"]
    assert scene.rig.surfaced(session_id)[-1:] == [kissed.verdict["receipt"]["msg_id"]]


def test_the_callers_folder_does_not_matter(scene: Scene, idle: Terminal) -> None:
    """A postbox without a model turn is found from its own folder only: carriers run there."""
    kissed = scene.zdo.kiss("fable", scene.line, cwd=Path("/"))

    scene.delivered("kissed from /", kissed, idle, SURFACED)


@pytest.mark.parametrize("form", ["session id", "name"])
def test_a_session_that_nobody_configured_has_an_address(
    scene: Scene, idle: Terminal, form: str
) -> None:
    """Its id in any spelling, or its display name; the station's postbox carries."""
    forms = {"session id": scene.rig.session_id(idle).upper(), "name": "name:fable"}

    kissed = scene.zdo.kiss(forms[form], scene.line)

    scene.delivered(f"addressed by {form}", kissed, idle, SURFACED)


def test_a_busy_target_reads_the_line_when_its_tool_ends(scene: Scene) -> None:
    """Delivered while Bash sleeps, enqueued by its transcript; verify sees it surface."""
    bash(scene, BUSY, when="go to work")
    target = scene.target("worker", *BYPASS, *inbound("accept"))
    target.enter("go to work")
    scene.rig.api.wait_for("go to work", within=10)
    scene.rig.until(target, "busy")

    kissed = scene.zdo.kiss("worker", scene.line)

    early = scene.rig.api.inputs_with(scene.line)
    (target.cwd / "let-go").touch()
    scene.delivered("busy (its tool ends afterwards)", kissed, target, ENQUEUED)
    assert ([], "busy") == (early, kissed.verdict["target"]["status"])
    eventually("verify sees it", lambda: scene.zdo.verify(kissed.delivery)["proof"] == "surfaced")


def test_a_caller_who_asks_for_the_proof_is_told_that_it_is_late(scene: Scene) -> None:
    """Delivered, but a busy target has not shown it in time: look, do not repeat."""
    bash(scene, BUSY, when="take your time")
    target = scene.target("slow", *BYPASS, *inbound("accept"))
    target.enter("take your time")
    scene.rig.api.wait_for("take your time", within=10)
    scene.rig.until(target, "busy")

    kissed = scene.zdo.kiss("slow", scene.line, "--proof", "surfaced", "--wait", "1")

    (target.cwd / "let-go").touch()
    late = (3, "not-surfaced", "enqueued", 0)
    scene.delivered("busy, --proof surfaced --wait 1", kissed, target, late)


def test_a_waiting_target_keeps_its_dialog_open(scene: Scene) -> None:
    """The line waits behind the permission dialog and surfaces after the user's answer."""
    bash(scene, "touch asked-for", when="ask for leave")
    target = scene.target("asker", "--permission-mode", "manual")
    target.enter("ask for leave")
    scene.rig.until(target, "waiting")

    kissed = scene.zdo.kiss("asker", scene.line)

    scene.never()
    status = scene.rig.row(target)["status"]
    target.press("1")
    scene.delivered("waiting (answered afterwards)", kissed, target, ENQUEUED)
    assert ("waiting", "waiting") == (kissed.verdict["target"]["status"], status)
    assert (target.cwd / "asked-for").exists()


def test_a_headless_target_reads_the_line_after_its_tool(scene: Scene) -> None:
    """A `claude -p` that runs a tool is a target like any other."""
    bash(scene, BUSY, when="work alone")
    target = scene.rig.headless("alone", "work alone", *BYPASS, *inbound("accept"))
    session_id = scene.rig.session_id(target)
    scene.rig.api.wait_for("work alone", within=10)
    scene.zdo.target("alone", session_id)

    kissed = scene.zdo.kiss("alone", scene.line)

    (target.cwd / "let-go").touch()
    scene.delivered("headless (its tool ends afterwards)", kissed, target, ENQUEUED)
    assert session_id == target.result()["session_id"]


def test_a_bypass_target_that_accepts_takes_the_line(scene: Scene) -> None:
    """The receiver's own setting opens its door; zdo claims nothing for it."""
    target = scene.target("open", *BYPASS, *inbound("accept"))

    kissed = scene.zdo.kiss("open", scene.line)

    scene.delivered("bypass, inbound accept", kissed, target, SURFACED)


@pytest.mark.parametrize(
    ("scenario", "args", "expected"),
    [
        ("bypass", BYPASS, (3, "door-held")),
        ("inbound hold", inbound("hold"), (3, "door-held")),
        ("inbound refuse", inbound("refuse"), (77, "door-refused")),
    ],
)
def test_a_line_that_the_target_keeps_out_is_not_called_delivered(
    scene: Scene, scenario: str, args: tuple[str, ...], expected: tuple[int, str]
) -> None:
    """The door reads it all the same, so only the notice tells; the model never sees it."""
    scene.target("closed", *args)

    kissed = scene.zdo.kiss("closed", scene.line)

    scene.kept_out(scenario, kissed, (*expected, "written", 0))


def test_a_target_cleared_before_the_write_is_not_written(scene: Scene) -> None:
    """Same process, same socket, another session: that one was not meant."""
    target = scene.target("cleared")
    meant = scene.rig.session_id(target)
    shim = scene.zdo.shim(WAIT)
    call = scene.zdo.call("cleared", scene.line, shim=shim)
    shim.arrived()
    target.enter("/clear")
    eventually("another session id", lambda: meant != scene.rig.session_id(target))
    shim.let_go()

    kissed = call.result()

    scene.kept_out("/clear before the write", kissed, (3, "door-mismatch", "none", 0))


def test_a_target_killed_before_the_write_is_not_running(scene: Scene) -> None:
    """Row, key and socket of the dead stay behind and deceive nobody."""
    target = scene.target("killed")
    shim = scene.zdo.shim(WAIT)
    call = scene.zdo.call("killed", scene.line, shim=shim)
    shim.arrived()
    os.kill(target.pid, signal.SIGKILL)
    eventually("it is dead", lambda: not target.alive())
    shim.let_go()

    kissed = call.result()

    scene.kept_out("killed before the write", kissed, (69, "target-not-running", "none", 0))
    assert target.pid in scene.rig.rows()


@pytest.mark.parametrize(
    ("scenario", "before", "turns"),
    [("hook gone from the settings", NO_HOOK, 1), ("hook without its python", NO_PYTHON, 0)],
)
def test_a_broken_hook_costs_no_request(
    scene: Scene, idle: Terminal, scenario: str, before: str, turns: int
) -> None:
    """The prompt is blocked, or meets no model, for the carrier reaches none."""
    postbox = scene.rig.postbox(scene.zdo.postbox_folder)
    scene.zdo.target("hookless", scene.rig.session_id(idle), postbox)

    kissed = scene.zdo.kiss("hookless", scene.line, shim=scene.zdo.shim(before))

    scene.kept_out(scenario, kissed, (76, "wrapper-not-run", "none", 0))
    assert turns == kissed.verdict["carrier"]["num_turns"]
