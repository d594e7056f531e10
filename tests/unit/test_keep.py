"""Spool and journal in one commit, and what a disk that is full does to them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path

import pytest

from dispatch import journal, keep, kept, outcome, spool
from dispatch.database import Database, DatabaseUnusable
from dispatch.errors import ClaimLost, DatabaseFull, JournalUnwritable, KeyConflict
from dispatch.judge import class_of_error
from dispatch.keep import Settled
from dispatch.outcome import Outcome
from dispatch.verdict import TABLE
from registry.errors import StateUnsafe
from registry.ids import new_uuid
from tests.fakes.envelopes import DELIVERY
from tests.fakes.evidence import NONCE, StoppedClock, an_evidence
from tests.fakes.household import (
    BEGAN,
    LINE,
    Household,
    a_draft,
    accept,
    asked,
    conclude,
    envelope_of,
    key_of,
    settle,
)

NOW = BEGAN + 0.25


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


@pytest.fixture
def database(home):
    """Its open database."""
    with home.opened() as opened:
        yield opened


def begin(database, owner="", attempt=1, body=LINE):
    """A kiss's line, accepted by *owner*."""
    draft = a_draft(body, **({"owner": owner} if owner else {}))
    return accept(database, draft, asked(attempt=attempt), NOW)


def line(database):
    """The line as it stands."""
    with database.reading() as link:
        return kept.find(link, DELIVERY)


def story(database, key=DELIVERY):
    """The events as (kind, class)."""
    with database.reading() as link:
        return [(event.kind, event.name) for event in journal.story(link, key)]


def found(result):
    """*result* as a later look keeps it."""
    return Settled(result, {}, outcome.of(result))


def record(home, database, settled, *, later):
    """Keep it as its owner does, or as a *later* look."""
    if later:
        keep.settle_doubt(database, home.house(), settled, NOW)
    else:
        keep.settle(database, home.house(), [settled], "me", NOW)


# Accepted.


def test_an_accepted_line_is_in_both_with_what_its_judge_needs(database):
    """A later process judges the attempt by what stands here."""
    assert 1 == begin(database)
    with database.reading() as link:
        body = json.loads(journal.story(link, DELIVERY)[0].body)

    assert (LINE, [("accepted", None)]) == (line(database).body, story(database))
    assert (NONCE, 1) == (body["nonce"], body["attempt"])
    assert envelope_of(asked(attempt=1)).wrapper_s == body["wrapper_s"]


def test_no_event_holds_the_line(database):
    """Only its length and digest are ever written into the journal."""
    begin(database, owner="me")
    with database.writing() as link:
        keep.note(link, journal.JUDGED, conclude(an_evidence()), {}, NOW)
    with database.reading() as link:
        bodies = "".join(event.body for event in journal.story(link, DELIVERY))

    assert LINE.decode() not in bodies


def test_a_known_key_writes_no_second_acceptance(database):
    """The line that is there comes back, and the journal stays as it was."""
    begin(database)

    assert line(database) == begin(database)
    assert [("accepted", None)] == story(database)


def test_a_key_conflict_writes_nothing(database):
    """Neither the line nor an event."""
    begin(database)

    with pytest.raises(KeyConflict):
        begin(database, body=b"tests are red")
    assert [("accepted", None)] == story(database)


def test_an_attempt_that_came_between_is_not_ours(home, database):
    """The folder that was laid out is of another number: ClaimLost, and nothing of it stays."""
    home.judged(intent=False, receipt=None, proof="none")
    before = line(database)

    with pytest.raises(ClaimLost):
        begin(database, attempt=3)
    assert (before, 2) == (line(database), len(story(database)))
    assert 2 == begin(database, attempt=2)


def test_a_line_counts_its_patience_from_its_acceptance(database):
    """On the relay's clock as it stands then."""
    with database.writing() as link:
        link.execute("UPDATE pulse SET watched = 777.5")
    begin(database)

    assert 777.5 == line(database).born


# Queued.


def enqueue(database, body=LINE, **changes):
    """A kiss that only keeps the line."""
    draft = a_draft(body, **changes)
    result = asked(delivery_id=draft.key, verdict=TABLE["queued"])
    return keep.enqueue(database, draft, result, NOW)


def test_a_queued_line_is_in_both(database):
    """None says that it waits now."""
    with database.writing() as link:
        link.execute("UPDATE pulse SET watched = 777.5")

    assert enqueue(database) is None
    assert (kept.QUEUED, 777.5) == (line(database).state, line(database).born)
    assert [("queued", "queued")] == story(database)


def test_a_key_that_is_queued_is_queued_once(database):
    """The line that is there comes back, and no second entry is written."""
    enqueue(database)

    assert line(database) == enqueue(database)
    assert [("queued", "queued")] == story(database)


# Settled.


def test_a_verdict_settles_the_line_and_tells_it(home, database):
    """State and event come from one commit."""
    begin(database, owner="me")
    settle(database, home.house(), conclude(an_evidence()), "me")

    assert (kept.SENT, ("judged", "delivered-start")) == (
        line(database).state, story(database)[-1]
    )  # fmt: skip


def several(database, count):
    """So many lines that one owner has claimed, and a verdict on each."""
    results = []
    for number in range(1, count + 1):
        key = key_of(number)
        result = asked(delivery_id=key, attempt=1, verdict=TABLE["delivered-start"])
        assert 1 == accept(database, a_draft(key=key, owner="me"), result)
        results.append(result)
    return results


def test_the_verdicts_of_a_run_are_kept_in_one_commit(home, database):
    """All of them, each with its own event."""
    results = several(database, 3)

    keep.settle(database, home.house(), list(map(found, results)), "me", NOW)

    with database.reading() as link:
        states = [kept.find(link, result.delivery_id).state for result in results]
    assert [kept.SENT] * 3 == states
    assert [("judged", "delivered-start")] * 3 == [
        story(database, result.delivery_id)[-1] for result in results
    ]


def test_of_verdicts_that_cannot_all_be_kept_none_is(home, database):
    """A trigger stands for a disk that breaks in the middle."""
    results = several(database, 3)
    with database.writing() as link:
        link.execute(
            "CREATE TEMP TRIGGER broken BEFORE INSERT ON event"
            f" WHEN NEW.delivery = '{key_of(3)}' BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )

    with pytest.raises(JournalUnwritable, match="broken"):
        keep.settle(database, home.house(), list(map(found, results)), "me", NOW)
    with database.reading() as link:
        assert {kept.CLAIMED} == {kept.find(link, each.delivery_id).state for each in results}
    assert [("accepted", None)] == story(database)


def test_a_claim_that_was_judged_by_a_later_look_can_be_claimed_again(home, database):
    """The orphan's verdict settles the line; its owner, were it alive, settles nothing any more."""
    begin(database, owner="me")

    look = found(asked(verdict=TABLE["carrier-exit"], attempt=1))
    keep.settle_doubt(database, home.house(), look, NOW)

    assert ("verified", "carrier-exit") == story(database)[-1]
    assert 2 == begin(database, attempt=2)
    settle(database, home.house(), conclude(an_evidence()), "me")
    assert kept.CLAIMED == line(database).state


@pytest.mark.parametrize("name", ["surfaced", "door-denied", "door-dropped"])
def test_a_look_at_an_attempt_of_once_is_no_news_of_the_newest(home, database, name):
    """Somebody queued the line again meanwhile: what is being tried now is judged by itself."""
    begin(database, owner="me")
    settle(database, home.house(), asked(verdict=TABLE["unknown"], attempt=1), "me")
    with database.writing() as link:
        spool.queue_again(link, kept.find(link, DELIVERY), 1.5)
    home.taken()
    before = line(database), story(database)

    look = found(asked(verdict=TABLE[name], attempt=1))
    keep.settle_doubt(database, home.house(), look, NOW)

    assert before == (line(database), story(database))


def test_a_look_at_a_line_whose_row_is_gone_is_told_all_the_same(home, database):
    """The journal outlives it."""
    begin(database)
    with database.writing() as link:
        link.execute("DELETE FROM line")

    look = found(asked(verdict=TABLE["surfaced"], attempt=1))
    keep.settle_doubt(database, home.house(), look, NOW)

    assert ("verified", "surfaced") == story(database)[-1]


# Looked up.


def test_a_key_that_nobody_used_is_found_as_none(database):
    """Looking writes nothing."""
    assert keep.find(database, a_draft()) is None
    assert (None, []) == (line(database), story(database))


def test_a_known_line_is_found_as_it_stands(database):
    """Before the lease is taken: who owns it does not matter."""
    begin(database)

    assert line(database) == keep.find(database, a_draft())


@pytest.mark.parametrize("other", [a_draft(b"tests are red"), a_draft(target="sonnet")])
def test_another_line_under_a_known_key_is_a_conflict_when_it_is_looked_for(database, other):
    """Other bytes or another target: told before anybody waits for the lease."""
    begin(database)

    with pytest.raises(KeyConflict, match="to fable"):
        keep.find(database, other)


# Full disks, and other writers.


def fill_the_disk(database):
    """From now on no page more."""
    with database.reading() as link:
        pages = link.execute("PRAGMA page_count").fetchone()[0]
        link.execute(f"PRAGMA max_page_count={pages}")
        with database.writing():
            for _ in range(200):
                try:
                    link.execute(
                        "INSERT INTO event(delivery, at, kind, body) VALUES('x', 1, 'k', ?)",
                        ("x" * 1000,),
                    )
                except Exception:  # noqa: BLE001 - the disk is full, as wished
                    break


@pytest.mark.parametrize("ask", [begin, enqueue])
def test_on_a_full_disk_nothing_is_accepted(database, ask):
    """73, and nothing was started; the ballast is for what was begun."""
    fill_the_disk(database)

    with pytest.raises(DatabaseFull):
        ask(database, body=b"x" * 60_000)
    assert (None, []) == (line(database), story(database))
    assert os.path.exists(f"{os.path.dirname(database.path)}/ballast")


class Filled(Database):
    """A disk that is full as long as the ballast lies there."""

    @contextlib.contextmanager
    def writing(self):
        """As ever, once there is room."""
        with super().writing() as link:
            if os.path.exists(f"{os.path.dirname(self.path)}/ballast"):
                raise DatabaseFull(self.path, "database or disk is full")
            yield link


@pytest.mark.parametrize("later", [False, True])
def test_on_a_full_disk_what_was_begun_is_settled_in_the_room_of_the_ballast(home, database, later):
    """It is given up for that, and only once."""
    begin(database, owner="me")
    result = conclude(an_evidence())

    with contextlib.closing(Filled(database.path)) as filled:
        record(home, filled, found(result), later=later)

    assert kept.SENT == line(database).state
    assert not os.path.exists(home.house().places.ballast)


@pytest.mark.parametrize("later", [False, True])
def test_on_a_full_disk_without_ballast_the_outcome_is_said_though_not_kept(home, database, later):
    """74 names the class that the delivery had; the line stays claimed."""
    begin(database, owner="me")
    os.unlink(home.house().places.ballast)
    fill_the_disk(database)
    flood = Settled(conclude(an_evidence()), {"stdout": "x" * 100_000}, Outcome(20, kept.DONE))

    with pytest.raises(JournalUnwritable, match="delivered-start") as caught:
        record(home, database, flood, later=later)
    assert "delivered-start" == caught.value.found
    assert kept.CLAIMED == line(database).state


@pytest.mark.parametrize("later", [False, True])
def test_a_ballast_that_is_not_enough_is_given_once(home, database, later):
    """The disk is fuller than that: 74, and not an endless try."""
    begin(database, owner="me")
    fill_the_disk(database)
    flood = Settled(conclude(an_evidence()), {"stdout": "x" * 100_000}, Outcome(20, kept.DONE))

    with pytest.raises(JournalUnwritable):
        record(home, database, flood, later=later)
    assert not os.path.exists(home.house().places.ballast)


@contextlib.contextmanager
def another_writer(home):
    """Somebody who is stopped in the middle of a write."""
    with open(f"{home.state}/spool.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_while_another_writer_sleeps_nothing_is_accepted(home, database):
    """73 after ten seconds, and nothing was started; when it is over the key is as new."""
    clock = StoppedClock()
    began = clock.at
    with contextlib.closing(Database(database.path, clock)) as patient:
        with another_writer(home), pytest.raises(DatabaseUnusable, match="for 10 s") as caught:
            begin(patient)
        assert 10.0 <= clock.at - began < 10.1
        assert "spool-unwritable" == class_of_error(caught.value)
        assert (None, []) == (line(database), story(database))
        assert 1 == begin(patient)


@pytest.mark.parametrize("later", [False, True])
def test_while_another_writer_sleeps_the_outcome_is_said_though_not_kept(home, database, later):
    """74 names the class that the delivery had; the line stays claimed until somebody looks."""
    begin(database, owner="me")
    result = conclude(an_evidence())

    patient = Database(database.path, StoppedClock())
    with another_writer(home), pytest.raises(JournalUnwritable, match="delivered-start"):
        record(home, patient, found(result), later=later)
    patient.close()
    assert kept.CLAIMED == line(database).state
    assert os.path.exists(home.house().places.ballast)


# Refused.


def test_a_refusal_is_told_even_when_nothing_was_accepted(home, database):
    """`zdo show` knows every refusal."""
    assert keep.refuse(home.house(), asked(verdict=TABLE["target-unknown"]), new_uuid(), NOW)

    assert (None, [("refused", "target-unknown")]) == (line(database), story(database))


def test_a_refusal_after_the_acceptance_is_the_lines_verdict(home, database):
    """The line is settled with it, so that its key can be tried again."""
    begin(database, owner="me")
    keep.refuse(home.house(), asked(verdict=TABLE["carrier-busy"]), "me", NOW)

    assert (kept.DEAD, kept.AGAIN) == (line(database).state, line(database).status)
    assert ("judged", "carrier-busy") == story(database)[-1]


def test_a_strangers_refusal_leaves_the_line_alone(home, database):
    """A second kiss with the key, refused for its own reasons, is told and settles nothing."""
    begin(database)
    keep.refuse(home.house(), asked(verdict=TABLE["key-conflict"]), new_uuid(), NOW)

    assert kept.CLAIMED == line(database).state
    assert ("refused", "key-conflict") == story(database)[-1]


def test_a_refusal_stands_where_it_cannot_be_written(home):
    """A state folder that is a file takes nothing: whoever refuses hears of it, and no more."""
    Path(home.state).write_text("", encoding="utf-8")
    refused = asked(verdict=TABLE["target-unknown"])

    assert not keep.refuse(home.house(), refused, new_uuid(), NOW)

    assert os.path.isfile(home.state)


@pytest.mark.parametrize(
    ("damage", "error"), [("state", StateUnsafe), ("database", DatabaseUnusable)]
)
def test_a_state_that_cannot_be_used_is_spool_unwritable(home, damage, error):
    """Folder or file: each its own error, and the same class, before anything starts."""
    if damage == "state":
        Path(home.state).write_text("", encoding="utf-8")
    else:
        os.mkdir(home.state, 0o700)
        os.mkdir(f"{home.state}/zdo.db")

    with pytest.raises(error) as caught:
        keep.open_database(home.house())
    assert "spool-unwritable" == class_of_error(caught.value)
