"""The rows as they are read: what each one says of itself, and that nobody reads them all."""

from __future__ import annotations

import hashlib

import pytest

from dispatch import due, kept, pace, pulse, spool
from dispatch.database import Database
from dispatch.outcome import Outcome
from registry.record import replace

OWNER = "b0000000-0000-4000-8000-000000000001"
POSTBOX = "90000000-0000-4000-8000-000000000001"
OTHER = "90000000-0000-4000-8000-000000000002"
NOW = 1_796_048_000.25


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def key_of(number):
    """The key of line *number*."""
    return f"a0000000-0000-4000-8000-{number:012d}"


def put(database, number=1, *, state=kept.QUEUED, status=kept.AGAIN, postbox=POSTBOX):
    """Line *number*, in *state*; through *postbox* where it was claimed."""
    body = f"line {number}".encode()
    key = key_of(number)
    asked = spool.Draft(key, hashlib.sha256(body).digest(), body, "fable", OWNER, postbox)
    with database.writing() as link:
        if state == kept.QUEUED:
            spool.enqueue(link, asked, NOW, 1.5)
            return key
        spool.accept(link, asked, NOW, 1.5)
        if state != kept.CLAIMED:
            spool.settle(link, key, OWNER, Outcome(state, status), NOW)
    return key


def find(database, key):
    """The line with *key*."""
    with database.reading() as link:
        return kept.find(link, key)


def ask(database, question, *given):
    """What the function *question* says."""
    with database.reading() as link:
        return question(link, *given)


def test_a_line_is_read_back_as_it_was_accepted(database):
    """Its bytes, its target, its sender, its key as it was given."""
    body = b"\x00 any bytes \xff"
    asked = spool.Draft(
        key=key_of(1),
        digest=hashlib.sha256(body).digest(),
        body=body,
        target="fable",
        owner=OWNER,
        postbox=POSTBOX,
        sender="me",
        given_key="build-812",
        idle=1,
    )
    with database.writing() as link:
        spool.accept(link, asked, NOW, 2.5)

    line = find(database, key_of(1))

    assert (body, "fable", "me", "build-812", 1) == (
        line.body, line.target, line.sender, line.given_key, line.idle
    )  # fmt: skip
    assert (kept.CLAIMED, OWNER, POSTBOX, NOW, 2.5) == (
        line.state, line.owner, line.postbox, line.created_at, line.born
    )  # fmt: skip
    assert line.is_whole


def test_an_unknown_key_is_none(database):
    """Looking up what was never kept is not an error."""
    assert find(database, key_of(1)) is None


@pytest.mark.parametrize(
    ("state", "status", "is_settled", "may_be_tried"),
    [
        (kept.QUEUED, kept.FRESH, True, False),
        (kept.CLAIMED, kept.FRESH, False, False),
        (kept.SENT, kept.DONE, True, False),
        (kept.UNCERTAIN, kept.DOUBT, True, False),
        (kept.DELIVERED, kept.DONE, True, False),
        (kept.DEAD, kept.AGAIN, False, True),
        (kept.DEAD, kept.WAITING, False, True),
        (kept.DEAD, kept.OUT_OF_TIME, False, True),
        (kept.DEAD, kept.REFUSED, True, False),
        (kept.DEAD, kept.DOUBT, True, False),
        (kept.DEAD, kept.DAMAGED, True, False),
    ],
)
def test_what_a_key_may_do_is_said_by_state_and_status(
    database, state, status, is_settled, may_be_tried
):
    """Claimed: somebody's, or an orphan.  Safely dead: anybody's.  All else stands."""
    put(database, state=state, status=status)

    line = replace(find(database, key_of(1)), status=status)

    assert (is_settled, may_be_tried) == (line.is_settled, line.may_be_tried)


@pytest.mark.parametrize(
    "change",
    [
        {"body": b"line 2"},
        {"body": b""},
        {"digest": hashlib.sha256(b"line 2").digest()},
        {"key": key_of(2)},
        {"target": "sonnet"},
        {"sender": "else"},
        {"given_key": "x"},
        {"idle": 1},
        {"seal": b"\x00" * 16},
    ],
)
def test_a_line_that_is_not_what_was_accepted_is_not_whole(database, change):
    """Each of its immutable columns is under the seal, its bytes under the digest."""
    put(database)
    line = find(database, key_of(1))

    assert line.is_whole
    assert not replace(line, **change).is_whole


def test_what_may_change_is_not_under_the_seal(database):
    """A line is as whole after its life as before it."""
    put(database)
    line = find(database, key_of(1))

    assert replace(line, state=kept.DEAD, attempts=120, due_at=9.5, owner="x", born=3.5).is_whole


def test_attempts_are_numbered_from_one_and_never_twice(database):
    """The next one's number, whatever became of the others."""
    put(database)
    assert 1 == find(database, key_of(1)).next_attempt
    with database.writing() as link:
        spool.claim(link, [kept.find(link, key_of(1))], OWNER, POSTBOX, NOW)

    assert 2 == find(database, key_of(1)).next_attempt


def test_open_are_those_that_a_later_look_may_say_more_about(database):
    """Sent or in doubt, oldest first; what waits, is under way or over is not."""
    states = [kept.UNCERTAIN, kept.QUEUED, kept.SENT, kept.CLAIMED, kept.DELIVERED, kept.UNCERTAIN]
    for number, state in enumerate(states):
        put(database, number, state=state)

    assert (key_of(0), key_of(2), key_of(5)) == ask(database, kept.open_ones)


def test_claimed_lines_are_found_by_their_postbox_in_the_order_of_their_arrival(database):
    """Whoever has its lease judges them, and no others."""
    for number, postbox in enumerate([OTHER, POSTBOX, OTHER]):
        put(database, number, state=kept.CLAIMED, postbox=postbox)
    put(database, 3, state=kept.UNCERTAIN)

    assert (POSTBOX, OTHER) == ask(database, kept.claimed_through)
    assert (key_of(0), key_of(2)) == ask(database, kept.claimed, OTHER)
    assert () == ask(database, kept.claimed, OWNER)


def test_queued_lines_are_counted(database):
    """Those that wait, and no others."""
    assert 0 == ask(database, lambda link: kept.count(link, kept.QUEUED))
    for number, state in enumerate([kept.QUEUED, kept.CLAIMED, kept.QUEUED, kept.DELIVERED]):
        put(database, number, state=state)

    assert 2 == ask(database, lambda link: kept.count(link, kept.QUEUED))


def test_every_state_has_a_name():
    """As scripts see it."""
    assert {10, 11, 12, 13, 20, 50} == set(kept.STATE_NAMES)
    assert len(set(kept.STATE_NAMES.values())) == len(kept.STATE_NAMES)


# Cost: what is over is never read.


def statements_of(database, *questions):
    """The SQL of everything that *questions* ask."""
    asked = []
    with database.reading() as link:
        link.set_trace_callback(asked.append)
        for question in questions:
            question(link)
        link.set_trace_callback(None)
    return asked


PASS = {
    "open ones": kept.open_ones,
    "claimed through": kept.claimed_through,
    "claimed": lambda link: kept.claimed(link, POSTBOX),
    "count": lambda link: kept.count(link, kept.QUEUED),
    "find": lambda link: kept.find(link, key_of(1)),
    "targets with work": due.targets_with_work,
    "first lines": lambda link: due.first_lines(link, "fable"),
    "room": lambda link: pace.room(link, OWNER, NOW),
    "room again": lambda link: pace.room_again_at(link, OWNER, NOW),
    "said until": lambda link: pace.said_until(link, OWNER, b"x", NOW),
    "watched": pulse.watched,
    "watched by": lambda link: pulse.watched_by(link, NOW),
}


@pytest.mark.parametrize("question", PASS)
def test_no_question_of_a_pass_reads_the_lines_that_are_over(database, question):
    """P18: each uses an index; a million delivered lines cost a pass nothing."""
    put(database)
    (asked,) = statements_of(database, PASS[question])
    with database.reading() as link:
        plan = [row[3] for row in link.execute(f"EXPLAIN QUERY PLAN {asked}")]

    tables = [step for step in plan if " line" in step or " sent" in step]
    assert all("USING INDEX" in step or "USING COVERING INDEX" in step for step in tables), plan


def test_a_question_in_the_tables_own_order_would_read_them_all(database):
    """The control: SQLite spares itself the sorting, and reads every line that was ever kept."""
    with database.reading() as link:
        asked = "SELECT key FROM line WHERE state < 20 AND state = 12 ORDER BY id"
        plan = [row[3] for row in link.execute(f"EXPLAIN QUERY PLAN {asked}")]

    assert ["SCAN line"] == plan
