"""Who is speaking."""

from __future__ import annotations

import itertools

import pytest

from dispatch.sender import VARIABLES, sender_of

CASES = list(itertools.product([False, True], repeat=4))


@pytest.mark.parametrize("given", CASES)
def test_the_first_that_is_set_speaks(given):
    """All sixteen combinations of the option and the three variables."""
    names = ("option", *VARIABLES)
    values = {name: f"id-{name}" for name, there in zip(names, given, strict=True) if there}
    expected = next((values[name] for name in names if name in values), "anonymous")

    assert expected == sender_of(values.get("option"), values)


def test_empty_is_unset():
    """An exported empty variable names nobody."""
    assert sender_of("", dict.fromkeys(VARIABLES, "")) == "anonymous"
