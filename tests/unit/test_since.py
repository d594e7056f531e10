"""From when on somebody wants to look back."""

from __future__ import annotations

import pytest

from dispatch.report.since import since_of

NOW = 1_796_048_000.0  # 2026-11-30T14:13:20Z


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("30m", NOW - 1_800),
        ("12h", NOW - 43_200),
        ("7d", NOW - 604_800),
        ("2w", NOW - 1_209_600),
        ("2026-11-30", 1_795_996_800.0),
        ("2026-11-30T01:00", 1_796_000_400.0),
        ("2026-11-30T01:00:00Z", 1_796_000_400.0),
        ("2026-11-30T02:00:00+01:00", 1_796_000_400.0),
        ("all", None),
    ],
)
def test_a_moment_has_many_spellings(text, at):
    """Spans count back from now; dates are UTC's unless they say another zone."""
    assert at == since_of(text, NOW)


@pytest.mark.parametrize(
    "text",
    ["", "7", "d", "7y", "-7d", "7 d", "1.5h", "\u0667d", "yesterday", "2026-13-01", "9999999d",
     "7d\n"],
)  # fmt: skip
def test_nonsense_is_no_moment(text):
    """What names no moment is refused, and never taken for another."""
    with pytest.raises(ValueError, match="neither a span"):
        since_of(text, NOW)


@pytest.mark.parametrize("text", ["0m", "2026-12-01", "2999-01-01"])
def test_a_moment_lies_in_the_past(text):
    """Nothing can have happened since the future."""
    with pytest.raises(ValueError, match="not in the past"):
        since_of(text, NOW)
