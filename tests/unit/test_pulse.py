"""The relay's own time: it only grows, and no clock jump stretches it."""

from __future__ import annotations

import pytest

from dispatch import pulse
from dispatch.database import Database

NOW = 1_796_048_000.25
YEAR_S = 365 * 86_400.0


@pytest.fixture
def database(tmp_path):
    """A database over which a relay has watched once."""
    opened = Database(str(tmp_path / "zdo.db"))
    beat(opened, NOW)
    yield opened
    opened.close()


def beat(database, at):
    """A relay notes that it watches."""
    with database.writing() as link:
        pulse.beat(link, at)


def ask(database, question, *given):
    """What *question* says."""
    with database.reading() as link:
        return question(link, *given)


def test_a_new_database_was_not_watched(tmp_path):
    """Its first beat counts one step, whatever the date."""
    opened = Database(str(tmp_path / "zdo.db"))

    assert (1.5, True) == (ask(opened, pulse.watched), ask(opened, pulse.is_due, NOW))
    beat(opened, NOW)
    assert 901.5 == ask(opened, pulse.watched)
    opened.close()


STEPS = {
    0.0: 0.0,
    30.0: 30.0,
    899.5: 899.5,
    900.0: 900.0,
    3600.0: 900.0,
    YEAR_S: 900.0,
    -1.0: 0.0,
    -3600.0: 0.0,
    -YEAR_S: 0.0,
}


@pytest.mark.parametrize(("jump", "step"), STEPS.items())
def test_each_step_is_from_nothing_to_a_quarter_of_an_hour(database, jump, step):
    """Forward by a year is one step; back by a year is none, and time goes on from there."""
    before = ask(database, pulse.watched)

    assert before + step == ask(database, pulse.watched_by, NOW + jump)
    beat(database, NOW + jump)
    assert before + step == ask(database, pulse.watched)
    beat(database, NOW + jump + 10)
    assert before + step + 10 == ask(database, pulse.watched)


@pytest.mark.parametrize(
    ("jump", "due"), [(0.0, False), (59.5, False), (60.0, True), (YEAR_S, True), (-0.5, True)]
)
def test_a_step_is_counted_once_a_minute(database, jump, due):
    """Or at once when the last one lies in the future of a clock that was set back."""
    assert due == ask(database, pulse.is_due, NOW + jump)


def test_passes_that_come_too_often_to_count_lose_nothing(database):
    """The time since the last step is in the next one."""
    before = ask(database, pulse.watched)
    for second in range(59):
        assert not ask(database, pulse.is_due, NOW + second)

    beat(database, NOW + 60)

    assert before + 60 == ask(database, pulse.watched)
