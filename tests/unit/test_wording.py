"""How figures are worded for people."""

from __future__ import annotations

import pytest

from dispatch.report.courses import FATES
from dispatch.report.spread import STEPS
from dispatch.report.wording import LONGEST, MEANING, period, seconds, share, shortened, step


@pytest.mark.parametrize(
    ("length", "worded"),
    [
        (None, "-"), (0.0, "0.00 s"), (0.424, "0.42 s"), (1.94, "1.9 s"), (88.1, "88 s"),
        (90.0, "1.5 min"), (600.0, "10 min"), (5_399.0, "90 min"), (5_400.0, "1.5 h"),
        (86_400.0, "24 h"), (1_036_800.0, "12 d"),
    ],
)  # fmt: skip
def test_a_length_of_time_has_two_figures_or_so(length, worded):
    """In the unit that people would take."""
    assert worded == seconds(length)


@pytest.mark.parametrize(
    ("part", "whole", "worded"),
    [(0, 0, "0 %"), (0, 9, "0 %"), (9, 9, "100 %"), (1, 9_999, "0.1 %"), (9_998, 9_999, "99.9 %"),
     (1, 3, "33.3 %")],
)  # fmt: skip
def test_a_share_is_never_nothing_or_all_by_rounding(part, whole, worded):
    """One of ten thousand is there."""
    assert worded == share(part, whole)


def test_the_classes_of_a_distribution():
    """Each by its bounds, without a gap."""
    assert ["under 1 s", "1 s to 2 s", "30 s to 1 min", "1 h to 1 d", "over 1 d"] == [
        step(number) for number in (0, 1, 5, 8, len(STEPS))
    ]


def test_a_long_name_keeps_its_ends():
    """Cut in the middle, to the length that was asked for; what acts is written out."""
    assert "a" * LONGEST == shortened("a" * LONGEST)
    assert "begin…end!" == shortened("begin" + "x" * 90 + "end!", 10)
    assert 10 == len(shortened("x" * 11, 10))
    assert "(no address)" == shortened(None)
    assert "a\\x1b[31m" == shortened("a\x1b[31m")


def test_a_period():
    """To the minute."""
    assert "from the beginning to 2026-11-30 14:13 UTC" == period(None, 1_796_048_000.0)
    assert period(0.0, 60.0).startswith("1970-01-01 00:00 to ")


def test_every_fate_has_a_meaning():
    """For the page's key."""
    assert list(FATES) == list(MEANING)
