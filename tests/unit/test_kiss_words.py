"""The words of a kiss that need more than one command: answers, and senders that were refused."""

from __future__ import annotations

import pytest

from dispatch.rig.script import T
from tests.acceptance.saying import complained, delivered
from tests.fakes.inside import InsideRig

SENDER = "388e03f6-0000-4000-8000-000000000009"
NOWHERE = "00000000-0000-4000-8000-00000000abcd"


@pytest.fixture
def rig():
    """A rig with one running session; its command runs here."""
    with InsideRig() as made:
        made.door()
        yield made


def test_an_answer_has_no_address(rig):
    """Its first word is the line, and a second one is too many."""
    asked = rig.zdo("kiss", "--json", "--session-id", T, "fable", "are tests green?")
    delivery = delivered(asked)["delivery_id"]

    assert 0 == rig.zdo("kiss", "--reply", delivery, "they are").exit
    complained(rig.zdo("kiss", "--reply", delivery, "fable", "they are"), "usage", 64)

    assert ["are tests green?", "they are"] == rig.lines()


def test_an_answer_to_nobody_is_no_line(rig):
    """Not even under a key: nothing stands for it already."""
    said = rig.zdo("kiss", "--reply", NOWHERE, "--key", "k", "they are")

    complained(said, "target-unknown", 67)
    assert [] == rig.lines()


def test_a_sender_that_was_unregistered_is_warned(rig):
    """Its line goes all the same."""
    for verb in ("register", "unregister"):
        assert 0 == rig.zdo(verb, "--session-id", SENDER).exit

    said = rig.zdo("kiss", "--session-id", SENDER, "fable", "hello")

    assert (0, True) == (said.exit, said.err.startswith("zdo: warning: "))
    assert ["hello"] == rig.lines()
