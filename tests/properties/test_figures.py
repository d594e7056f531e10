"""Figures add up, whatever happened, and in whatever order deliveries come."""

from __future__ import annotations

import itertools
import statistics

from hypothesis import given
from hypothesis import strategies as st

from dispatch.report.courses import FATES
from dispatch.report.spread import STEPS, quantile, spread
from dispatch.verdict import TABLE
from tests.fakes.courses import an_entry, counted

KINDS = (
    "accepted", "refused", "judged", "verified", "queued", "claimed", "deferred", "requeued",
    "dropped", "something-later",
)  # fmt: skip
NAMES = st.sampled_from([None, *TABLE, "something-later"])
STORIES = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(KINDS),
            NAMES,
            st.floats(-1e6, 1e6),
            st.sampled_from(["none", "written", "enqueued", "surfaced"]),
        ),
        min_size=1,
        max_size=5,
    ),
    max_size=6,
)
TIMES = st.lists(st.floats(0, 1e7), max_size=60)


def entries_of(stories):
    """The entries of each delivery, in their order."""
    return [
        [
            an_entry(kind, name, at, number=number, proof=proof, target=f"t{number % 3}")
            for kind, name, at, proof in story
        ]
        for number, story in enumerate(stories)
    ]


def mixed(courses, draw):
    """All entries in one order, each delivery's own in theirs."""
    left, found = [list(each) for each in courses], []
    while left := [each for each in left if each]:
        found.append(left[draw(st.integers(0, len(left) - 1))].pop(0))
    return found


@given(STORIES, st.data())
def test_totals_add_up(stories, data):
    """By fate, by class, by day and by target it is the same number of deliveries."""
    courses = entries_of(stories)
    waiting = {each[0].delivery for each in courses if data.draw(st.booleans())}
    found = counted(*(entry for each in courses for entry in each), waiting=waiting)

    totals = {
        len(stories),
        found.deliveries,
        sum(count for _, count in found.classes),
        sum(sum(day.fates.values()) for day in found.days),
        sum(each.deliveries for each in found.targets),
    }
    assert {len(stories)} == totals
    assert sum(map(len, stories)) == found.entries
    for fate in FATES:
        assert found.fates[fate] == sum(each.fates[fate] for each in found.targets)
        assert found.fates[fate] == sum(day.fates[fate] for day in found.days)
    assert found.fates["doubt"] == len(found.doubt)
    assert found.fates["dead"] == sum(each.count for each in found.dead)
    assert found.surfaced.count == sum(found.surfaced.steps)
    assert found.surfaced.count == sum(each.surfaced.count for each in found.targets)
    assert found.tries.retries == sum(each.retries for each in found.targets)


@given(STORIES, st.data())
def test_the_order_of_deliveries_is_no_matter(stories, data):
    """Interleaved in any way, the figures are the same."""
    courses = entries_of(stories)

    one = counted(*mixed(courses, data.draw))
    assert one == counted(*(entry for each in courses for entry in each))


@given(TIMES.filter(lambda times: len(times) > 1))
def test_quantiles_are_those_of_the_library(times):
    """Median and 95 % as the statistics module has them."""
    found = spread(times)
    slow = statistics.quantiles(times, n=20, method="inclusive")[18]

    assert abs(found.median_s - statistics.median(times)) <= 1e-6
    assert abs(found.p95_s - slow) <= 1e-6 * max(slow, 1)
    assert found.median_s <= found.p95_s <= found.most_s == max(times)


@given(TIMES)
def test_every_time_is_in_one_class(times):
    """The classes are counted as their bounds say."""
    bounds = [0.0, *STEPS, float("inf")]
    naive = tuple(
        sum(low <= each < high for each in times) for low, high in itertools.pairwise(bounds)
    )

    assert naive == spread(times).steps


def test_of_none_and_of_one():
    """No division by nothing."""
    assert quantile([], 0.5) is None
    assert 3.0 == quantile([3.0], 0.95)
