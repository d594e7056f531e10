"""The postbox of a real carrier: how it was made, who has it open, who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.contract.conftest import Scene
    from tests.contract.sessions import Terminal

pytestmark = pytest.mark.contract

SURFACED = (0, "delivered-start", "surfaced", 0)
NOBODY = "00000000-0000-4000-8000-00000000dead"


def test_a_postbox_with_a_model_turn_carries_as_well(scene: Scene, idle: Terminal) -> None:
    """Its one request is from its making; the kiss adds none."""
    postbox = scene.rig.postbox(scene.zdo.postbox_folder, model_turn=True)
    scene.zdo.target("turned", scene.rig.session_id(idle), postbox)

    kissed = scene.zdo.kiss("turned", scene.line)

    scene.delivered("postbox with a model turn", kissed, idle, SURFACED)
    assert scene.zdo.asked_by(postbox) == 1


def test_a_postbox_that_somebody_opened_is_left_alone(scene: Scene, idle: Terminal) -> None:
    """Two drivers would branch its transcript: refused before anything starts."""
    postbox = scene.rig.postbox(scene.zdo.postbox_folder, model_turn=True)
    scene.zdo.target("opened", scene.rig.session_id(idle), postbox)
    somebody = scene.rig.terminal("somebody", "--resume", postbox, cwd=scene.zdo.postbox_folder)
    assert postbox == scene.rig.session_id(somebody)

    kissed = scene.zdo.kiss("opened", scene.line)

    scene.kept_out("postbox open elsewhere", kissed, (2, "carrier-live", "none", 0))


def test_kisses_through_one_postbox_wait_for_each_other(scene: Scene, idle: Terminal) -> None:
    """Three at once: each is carried, each line is read once."""
    lines = [f"{scene.line} of {n}" for n in range(3)]
    calls = [scene.zdo.call("fable", line) for line in lines]

    results = [call.result() for call in calls]

    assert [(0, "delivered-start")] * 3 == [kissed.told[:2] for kissed in results], f"{results}"
    asked = [scene.rig.api.wait_for(line, within=20) for line in lines]
    assert [1, 1, 1] == [a.input.count(line) for a, line in zip(asked, lines, strict=True)]
    assert {scene.rig.session_id(idle)} == {a.session for a in asked}


def test_a_postbox_that_never_was_is_the_carriers_failure(scene: Scene, idle: Terminal) -> None:
    """The real binary finds no conversation, and its own words are the reason."""
    scene.zdo.target("lost", scene.rig.session_id(idle), NOBODY)

    kissed = scene.zdo.kiss("lost", scene.line)

    scene.kept_out("postbox unknown", kissed, (76, "carrier-exit", "none", 0))
    assert "No conversation found" in kissed.verdict["reason"]
