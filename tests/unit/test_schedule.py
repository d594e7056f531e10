"""When a line is tried again, and when no more."""

from __future__ import annotations

import pytest

from dispatch.schedule import Schedule, gave_up, is_due, next_due

NOW = 1_796_048_000.25
MAIL = Schedule()


def test_the_patience_is_that_of_a_mail_queue():
    """5 s doubling up to 15 min; 24 tries or 5 days, whichever is first."""
    assert (5, 900, 24, 5 * 86_400) == (MAIL.first_s, MAIL.longest_s, MAIL.tries, MAIL.lifetime_s)


@pytest.mark.parametrize(
    ("tries", "longest"),
    [(0, 5), (1, 10), (2, 20), (7, 640), (8, 900), (24, 900), (10_000, 900), (-1, 5)],
)
def test_the_wait_doubles_up_to_the_longest(tries, longest):
    """No number of tries overflows it."""
    assert NOW + longest * 0.5 == next_due(MAIL, now=NOW, tries=tries, draw=0.5)


def test_the_jitter_is_full():
    """Lines that failed together do not come back together: any moment from now on."""
    assert NOW == next_due(MAIL, now=NOW, tries=3, draw=0.0)
    assert pytest.approx(NOW + 40) == next_due(MAIL, now=NOW, tries=3, draw=1 - 1e-12)


@pytest.mark.parametrize(
    ("due_at", "due"),
    [
        (1.5, True),
        (NOW - 1, True),
        (NOW, True),
        (NOW + 0.001, False),
        (NOW + 900, False),
        (NOW + 900.001, True),
        (NOW + 365 * 86_400, True),
        (float("inf"), True),
        (float("nan"), True),
    ],
)
def test_what_nobody_can_have_set_is_due(due_at, due):
    """P10: a clock that was set back by a year makes nobody wait for a year."""
    assert due is is_due(due_at, NOW, 900)


@pytest.mark.parametrize(
    ("tries", "waited_s", "over"),
    [
        (0, 0, False),
        (23, 431_999, False),
        (24, 0, True),
        (25, 0, True),
        (0, 432_000, True),
        (0, -1, False),
    ],
)
def test_patience_ends_by_tries_or_by_time(tries, waited_s, over):
    """Whichever is first."""
    assert over is gave_up(MAIL, tries=tries, waited_s=waited_s)
