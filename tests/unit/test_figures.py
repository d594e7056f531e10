"""What became of deliveries, as figures."""

from __future__ import annotations

import pytest

from dispatch.report.courses import FATES, Entry
from tests.fakes.courses import an_entry, counted, delivered, held
from tests.fakes.household import BEGAN, key_of


def fate_of(*entries, waiting=()):
    """The one fate that *entries* came to."""
    fates = counted(*entries, waiting=waiting).fates
    (found,) = [fate for fate, count in fates.items() if count]
    assert 1 == fates[found]
    return found


@pytest.mark.parametrize(
    ("fate", "entries"),
    [
        ("surfaced", delivered()),
        ("surfaced", [*held(), an_entry("verified", "surfaced", 9, proof="surfaced")]),
        ("started", [an_entry("accepted"), an_entry("judged", "delivered-start", 1)]),
        ("waiting", [an_entry("accepted")]),
        ("waiting", [an_entry("queued", "queued")]),
        ("waiting", [an_entry("queued", "queued"), an_entry("deferred", "target-not-running", 1)]),
        ("waiting", [an_entry("queued", "queued"), an_entry("claimed", None, 1)]),
        ("waiting", [*held(), an_entry("requeued", "queued", 5)]),
        ("held", held()),
        ("doubt", [an_entry("accepted"), an_entry("judged", "receipt-missing", 1)]),
        # It is in, and still nobody knows which session the carrier drove.
        ("doubt", [an_entry("accepted"),
                   an_entry("judged", "carrier-mismatch", 1, proof="surfaced")]),
        ("doubt", [an_entry("accepted"), an_entry("judged", "a-later-class", 1)]),
        ("dead", [an_entry("accepted"), an_entry("judged", "carrier-exit", 1)]),
        ("dead", [an_entry("accepted"), an_entry("judged", "door-refused", 1)]),
        ("dead", [*held(), an_entry("dropped", "door-held", 5)]),
        ("refused", [an_entry("refused", "target-not-running")]),
        # Another kiss with its key says nothing about the line.
        ("surfaced", [*delivered(), an_entry("refused", "key-conflict", 5)]),
        ("surfaced", [an_entry("refused", "target-not-running"), *delivered(at=3)]),
    ],
)  # fmt: skip
def test_what_became_of_a_delivery(fate, entries):
    """By its last entry about the line."""
    assert fate == fate_of(*entries)


def test_the_spool_knows_what_waits_for_its_next_try():
    """The journal tells of the last try alone."""
    tried = [an_entry("queued", "queued"), an_entry("claimed", None, 1),
             an_entry("judged", "carrier-exit", 2)]  # fmt: skip

    assert "dead" == fate_of(*tried)
    assert "waiting" == fate_of(*tried, waiting={key_of(1)})
    assert (("queued", 1),) == counted(*tried, waiting={key_of(1)}).classes


def test_classes_are_those_of_now():
    """The most first; what is under way has none."""
    found = counted(*delivered(1), *delivered(2), *held(3), an_entry("accepted", number=4))

    assert (("delivered-start", 2), (None, 1), ("door-held", 1)) == found.classes


def test_time_runs_from_the_first_entry_to_the_first_that_knows():
    """A queue's waiting counts; later entries that know it too do not."""
    found = counted(
        an_entry("queued", "queued"),
        an_entry("claimed", None, 60),
        an_entry("judged", "delivered-start", 62, proof="enqueued",
                 door_at="2026-11-30T14:14:21.000Z"),
        an_entry("verified", "surfaced", 90, proof="surfaced"),
        an_entry("verified", "surfaced", 500, proof="surfaced"),
    )  # fmt: skip

    assert (1, 90.0, 90.0, 90.0) == (
        found.surfaced.count, found.surfaced.median_s, found.surfaced.p95_s, found.surfaced.most_s,
    )  # fmt: skip
    assert 1 == found.late
    assert (1, 61.0) == (found.door.count, found.door.median_s)


def test_time_of_a_line_that_was_refused_at_first():
    """It runs from where it was taken."""
    found = counted(an_entry("refused", "target-not-running"), *delivered(at=100, took=2))

    assert 2.0 == found.surfaced.median_s


def test_a_clock_that_was_set_back_took_no_time_away():
    """No time is below zero."""
    entries = delivered(took=-50, door_at="2026-11-30T14:00:00.000Z")

    assert (0.0, 0.0) == (counted(*entries).surfaced.most_s, counted(*entries).door.most_s)


def test_nothing_is_measured_where_nothing_surfaced():
    """None, not zero."""
    found = counted(*held())

    assert (0, None, None, None) == (
        found.surfaced.count, found.surfaced.median_s, found.surfaced.p95_s, found.surfaced.most_s,
    )  # fmt: skip


def test_of_nothing_there_are_figures_too():
    """Zeros and empty lists."""
    found = counted()

    assert (0, 0, (), ()) == (found.entries, found.deliveries, found.days, found.targets)
    assert dict.fromkeys(FATES, 0) == found.fates
    assert 0 == found.tries.most


def test_a_day_is_that_of_the_first_entry():
    """Days are UTC; one without deliveries is left out."""
    found = counted(*delivered(1, took=90_000), *delivered(2, at=3 * 86_400))

    assert ["2026-11-30", "2026-12-03"] == [day.day for day in found.days]
    assert [1, 1] == [day.fates["surfaced"] for day in found.days]


def test_held_lines_and_what_became_of_them():
    """How long each was held ends with its first entry of another class."""
    late = an_entry("verified", "door-held", 30, number=2, proof="enqueued")
    end = an_entry("verified", "surfaced", 61, number=2, proof="surfaced")
    found = counted(*held(1), *held(2, 0.0, late, end), *delivered(3)).held

    assert [None, 60.0] == [each.held_s for each in found]
    assert ["held", "surfaced"] == [each.fate for each in found]
    assert ["needs approval"] * 2 == [each.reason for each in found]
    assert BEGAN + 1 == found[0].at


def test_lines_in_doubt():
    """Each with its class and its reason."""
    doubt = an_entry("judged", "receipt-missing", 7, reason="the receipt is torn")
    (found,) = counted(an_entry("accepted"), doubt).doubt

    assert (key_of(1), "fable", "receipt-missing", "the receipt is torn", BEGAN + 7) == (
        found.delivery, found.target, found.name, found.reason, found.at,
    )  # fmt: skip


def test_dead_letters_by_class():
    """The most first, with those of people's hands, and the newest reason."""
    found = counted(
        an_entry("accepted", number=1),
        an_entry("judged", "carrier-exit", 5, number=1, reason="newest"),
        an_entry("accepted", number=2),
        an_entry("judged", "carrier-exit", 2, number=2, reason="older"),
        an_entry("queued", "queued", number=3),
        an_entry("dropped", "interrupted", 3, number=3, reason="given up by hand"),
    ).dead

    assert [
        ("carrier-exit", 2, 0, "newest"),
        ("interrupted", 1, 1, "given up by hand"),
    ] == [(each.name, each.count, each.by_hand, each.reason) for each in found]


def test_tries():
    """An attempt that is not the first is a retry."""
    found = counted(
        an_entry("queued", "queued"),
        an_entry("claimed", None, 1),
        an_entry("judged", "carrier-exit", 2),
        an_entry("claimed", None, 3),
        an_entry("judged", "carrier-exit", 4),
        an_entry("claimed", None, 5),
        *delivered(2),
    ).tries

    assert (4, 2, 1, 3) == (found.attempts, found.retries, found.lines, found.most)


def test_by_target():
    """The one with the most first; what had no address yet comes last among equals."""
    found = counted(
        *delivered(1, target="api", took=3),
        *delivered(2, target="fable"),
        *delivered(3, target="fable"),
        an_entry("refused", "usage", number=4, target=None),
    ).targets

    assert [("fable", 2), ("api", 1), (None, 1)] == [(e.target, e.deliveries) for e in found]
    assert 3.0 == found[1].surfaced.median_s


@pytest.mark.parametrize(
    "facts", [None, "", "{", "[]", "{}", "null", "[1, 2, 3, 4, 5]", "[" * 100_000]
)
def test_a_body_that_nobody_understands_is_no_error(facts):
    """It counts by its class, and tells no more."""
    entry = Entry(key_of(1), BEGAN, "judged", "door-held", facts)
    found = counted(entry)

    assert (1, None) == (found.fates["held"], found.targets[0].target)


@pytest.mark.parametrize("at", ["yesterday", "9999-99-99", "2026-11-30T14:00:00"])
def test_a_receipt_with_an_odd_time_has_none(at):
    """The time to the door is not made up."""
    assert 0 == counted(*delivered(door_at=at)).door.count
