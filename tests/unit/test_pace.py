"""The receiver's limits, kept from this side: 30 lines a minute, no text twice in 31 s."""

from __future__ import annotations

import hashlib

import pytest

from dispatch import pace
from dispatch.database import Database
from tests.fakes.envelopes import P, T
from tests.fakes.rows import a_line

NOW = 1_796_048_000.25
YEAR_S = 365 * 86_400.0
TEXT = hashlib.sha256(b"tests are green").digest()


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def said(database, count=1, *, at=NOW, session=T, text="line"):
    """So many lines of different texts have gone to *session*."""
    lines = [a_line(body=f"{text} {number}".encode()) for number in range(count)]
    with database.writing() as link:
        pace.note(link, session, lines, at)


def ask(database, question, *given):
    """What *question* says of T."""
    with database.reading() as link:
        return question(link, T, *given)


def test_a_session_that_had_nothing_takes_thirty(database):
    """As many as an inbox takes at once."""
    assert 30 == ask(database, pace.room, NOW)
    assert NOW == ask(database, pace.room_again_at, NOW)


@pytest.mark.parametrize(("gone", "left"), [(1, 29), (29, 1), (30, 0), (45, 0)])
def test_what_has_gone_takes_room_for_a_minute(database, gone, left):
    """And then no more."""
    said(database, gone)

    assert left == ask(database, pace.room, NOW)
    assert left == ask(database, pace.room, NOW + 59.9)
    assert 30 == ask(database, pace.room, NOW + 60)


def test_there_is_room_again_when_the_oldest_is_a_minute_old(database):
    """Not when the newest is."""
    said(database, 10, at=NOW)
    said(database, 20, at=NOW + 30, text="more")

    assert (0, NOW + 60) == (
        ask(database, pace.room, NOW + 31), ask(database, pace.room_again_at, NOW + 31)
    )  # fmt: skip
    assert 10 == ask(database, pace.room, NOW + 60)


def test_sessions_have_each_their_own_minute(database):
    """None waits for another's."""
    said(database, 30, session=P)

    assert 30 == ask(database, pace.room, NOW)


def test_a_text_is_a_duplicate_for_31_seconds(database):
    """To this session, and no other text is."""
    line = a_line()
    with database.writing() as link:
        pace.note(link, T, [line], NOW)

    assert NOW + 31 == ask(database, pace.said_until, line.digest, NOW)
    assert NOW + 31 == ask(database, pace.said_until, line.digest, NOW + 30.9)
    assert NOW + 31 == ask(database, pace.said_until, line.digest, NOW + 31)
    assert NOW == ask(database, pace.said_until, b"another", NOW)
    with database.reading() as link:
        assert NOW == pace.said_until(link, P, line.digest, NOW)


def test_the_latest_of_equal_texts_counts(database):
    """Said before and again: the spacing begins with the last one."""
    line = a_line()
    with database.writing() as link:
        pace.note(link, T, [line], NOW)
        pace.note(link, T, [line], NOW + 20)

    assert NOW + 51 == ask(database, pace.said_until, line.digest, NOW + 25)


@pytest.mark.parametrize("jump", [-YEAR_S, -3600.0, -0.5, YEAR_S])
def test_a_clock_that_jumps_never_takes_the_room_away(database, jump):
    """Set back, what is in the future does not count; set forward, it is long ago."""
    said(database, 30)

    assert 30 == ask(database, pace.room, NOW + jump)
    assert NOW + jump == ask(database, pace.room_again_at, NOW + jump)
    assert NOW + jump == ask(database, pace.said_until, TEXT, NOW + jump)


def test_what_did_not_get_to_its_door_does_not_count(database):
    """Its next try need not wait for it; what was said before it still counts."""
    line, other = a_line(), a_line(body=b"tests are red")
    for at, lines in ((NOW - 40, [line]), (NOW, [line, other])):
        with database.writing() as link:
            pace.note(link, T, lines, at)
            pace.note(link, P, lines, at)
    assert (27, NOW + 31) == (
        ask(database, pace.room, NOW), ask(database, pace.said_until, line.digest, NOW)
    )  # fmt: skip

    with database.writing() as link:
        pace.take_back(link, T, line)

    assert (28, NOW) == (
        ask(database, pace.room, NOW), ask(database, pace.said_until, line.digest, NOW)
    )  # fmt: skip
    assert NOW + 31 == ask(database, pace.said_until, other.digest, NOW)
    with database.reading() as link:
        assert 27 == pace.room(link, P, NOW)


def rows(database):
    """How much is remembered."""
    with database.reading() as link:
        return link.execute("SELECT count(*) FROM sent").fetchone()[0]


@pytest.mark.parametrize(("jump", "left"), [(59.0, 31), (60.0, 1), (-0.5, 1), (-YEAR_S, 1)])
def test_what_no_longer_matters_is_forgotten(database, jump, left):
    """Older than a minute, or left in the future by a clock that was set back."""
    said(database, 30)
    said(database, 1, at=NOW + jump)

    assert left == rows(database)


def test_a_note_is_kept_with_its_transaction(database):
    """A claim that failed counts nothing."""

    def claim():
        with database.writing() as link:
            pace.note(link, T, [a_line()], NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        claim()
    assert 0 == rows(database)
