"""How much an entry matters."""

from __future__ import annotations

import pytest

from dispatch import journal
from dispatch.levels import ACTIONABLE, INFO, LEVELS, LIFECYCLE, level_of
from dispatch.verdict import TABLE

ON_ITS_WAY = ("accepted", "queued", "claimed", "deferred", "requeued")
ENDINGS = (journal.JUDGED, journal.VERIFIED, journal.REFUSED)


@pytest.mark.parametrize("kind", ON_ITS_WAY)
@pytest.mark.parametrize("name", [None, "queued", "carrier-busy", "unknown"])
def test_a_line_on_its_way_asks_nothing_of_anybody(kind, name):
    """Whatever class it waits with."""
    assert LIFECYCLE == level_of(kind, name)


@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("name", TABLE)
def test_a_verdict_is_good_to_know_or_something_to_do(kind, name):
    """Its exit status says which."""
    assert (ACTIONABLE if TABLE[name].exit else INFO) == level_of(kind, name)


@pytest.mark.parametrize("name", [None, "interrupted", "unknown", "queued"])
def test_what_was_given_up_by_hand_is_known_to_somebody(name):
    """Its class is the one it waited with."""
    assert INFO == level_of(journal.DROPPED, name)


@pytest.mark.parametrize(
    ("kind", "name"), [("judged", None), ("judged", "of-a-later-zdo"), ("of-a-later-zdo", None)]
)
def test_what_this_zdo_does_not_know_is_something_to_do(kind, name):
    """A later one may have meant anything."""
    assert ACTIONABLE == level_of(kind, name)


def test_the_levels_have_an_order():
    """The least first."""
    assert (LIFECYCLE, INFO, ACTIONABLE) == LEVELS
