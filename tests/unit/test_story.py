"""What the journal tells of a delivery, and what is said of a key that is known."""

from __future__ import annotations

import pytest

from dispatch import journal, keep, kept, outcome, story
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.journal import Event
from dispatch.result import LineFacts, TargetFacts
from dispatch.verdict import TABLE
from registry.ids import new_uuid
from tests.fakes.envelopes import DELIVERY
from tests.fakes.household import BEGAN, LINE, Household, a_draft, asked

DIGEST = a_draft().digest.hex()
SAFE = {"intent": False, "receipt": None, "proof": "none"}


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def tale(*entries):
    """Events of one delivery, as (kind, class)."""
    return tuple(
        Event(number, DELIVERY, BEGAN, kind, name, "{}")
        for number, (kind, name) in enumerate(entries)
    )


ACCEPTED, CLAIMED = ("accepted", None), ("claimed", None)
QUEUED, REFUSED = ("queued", "queued"), ("refused", "key-conflict")
DEFERRED = ("deferred", "target-not-running")
JUDGED, VERIFIED = ("judged", "carrier-exit"), ("verified", "surfaced")
REQUEUED, DROPPED = ("requeued", "queued"), ("dropped", "interrupted")


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        ([], None),
        ([ACCEPTED], None),
        ([ACCEPTED, JUDGED], 1),
        ([ACCEPTED, JUDGED, VERIFIED], 2),
        ([ACCEPTED, JUDGED, REFUSED], 1),
        ([ACCEPTED, JUDGED, ACCEPTED], None),
        ([ACCEPTED, JUDGED, CLAIMED], None),
        ([ACCEPTED, JUDGED, CLAIMED, JUDGED], 3),
        ([ACCEPTED, REFUSED], None),
        ([REFUSED], 0),
        ([REFUSED, REFUSED], 1),
        ([QUEUED], 0),
        ([QUEUED, DEFERRED], 1),
        ([QUEUED, REFUSED], 0),
        ([REFUSED, QUEUED, DEFERRED, REFUSED, REFUSED], 2),
        ([QUEUED, DEFERRED, CLAIMED], None),
        ([QUEUED, CLAIMED, JUDGED, DEFERRED], 2),
        ([QUEUED, CLAIMED, JUDGED, REQUEUED, DROPPED], 2),
        ([QUEUED, DROPPED], 1),
        ([QUEUED, ("judged", "target-not-running")], 1),
    ],
)
def test_the_last_verdict_is_that_of_the_newest_attempt(entries, place):
    """Without an attempt the newest entry counts; a refusal only where there is no other."""
    events = tale(*entries)

    assert (None if place is None else events[place]) == story.last_judged(events)


def test_the_newest_attempt_began_with_its_own_entry():
    """A kiss's or the relay's."""
    events = tale(ACCEPTED, JUDGED, CLAIMED, JUDGED, REFUSED)

    assert events[2] == story.last_begun(events)


@pytest.mark.parametrize("spelling", [DELIVERY, DELIVERY.upper(), "{%s}" % DELIVERY])  # noqa: UP031
def test_a_story_is_found_by_any_spelling_of_its_id(home, spelling):
    """As a person copies it."""
    home.accepted()

    with home.opened() as database:
        assert ["accepted"] == [event.kind for event in story.story_of(database, spelling)]


@pytest.mark.parametrize("given", ["", "no id", "\udcff", DELIVERY[:-1]])
def test_an_unknown_delivery_has_no_story(home, given):
    """67."""
    home.accepted()

    with home.opened() as database, pytest.raises(DeliveryUnknown):
        story.story_of(database, given)


def test_an_entry_without_evidence_has_none():
    """A refusal, or a line that was only queued."""
    assert {} == story.evidence_of(tale(QUEUED)[0])


@pytest.mark.parametrize("body", ["{}", '{"result": null}', '{"result": {"v": 2}}', "[]", "{"])
def test_an_entry_that_is_not_ours_is_named(body):
    """And not guessed at."""
    event = Event(7, DELIVERY, BEGAN, "judged", "unknown", body)

    with pytest.raises(JournalUnreadable, match="entry 7"):
        story.kept_result(event)


# A key that is known.


def present(home, **changes):
    """What is said to somebody who comes with the key."""
    with home.opened() as database:
        return story.present_verdict(database, asked(**changes))


def said(result):
    """Class and reason."""
    return result.verdict.name, result.reason


def put_off(home, name, *, kind=journal.DEFERRED, becomes=None, reason="so it is"):
    """The relay notes *name* of the queued line."""
    with home.opened() as database, database.writing() as link:
        keep.note(link, kind, asked(verdict=TABLE[name], reason=reason), {}, BEGAN)
        if becomes is not None:
            link.execute("UPDATE line SET state = ?, status = ?", (becomes.state, becomes.status))


def test_a_known_key_has_its_kept_verdict(home):
    """The newest of the newest attempt."""
    before = home.judged()

    assert before == present(home)


def test_a_key_under_way_is_a_doubt(home):
    """Under way, or an orphan; both mean: look, do not repeat."""
    home.accepted()

    name, reason = said(present(home))

    assert ("unknown", True) == (name, "under way" in reason)


def test_a_new_attempt_makes_the_old_verdict_old(home):
    """After a safe failure the same key is claimed again: its outcome is open."""
    home.judged(**SAFE)
    home.accepted()

    assert "unknown" == present(home).verdict.name


def test_a_queued_line_is_queued(home):
    """0, and nothing more is to be said."""
    home.queued()

    assert ("queued", None) == said(present(home))


def test_a_line_that_waits_says_why(home):
    """With what the relay met last."""
    home.queued()
    put_off(home, "target-not-running")
    assert ("queued", "target-not-running: so it is") == said(present(home))
    put_off(home, "target-status", reason="it is busy")

    assert ("queued", "target-status: it is busy") == said(present(home))


def test_a_line_that_waits_after_a_try_says_what_it_came_to(home):
    """And what keeps it since."""
    home.queued()
    home.taken()
    put_off(home, "carrier-exit", kind=journal.JUDGED, becomes=outcome.queued())
    assert ("queued", "carrier-exit: so it is") == said(present(home))
    put_off(home, "target-not-running", reason="it is gone")

    assert ("queued", "target-not-running: it is gone") == said(present(home))


@pytest.mark.parametrize("queued_by", ["hand", "key"])
def test_a_line_that_was_queued_again_says_nothing_of_its_past(home, queued_by):
    """It waits, as a new one does."""
    home.judged(**SAFE)
    with home.opened() as database:
        if queued_by == "key":
            keep.enqueue(database, a_draft(), asked(verdict=TABLE["queued"]), BEGAN)
        else:
            with database.writing() as link:
                link.execute("UPDATE line SET state = ?", (kept.QUEUED,))
                keep.note(link, journal.REQUEUED, asked(verdict=TABLE["queued"]), {}, BEGAN)

    assert ("queued", None) == said(present(home))


def test_a_kiss_that_conflicts_changes_nothing_of_what_a_queued_line_is(home):
    """Its refusal stands in the journal, and is not the line's."""
    home.queued()
    conflict = asked(verdict=TABLE["key-conflict"], line=LineFacts(3, "00" * 32), reason="no")
    keep.refuse(home.house(), conflict, new_uuid(), BEGAN)

    assert ("queued", None) == said(present(home))
    assert DIGEST == present(home, line=LineFacts(len(LINE), DIGEST)).line.sha256


def test_what_does_not_wait_is_not_said_to_wait(home):
    """Claimed, dead, or never kept."""
    with home.opened() as database:
        assert story.while_queued(database, asked()) is None
    home.accepted()
    with home.opened() as database:
        assert story.while_queued(database, asked()) is None


def test_a_queued_line_whose_story_is_lost_is_queued(home):
    """A salvaged file may have the row alone."""
    home.queued()
    home.alter("DELETE FROM event")

    assert ("queued", None) == said(present(home))


# A key that is refused now, and known.

ME = LineFacts(len(LINE), DIGEST)


def known(home, owner="somebody else", **changes):
    """What a refused kiss with the key borrows."""
    return story.known_verdict(asked(**({"line": ME} | changes)), owner, home.house())


def test_a_line_that_may_be_in_outweighs_a_refusal(home):
    """Delivered: "not delivered" is not to be said."""
    before = home.judged()

    assert before == known(home)
    assert before == known(home, target=TargetFacts())


@pytest.mark.parametrize(
    "changes",
    [
        {"line": LineFacts()},
        {"line": LineFacts(3, "00" * 32)},
        {"target": TargetFacts(id="sonnet")},
    ],
    ids=["not read", "other bytes", "another target"],
)
def test_the_verdict_of_another_line_is_not_borrowed(home, changes):
    """Nor that of one whose bytes are not known."""
    home.judged()

    assert known(home, **changes) is None


def test_what_provably_never_reached_the_door_outweighs_nothing(home):
    """The refusal is all there is."""
    home.judged(**SAFE)

    assert known(home) is None


def test_a_line_that_was_never_kept_outweighs_nothing(home):
    """No key, no verdict."""
    assert known(home) is None


def test_a_queued_line_outweighs_a_refusal(home):
    """It will be delivered: whoever is told "not delivered" would repeat it."""
    home.queued()

    assert "queued" == known(home).verdict.name


def test_a_claim_of_ones_own_has_no_verdict_yet(home):
    """A kiss that was stopped between its claim and its start may still say so itself."""
    _, owner = home.claimed()

    assert known(home, owner=owner) is None
    assert "unknown" == known(home).verdict.name


def test_what_was_ones_own_and_is_settled_is_known(home):
    """A doubt stands, whoever asks."""
    before = home.judged(receipt=None, proof="none")

    assert before == known(home, owner=home.line().owner)
