"""The knock."""

from __future__ import annotations

import pytest

from carrier.prompt import delivery_of, knock

DELIVERY = "0b5a3a52-7d0c-4c1e-9d64-6f2f2a9e4c11"


def test_a_knock_is_the_constant_and_the_delivery_id():
    """Nothing else, and nothing that starts a command or attaches a file."""
    assert f"zdo knock {DELIVERY}" == knock(DELIVERY)


@pytest.mark.parametrize("around", ["{}", " {}", "{}\n", "\t{} \r\n"])
def test_blanks_around_a_knock_are_forgiven(around):
    """Claude Code may add a newline."""
    assert delivery_of(around.format(knock(DELIVERY))) == DELIVERY


def test_the_id_of_a_knock_comes_back_canonical():
    """Whatever its spelling."""
    assert delivery_of(f"zdo knock {DELIVERY.upper()}") == DELIVERY


@pytest.mark.parametrize(
    "prompt",
    ["", "zdo knock", "zdo knock ", "zdo knock 17", DELIVERY, f"zdo  knock {DELIVERY}",
     f"please zdo knock {DELIVERY}", f"zdo knock {DELIVERY} now", f"zdo knocking {DELIVERY}"],
)  # fmt: skip
def test_another_prompt_is_no_knock(prompt):
    """A session that merely has our hook is left alone."""
    assert delivery_of(prompt) is None
