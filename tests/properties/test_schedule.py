"""P10: whatever the clock does, nothing waits longer than the longest back-off."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dispatch.schedule import Schedule, gave_up, is_due, next_due

SCHEDULES = st.builds(
    Schedule,
    first_s=st.floats(0.01, 60),
    longest_s=st.floats(60, 86_400),
    tries=st.integers(1, 100),
    lifetime_s=st.floats(1, 1e7),
)
CLOCKS = st.floats(-1e9, 1e11)
DRAWS = st.floats(0, 1, exclude_max=True)
JUMPS = st.one_of(st.floats(-2000, 2000), st.floats(-1e10, 1e10))


@given(SCHEDULES, CLOCKS, st.integers(0, 10_000), DRAWS, JUMPS)
def test_a_line_is_due_within_the_longest_wait_of_any_clock(schedule, now, tries, draw, jump):
    """Set back or forward by any time, it is due at once or within the longest wait from then."""
    due_at = next_due(schedule, now=now, tries=tries, draw=draw)
    later = now + jump

    assert now <= due_at <= now + schedule.longest_s
    assert is_due(due_at, due_at, schedule.longest_s)
    assert is_due(due_at, later, schedule.longest_s) or due_at <= later + schedule.longest_s


@given(SCHEDULES, st.integers(0, 200), DRAWS)
def test_the_wait_never_shrinks_with_the_tries(schedule, tries, draw):
    """For the same draw a line that failed more often waits at least as long."""
    one, two = (next_due(schedule, now=0.0, tries=n, draw=draw) for n in (tries, tries + 1))

    assert one <= two


@given(SCHEDULES, st.integers(0, 200), st.floats(0, 1e8))
def test_patience_that_is_over_stays_over(schedule, tries, waited_s):
    """More tries or more time never bring it back."""
    if gave_up(schedule, tries=tries, waited_s=waited_s):
        assert gave_up(schedule, tries=tries + 1, waited_s=waited_s)
        assert gave_up(schedule, tries=tries, waited_s=waited_s + 1)
