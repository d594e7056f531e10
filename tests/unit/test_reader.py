"""The journal page by page."""

from __future__ import annotations

import json

import pytest

from dispatch import reader
from dispatch.database import Database
from dispatch.journal import Event
from dispatch.reader import ASC, DESC, Narrow
from dispatch.result import LineFacts, as_json
from tests.fakes.envelopes import DELIVERY, T
from tests.fakes.household import asked, key_of
from tests.fakes.spools import an_event, put

FIELDS = (
    "id", "at", "level", "kind", "class", "exit", "delivery_id", "key", "sender", "by", "target",
    "target_session_id", "proof", "reason",
)  # fmt: skip


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def fill(database, count):
    """*count* entries, numbered from 1."""
    with database.writing() as link:
        for number in range(1, count + 1):
            put(link, "event", an_event(key_of(number), "queued", "queued"))


def page_of(database, after, limit, order):
    """The ids of a page, its next cursor and whether there is more."""
    with database.reading() as link:
        page = reader.page(link, after, limit, order)
    return [event.id for event in page.events], page.next_cursor, page.has_more


PAGES = [
    ((None, 3, ASC), ([1, 2, 3], 3, True)),
    ((None, 3, DESC), ([10, 9, 8], 10, True)),
    ((0, 3, ASC), ([1, 2, 3], 3, True)),
    ((0, 3, DESC), ([3, 2, 1], 3, True)),
    ((7, 3, ASC), ([8, 9, 10], 10, True)),
    ((7, 3, DESC), ([10, 9, 8], 10, True)),
    ((8, 3, ASC), ([9, 10], 10, False)),
    ((8, 3, DESC), ([10, 9], 10, False)),
    ((10, 3, ASC), ([], 10, False)),
    ((10, 3, DESC), ([], 10, False)),
    ((None, 50, ASC), (list(range(1, 11)), 10, False)),
    ((None, 50, DESC), (list(range(10, 0, -1)), 10, False)),
]


@pytest.mark.parametrize(("asked_for", "expected"), PAGES)
def test_a_page_is_the_oldest_after_its_start_in_either_order(database, asked_for, expected):
    """The order only prints; where nothing is named, it says at which end to begin."""
    fill(database, 10)

    assert expected == page_of(database, *asked_for)


@pytest.mark.parametrize("order", [ASC, DESC])
def test_where_nothing_happened_there_is_no_cursor(database, order):
    """Not even 0: nobody has said where to begin."""
    assert ([], None, False) == page_of(database, None, 50, order)
    assert ([], 0, False) == page_of(database, 0, 50, order)


@pytest.mark.parametrize("asked_for", ["after", "newest"])
def test_a_page_costs_the_same_whatever_lies_behind(database, asked_for):
    """The primary key finds its first row, and no row is sorted."""
    order, after = {"after": (ASC, 7), "newest": (DESC, None)}[asked_for]
    asked_of = []
    with database.reading() as link:
        link.set_trace_callback(asked_of.append)
        reader.page(link, after, 20, order)
        reader.tip(link)
        link.set_trace_callback(None)
        plans = [row[3] for sql in asked_of for row in link.execute(f"EXPLAIN QUERY PLAN {sql}")]

    ours = [plan for plan in plans if "sqlite_sequence" not in plan]
    # Backwards from the end SQLite calls it a scan; the limit ends it.
    wanted = "SEARCH event USING INTEGER PRIMARY KEY (rowid>?)" if after else "SCAN event"
    assert [wanted] == ours


def steps_of(database, after, order):
    """How many steps SQLite's own machine takes for a page of 20."""
    counted = []
    with database.reading() as link:
        link.set_progress_handler(lambda: counted.append(1), 1)
        reader.page(link, after, 20, order)
        link.set_progress_handler(None, 0)
    return len(counted)


@pytest.mark.parametrize(("after", "order"), [(None, ASC), (5, ASC), (5, DESC), (None, DESC)])
def test_a_page_of_many_takes_as_many_steps_as_one_of_few(database, after, order):
    """No row but those of the page is looked at."""
    fill(database, 30)
    few = steps_of(database, after, order)
    for _ in range(50):
        fill(database, 40)

    assert few == steps_of(database, after, order)


def test_the_tip_is_the_newest_entry_that_ever_was(database):
    """One that damage took is not given to another, so the tip does not go back."""
    with database.writing() as link:
        assert 0 == reader.tip(link)
    fill(database, 3)
    with database.writing() as link:
        link.execute("DELETE FROM event WHERE id = 3")
        assert 3 == reader.tip(link)


def an_entry(kind, body, name=None, number=1):
    """The entry *number* as the journal has it."""
    return Event(number, DELIVERY, 1_796_048_000.375, kind, name, json.dumps(body))


def test_an_entry_is_shown_with_all_that_a_reader_needs():
    """Every field, in its order; who did it, where that is another than the sender."""
    result = asked(key="nightly", attempt=1, line=LineFacts(3, "ab"))
    body = {"class": "door-held", "result": as_json(result) | {"reason": "held"}, "by": "cron"}

    shown = reader.shown(an_entry("judged", body, "door-held", 7))

    assert FIELDS == tuple(shown)
    assert {
        "id": 7,
        "at": "2026-11-30T14:13:20.375Z",
        "level": "actionable",
        "kind": "judged",
        "class": "door-held",
        "exit": 3,
        "delivery_id": DELIVERY,
        "key": "nightly",
        "sender": "anonymous",
        "by": "cron",
        "target": "fable",
        "target_session_id": T,
        "proof": "none",
        "reason": "held",
    } == shown


@pytest.mark.parametrize(
    "body",
    [
        "",
        "half a",
        "[]",
        "null",
        "7",
        "{}",
        '{"result": 1}',
        '{"result": {"target": []}}',
        "[" * 9999,
    ],
)
def test_an_entry_that_cannot_be_read_is_shown_as_far_as_it_can(body):
    """A page with one damaged entry is a page."""
    shown = reader.shown(Event(7, DELIVERY, 1.0, "judged", "later", body))

    assert FIELDS == tuple(shown)
    assert (7, "judged", "later", "actionable", None, None, None) == tuple(
        shown[name] for name in ("id", "kind", "class", "level", "exit", "key", "target")
    )


def entries():
    """Three entries that differ in everything that a reader may ask for."""
    one = as_json(asked(key="nightly"))
    two = as_json(asked(delivery_id=key_of(2), key=key_of(2)))
    other = two | {"target": two["target"] | {"id": "sonnet", "session_id": key_of(9)}}
    return (
        an_entry("queued", {"class": "queued", "result": one}, "queued", 1),
        an_entry("judged", {"class": "surfaced", "result": one}, "surfaced", 2),
        Event(3, key_of(2), 1.0, "judged", "unknown", json.dumps({"result": other})),
    )


@pytest.mark.parametrize(
    ("narrow", "ids"),
    [
        ({}, [1, 2, 3]),
        ({"target": "fable"}, [1, 2]),
        ({"target": T.upper()}, [1, 2]),
        ({"target": "Fable"}, []),
        ({"target": ""}, []),
        ({"name": "unknown"}, [3]),
        ({"name": "queued"}, [1]),
        ({"correlation": "nightly"}, [1, 2]),
        ({"correlation": f"{{{DELIVERY.upper()}}}"}, [1, 2]),
        ({"correlation": key_of(2)}, [3]),
        ({"level": "lifecycle"}, [1, 2, 3]),
        ({"level": "info"}, [2, 3]),
        ({"level": "actionable"}, [3]),
        ({"level": "info", "target": "fable"}, [2]),
        ({"target": "sonnet", "correlation": "nightly"}, []),
    ],
)
def test_a_page_is_narrowed_after_it_was_cut(narrow, ids):
    """By name or id of the target, by class, by key or delivery, by the least level."""
    assert ids == [each["id"] for each in reader.narrowed(entries(), Narrow(**narrow))]


@pytest.mark.parametrize(
    ("narrow", "moves"),
    [
        ({}, True),
        ({"level": "info"}, True),
        ({"target": "fable"}, False),
        ({"target": ""}, False),
        ({"name": "unknown"}, False),
        ({"correlation": "nightly"}, False),
        ({"level": "info", "name": "unknown"}, False),
    ],
)
def test_what_was_left_out_for_once_is_not_passed_over(narrow, moves):
    """A06: a level is chosen for good; a look for one target is not."""
    assert moves == Narrow(**narrow).may_move
