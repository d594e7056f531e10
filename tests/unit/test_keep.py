"""Spool and journal in one commit, and what a disk that is full does to them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path

import pytest

from dispatch import journal, keep, spool
from dispatch.database import Database, DatabaseUnusable
from dispatch.errors import JournalUnwritable, KeyConflict
from dispatch.judge import class_of_error
from dispatch.verdict import TABLE
from registry.errors import StateUnsafe
from registry.ids import new_uuid
from tests.fakes.envelopes import DELIVERY
from tests.fakes.evidence import NONCE, StoppedClock, an_evidence
from tests.fakes.household import LINE, Household, a_draft, asked, conclude

NOW = 1_796_048_000.0


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


@pytest.fixture
def database(home):
    """Its open database."""
    opened = home.database()
    yield opened
    opened.close()


def kept(database):
    """The line and its events as (kind, class)."""
    with database.reading() as link:
        events = journal.story(link, DELIVERY)
        return spool.find(link, DELIVERY), [(event.kind, event.name) for event in events]


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


def test_an_accepted_line_is_in_both_with_its_nonce(database):
    """A later process judges the attempt by what stands here."""
    assert keep.accept(database, a_draft(), asked(), NONCE, NOW) == 1
    line, events = kept(database)
    with database.reading() as link:
        body = json.loads(journal.story(link, DELIVERY)[0].body)

    assert line.body == LINE
    assert events == [("accepted", None)]
    assert (NONCE, 1) == (body["nonce"], body["attempt"])


def test_no_event_holds_the_line(database):
    """Only its length and digest are ever written into the journal."""
    owner = new_uuid()
    keep.accept(database, a_draft(owner=owner), asked(), NONCE, NOW)
    keep.settle(database, conclude(an_evidence()), {}, owner, NOW)
    with database.reading() as link:
        bodies = "".join(event.body for event in journal.story(link, DELIVERY))

    assert LINE.decode() not in bodies


def test_a_known_key_writes_no_second_acceptance(database):
    """The line that is there comes back, and the journal stays as it was."""
    keep.accept(database, a_draft(), asked(), NONCE, NOW)

    assert isinstance(keep.accept(database, a_draft(), asked(), "other", NOW), spool.Kept)
    assert kept(database)[1] == [("accepted", None)]


def test_a_key_conflict_writes_nothing(database):
    """Neither the line nor an event."""
    keep.accept(database, a_draft(), asked(), NONCE, NOW)

    with pytest.raises(KeyConflict):
        keep.accept(database, a_draft(b"tests are red"), asked(), NONCE, NOW)
    assert kept(database)[1] == [("accepted", None)]


def test_a_verdict_settles_the_line_and_tells_it(database):
    """State and event come from one commit."""
    owner = new_uuid()
    keep.accept(database, a_draft(owner=owner), asked(), NONCE, NOW)
    keep.settle(database, conclude(an_evidence()), {}, owner, NOW)
    line, events = kept(database)

    assert line.state == spool.DELIVERED
    assert events[1:] == [("judged", "delivered-start")]


def test_a_claim_that_was_judged_by_a_later_look_can_be_claimed_again(database):
    """The orphan's verdict settles the line; its owner, were it alive, settles nothing any more."""
    draft = a_draft()
    keep.accept(database, draft, asked(), NONCE, NOW)

    keep.settle_doubt(database, asked(verdict=TABLE["carrier-exit"]), {}, NOW)

    assert kept(database)[1][-1] == ("verified", "carrier-exit")
    assert keep.accept(database, a_draft(), asked(), NONCE, NOW) == 2
    keep.settle(database, conclude(an_evidence()), {}, draft.owner, NOW)
    assert kept(database)[0].state == spool.CLAIMED


def test_a_key_that_nobody_used_is_found_as_none(database):
    """Looking writes nothing."""
    assert keep.find(database, a_draft()) is None
    assert (None, []) == kept(database)


def test_a_known_line_is_found_as_it_stands(database):
    """Before the lease is taken: who owns it does not matter."""
    keep.accept(database, a_draft(), asked(), NONCE, NOW)

    found = keep.find(database, a_draft())

    assert (LINE, spool.CLAIMED) == (found.body, found.state)


@pytest.mark.parametrize("other", [a_draft(b"tests are red"), a_draft(target="sonnet")])
def test_another_line_under_a_known_key_is_a_conflict_when_it_is_looked_for(database, other):
    """Other bytes or another target: told before anybody waits for the lease."""
    keep.accept(database, a_draft(), asked(), NONCE, NOW)

    with pytest.raises(KeyConflict, match="to fable"):
        keep.find(database, other)


def test_on_a_full_disk_nothing_is_accepted(database):
    """73, and nothing was started."""
    fill_the_disk(database)

    with pytest.raises(DatabaseUnusable, match="full"):
        keep.accept(database, a_draft(b"x" * 60_000), asked(), NONCE, NOW)
    assert (None, []) == kept(database)


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
            keep.accept(patient, a_draft(), asked(), NONCE, NOW)
        assert 10.0 <= clock.at - began < 10.1
        assert ("spool-unwritable", (None, [])) == (class_of_error(caught.value), kept(database))
        assert keep.accept(patient, a_draft(), asked(), NONCE, NOW) == 1


@pytest.mark.parametrize("later", [False, True])
def test_while_another_writer_sleeps_the_outcome_is_said_though_not_kept(home, database, later):
    """74 names the class that the delivery had; the line stays claimed until somebody looks."""
    owner = new_uuid()
    keep.accept(database, a_draft(owner=owner), asked(), NONCE, NOW)
    owners = () if later else (owner,)
    settle = keep.settle_doubt if later else keep.settle

    patient = Database(database.path, StoppedClock())
    with another_writer(home), pytest.raises(JournalUnwritable, match="delivered-start"):
        settle(patient, conclude(an_evidence()), {}, *owners, NOW)
    patient.close()
    assert kept(database)[0].state == spool.CLAIMED


@pytest.mark.parametrize("later", [False, True])
def test_on_a_full_disk_the_outcome_is_said_though_not_kept(database, later):
    """74 names the class that the delivery had."""
    owner = new_uuid()
    keep.accept(database, a_draft(owner=owner), asked(), NONCE, NOW)
    fill_the_disk(database)
    flood = {"stdout": "x" * 100_000}
    result = conclude(an_evidence())
    owners = () if later else (owner,)
    settle = keep.settle_doubt if later else keep.settle

    with pytest.raises(JournalUnwritable, match="delivered-start") as caught:
        settle(database, result, flood, *owners, NOW)
    assert caught.value.found == "delivered-start"
    assert kept(database)[0].state == spool.CLAIMED


def test_a_refusal_is_told_even_when_nothing_was_accepted(home, database):
    """`zdo show` knows every refusal."""
    keep.refuse(home.house(), asked(verdict=TABLE["target-unknown"]), new_uuid(), NOW)

    assert (None, [("refused", "target-unknown")]) == kept(database)


def test_a_refusal_after_the_acceptance_is_the_lines_verdict(home, database):
    """The line is settled with it, so that its key can be tried again."""
    owner = new_uuid()
    keep.accept(database, a_draft(owner=owner), asked(), NONCE, NOW)
    keep.refuse(home.house(), asked(verdict=TABLE["carrier-busy"]), owner, NOW)
    line, events = kept(database)

    assert line.state == spool.DEAD
    assert events[1:] == [("judged", "carrier-busy")]


def test_a_strangers_refusal_leaves_the_line_alone(home, database):
    """A second kiss with the key, refused for its own reasons, is told and settles nothing."""
    keep.accept(database, a_draft(), asked(), NONCE, NOW)
    keep.refuse(home.house(), asked(verdict=TABLE["key-conflict"]), new_uuid(), NOW)
    line, events = kept(database)

    assert line.state == spool.CLAIMED
    assert events[1:] == [("refused", "key-conflict")]


def test_a_refusal_stands_where_it_cannot_be_written(home):
    """A state folder that is a file takes nothing, and says nothing more."""
    Path(home.state).write_text("", encoding="utf-8")
    keep.refuse(home.house(), asked(verdict=TABLE["target-unknown"]), new_uuid(), NOW)

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
