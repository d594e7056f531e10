"""What happened, in order."""

from __future__ import annotations

import pytest

from dispatch import journal
from dispatch.database import Database

ONE, TWO = "d0000000-0000-4000-8000-000000000001", "d0000000-0000-4000-8000-000000000002"


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def test_a_story_is_told_in_order_and_of_one_delivery(database):
    """Oldest first, whatever the clock said; the class stands beside the body."""
    with database.writing() as link:
        journal.add(link, ONE, journal.ACCEPTED, {"attempt": 1}, 20.0)
        journal.add(link, TWO, journal.REFUSED, {"class": "target-unknown"}, 5.0)
        journal.add(link, ONE, journal.JUDGED, {"class": "unknown"}, 10.0)
    with database.reading() as link:
        story = journal.story(link, ONE)

    assert [("accepted", None), ("judged", "unknown")] == [(e.kind, e.name) for e in story]
    assert [20.0, 10.0] == [e.at for e in story]
    assert story[0].id < story[1].id
    assert story[0].body == '{"attempt": 1}'


def test_an_unknown_delivery_has_no_story(database):
    """Nothing is not an error."""
    with database.reading() as link:
        assert () == journal.story(link, ONE)


def test_what_begins_an_attempt_and_what_ends_one_are_told_apart():
    """A kiss or the relay begins; a verdict or a later look ends; the rest is about waiting."""
    waiting = {journal.QUEUED, journal.DEFERRED, journal.REQUEUED, journal.DROPPED}
    kinds = [set(journal.BEGUN), set(journal.VERDICTS), waiting, {journal.REFUSED}]

    assert len(set().union(*kinds)) == sum(map(len, kinds))


def test_an_event_is_kept_with_its_transaction(database):
    """What was rolled back never happened."""

    def begin():
        with database.writing() as link:
            journal.add(link, ONE, journal.ACCEPTED, {}, 1.0)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        begin()
    with database.reading() as link:
        assert () == journal.story(link, ONE)


def test_the_newest_class_is_that_of_the_newest_entry_about_the_line(database):
    """A refused kiss with its key says nothing of it; an entry without a class has none."""
    told = []
    with database.writing() as link:
        told.append(journal.newest(link, ONE)[0])
        for kind, name in [
            (journal.QUEUED, "queued"),
            (journal.DEFERRED, "target-status"),
            (journal.REFUSED, "key-conflict"),
            (journal.CLAIMED, None),
        ]:
            journal.add(link, ONE, kind, {"class": name}, 1.0)
            told.append(journal.newest(link, ONE)[0])

    assert [None, "queued", "target-status", "target-status", None] == told


@pytest.mark.parametrize("body", ["[]", "{}", "half", '{"result": null}'])
def test_an_attempt_that_nobody_can_read_was_for_no_session(database, body):
    """Then only the line's address is known."""
    with database.writing() as link:
        journal.add(link, "d", journal.CLAIMED, {}, 1.5)
        link.execute("UPDATE event SET body = ?", (body,))

        assert journal.session_of(link, "d") is None
        assert journal.session_of(link, "no such delivery") is None
