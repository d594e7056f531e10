"""Who is registered, in one spelling, and where each one's cursor stands."""

from __future__ import annotations

import pytest

from dispatch import senders
from dispatch.database import Database
from dispatch.errors import SessionDeleted
from dispatch.senders import LOST_CURSOR, Registered

NOW = 1_796_048_000.375
ID = "a0000000-0000-4000-8000-00000000000a"


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


@pytest.fixture
def link(database):
    """A write transaction of one test."""
    with database.writing() as opened:
        yield opened


@pytest.mark.parametrize(
    ("spelled", "kept"),
    [
        (ID, ID),
        (f" {{{ID.upper()}}} ", ID),
        (ID.replace("-", ""), ID),
        ("cron", "cron"),
        ("Cron", "Cron"),
        ("two words", "two words"),
        ("ü" * 100, "ü" * 100),
        ("ü" * 101, None),
        ("x" * 200, "x" * 200),
        ("x" * 201, None),
        ("", None),
        (" ", None),
        ("a\nb", None),
        ("\x1b[31m", None),
        ("\udc80", None),
        ("anonymous", None),
    ],
)
def test_a_session_has_one_spelling(spelled, kept):
    """Every UUID is one id; another text is itself, as long as a person can read it."""
    assert kept == senders.canonical(spelled)


def test_a_session_is_found_in_every_spelling(link):
    """Also one that it was not registered with; what cannot be one is nobody."""
    assert senders.register(link, ID.upper(), "nightly", NOW)

    found = senders.find(link, f"urn:uuid:{ID}")

    assert Registered(ID, "nightly", NOW, None, None) == found
    assert [None] * 3 == [senders.find(link, odd) for odd in ("\udc80", "anonymous", ID[:-1])]


def test_who_registers_twice_is_not_new(link):
    """Its cursor stays, and so does its name unless it gives another."""
    senders.register(link, ID, "one", NOW)
    assert senders.move(link, senders.find(link, ID), 7)

    assert not senders.register(link, ID, None, NOW + 1)
    assert Registered(ID, "one", NOW, None, 7) == senders.find(link, ID)
    assert not senders.register(link, ID, "two", NOW + 2)
    assert Registered(ID, "two", NOW, None, 7) == senders.find(link, ID)


def test_who_has_no_name_has_none(link):
    """Not an empty one."""
    senders.register(link, ID, None, NOW)
    senders.register(link, ID, None, NOW)

    assert senders.find(link, ID).name is None


def test_a_deleted_session_is_there_still_and_can_be_taken_back(link):
    """Deletion is soft: the cursor waits."""
    senders.register(link, ID, "one", NOW)
    senders.move(link, senders.find(link, ID), 7)

    assert senders.unregister(link, ID.upper(), NOW + 1)
    assert Registered(ID, "one", NOW, NOW + 1, 7) == senders.find(link, ID)
    assert not senders.unregister(link, ID, NOW + 2)
    assert NOW + 1 == senders.find(link, ID).deleted_at
    assert senders.register(link, ID, None, NOW + 3)
    assert Registered(ID, "one", NOW + 3, None, 7) == senders.find(link, ID)


@pytest.mark.parametrize("stranger", ["nobody", "\udc80"])
def test_a_stranger_cannot_be_unregistered(link, stranger):
    """Nothing is made by it."""
    assert not senders.unregister(link, stranger, NOW)
    assert () == senders.every(link)


def test_all_are_listed_in_their_order(link):
    """Also the deleted ones."""
    for number, session in enumerate(("zeta", ID, "alpha")):
        senders.register(link, session, None, NOW - number)
    senders.unregister(link, ID, NOW)

    assert ["zeta", ID, "alpha"] == [each.session for each in senders.every(link)]


def test_a_cursor_moves_from_where_it_was_seen(link):
    """Whoever read before somebody else moved it does not move it back."""
    senders.register(link, ID, None, NOW)
    fresh = senders.find(link, ID)

    assert senders.move(link, fresh, 0)
    assert 0 == senders.find(link, ID).cursor
    assert not senders.move(link, fresh, 50)
    seen = senders.find(link, ID)
    assert senders.move(link, seen, 100)
    assert not senders.move(link, seen, 50)
    assert 100 == senders.find(link, ID).cursor


def test_a_deleted_session_does_not_move(link):
    """It was unregistered while it read; its page comes again if it is taken back."""
    senders.register(link, ID, None, NOW)
    seen = senders.find(link, ID)
    senders.unregister(link, ID, NOW)

    assert not senders.move(link, seen, 50)
    assert senders.find(link, ID).cursor is None


def test_a_cursor_that_nobody_knows_is_below_every_entry(link):
    """Neither fresh nor at the start."""
    senders.register(link, ID, None, NOW)
    link.execute("UPDATE reader SET cursor = ?", (LOST_CURSOR,))

    lost = senders.find(link, ID)

    assert -2 == lost.cursor
    assert senders.move(link, lost, 3)
    assert 3 == senders.find(link, ID).cursor


def test_a_deleted_sender_is_warned_of_and_a_deleted_target_refused(link):
    """A08: the first kisses all the same, the second is 67."""
    senders.register(link, ID, None, NOW)
    senders.refuse_deleted_target(link, ID)
    senders.refuse_deleted_target(link, "a stranger")
    assert [None, None] == [senders.warning_for(link, each) for each in (ID, "anonymous")]

    senders.unregister(link, ID, NOW)

    said = f"the sender {ID} was unregistered at 2026-11-30T14:13:20.375Z"
    assert said == senders.warning_for(link, ID.upper())
    with pytest.raises(
        SessionDeleted, match=r"was unregistered at 2026-11-30T14:13:20\.375Z"
    ) as told:
        senders.refuse_deleted_target(link, ID.upper())
    assert (ID, NOW) == (told.value.session, told.value.deleted_at)


def test_the_present_are_told_from_strangers_and_from_those_who_left(link):
    """Three answers."""
    senders.register(link, ID, None, NOW)

    assert senders.find(link, ID) == senders.present(link, ID)
    assert senders.present(link, "nobody") is None
    senders.unregister(link, ID, NOW)
    with pytest.raises(SessionDeleted):
        senders.present(link, ID)


def test_a_registration_is_kept_with_its_transaction(database):
    """What was rolled back never happened."""

    def begin():
        with database.writing() as link:
            senders.register(link, ID, None, NOW)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        begin()
    with database.reading() as link:
        assert () == senders.every(link)


def test_a_session_is_found_by_its_index(database):
    """Every kiss asks; a thousand readers cost it nothing."""
    with database.reading() as link:
        plan = link.execute(f"EXPLAIN QUERY PLAN {senders._SELECT} WHERE session = 'x'").fetchall()

    assert [True] == ["USING INDEX sqlite_autoindex_reader_1" in row[3] for row in plan]
