"""The clock asks the machine; its spelling is fixed and in UTC."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from registry.clock import Clock, iso


def test_the_clock_is_the_machines() -> None:
    """Now is now, and monotonic time does not go back."""
    clock = Clock()
    before = time.time()
    now = clock.now()
    first = clock.monotonic()
    clock.sleep(0)

    assert before <= now <= time.time()
    assert first <= clock.monotonic()


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1796048644.751, "2026-11-30T14:24:04.751Z"),
        (1796048644.9996, "2026-11-30T14:24:05.000Z"),
        (-0.001, "1969-12-31T23:59:59.999Z"),
        (-30_610_224_000.0, "1000-01-01T00:00:00.000Z"),
        (253_402_300_799.999, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_a_time_is_spelled_in_utc_with_milliseconds(at: float, text: str) -> None:
    """Rounding carries into the seconds; the width is fixed."""
    assert text == iso(at)
    assert round(at, 3) == datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("at", [1e300, 1e12, float("inf"), -1e300, -1e11, float("-inf")])
def test_a_time_that_nobody_can_spell_is_the_last_or_the_first(at: float) -> None:
    """Damage in one entry keeps nobody from the others."""
    assert ("9999-12-31T23:59:59.999Z" if at > 0 else "1000-01-01T00:00:00.000Z") == iso(at)
