"""The kept lines: once by key, settled by their owner alone."""

from __future__ import annotations

import hashlib

import pytest

from dispatch import spool
from dispatch.database import Database
from dispatch.errors import KeyConflict
from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE
from registry.record import replace

KEY = "a0000000-0000-4000-8000-000000000001"
OWNER = "b0000000-0000-4000-8000-000000000001"
OTHER = "b0000000-0000-4000-8000-000000000002"
NOW = 1_796_048_000.0


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def draft(body=b"tests are green", owner=OWNER):
    """A line that asks to be kept."""
    return spool.Draft(
        key=KEY,
        digest=hashlib.sha256(body).digest(),
        body=body,
        station="mini",
        target="fable",
        owner=owner,
    )


def accept(database, asked):
    """Accept *asked* in a transaction of its own."""
    with database.writing() as link:
        return spool.accept(link, asked, NOW)


def settle(database, fate, owner=OWNER):
    """Settle the line in a transaction of its own."""
    with database.writing() as link:
        return spool.settle(link, KEY, owner, fate, NOW)


def find(database):
    """The line as it stands."""
    with database.reading() as link:
        return spool.find(link, KEY)


def test_a_new_line_is_its_first_attempt(database):
    """It is claimed by who brought it, so that nobody else takes it up."""
    assert accept(database, draft()) == 1
    assert find(database).state == spool.CLAIMED


def test_other_bytes_under_a_known_key_are_refused(database):
    """Silence here would lose a line."""
    accept(database, draft())

    with pytest.raises(KeyConflict):
        accept(database, draft(b"tests are red"))


@pytest.mark.parametrize(
    ("fate", "state"),
    [
        (DONE, spool.DELIVERED),
        (OPEN, spool.UNCERTAIN),
        (QUEUE, spool.DEAD),
        (NONE, spool.DEAD),
        (FAILED, spool.DEAD),
    ],
)
def test_each_fate_has_its_state(database, fate, state):
    """Doubt is a state of its own; the rest is delivered or a dead letter."""
    accept(database, draft())

    assert settle(database, fate)
    assert state == find(database).state


@pytest.mark.parametrize("fate", [QUEUE, NONE])
def test_what_never_reached_the_door_may_be_claimed_again(database, fate):
    """The same key after a safe failure is the next attempt."""
    accept(database, draft())
    settle(database, fate)

    assert accept(database, draft(owner=OTHER)) == 2
    assert find(database).state == spool.CLAIMED


@pytest.mark.parametrize("fate", [DONE, OPEN, FAILED])
def test_what_may_be_in_is_never_claimed_again(database, fate):
    """The same key then only tells what became of the line."""
    accept(database, draft())
    settle(database, fate)

    assert isinstance(accept(database, draft(owner=OTHER)), spool.Kept)


def test_a_stranger_settles_nothing(database):
    """A second kiss with the key, refused for its own reasons, does not touch the first."""
    accept(database, draft())

    assert not settle(database, QUEUE, owner=OTHER)
    assert find(database).state == spool.CLAIMED


def test_doubt_is_settled_once_and_delivery_stays(database):
    """A later look may lift an open line; a delivered one is never lowered."""
    accept(database, draft())
    settle(database, OPEN)
    with database.writing() as link:
        spool.settle_doubt(link, KEY, DONE, NOW)
    with database.writing() as link:
        spool.settle_doubt(link, KEY, OPEN, NOW)

    assert find(database).state == spool.DELIVERED


def test_settling_never_changes_the_width_of_a_row(database):
    """On a full disk a row can be settled only inside its own bytes."""
    accept(database, draft())
    with database.reading() as link:
        link.execute("SELECT 1")
        before = link.execute("SELECT length(owner), length(status) FROM line").fetchone()
    settle(database, DONE)
    with database.reading() as link:
        after = link.execute("SELECT length(owner), length(status) FROM line").fetchone()

    assert before == after == (36, 9)


@pytest.mark.parametrize(
    ("fate", "settled", "may_be_tried"),
    [
        (None, False, False),
        (DONE, True, False),
        (OPEN, True, False),
        (FAILED, True, False),
        (QUEUE, False, True),
        (NONE, False, True),
    ],
)
def test_a_line_is_settled_unless_it_is_tried_or_may_be(database, fate, settled, may_be_tried):
    """A claimed one is somebody's or an orphan; a safe failure may be claimed; the rest stands."""
    accept(database, draft())
    if fate is not None:
        settle(database, fate)

    found = find(database)

    assert (settled, may_be_tried) == (found.is_settled, found.may_be_tried)


def test_a_claim_of_a_dead_owner_is_not_claimed_over(database):
    """It must be judged first: nobody knows yet whether it reached the door."""
    accept(database, draft())

    kept = accept(database, draft(owner=OTHER))

    assert (spool.CLAIMED, False) == (kept.state, kept.is_settled)
    assert not settle(database, QUEUE, owner=OTHER)


@pytest.mark.parametrize(
    "changes", [{"body": b"x", "digest": b"x"}, {"target": "sonnet"}, {"digest": b"x"}]
)
def test_a_conflict_is_refused_by_bytes_and_by_target(database, changes):
    """Each alone is another line; the same line is none."""
    accept(database, draft())
    known = find(database)
    spool.refuse_conflict(known, draft(owner=OTHER))

    with pytest.raises(KeyConflict, match="to fable"):
        spool.refuse_conflict(known, replace(draft(), **changes))


def test_an_unknown_key_is_none(database):
    """Looking up what was never kept is not an error."""
    assert find(database) is None
