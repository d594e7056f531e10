"""Asking again in a later process: raises or settles, and never lowers."""

from __future__ import annotations

import json
import os

import pytest

from carrier.late import leave_late
from carrier.named import write_down
from carrier.proof import (
    CARRIER,
    INTENT,
    PERMIT,
    RUN,
    TornReceipt,
    issue,
    leave_receipt,
    take,
)
from carrier.report import Unreadable
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch import journal, keep, kept, outcome, post, verify
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.locks import take_lease
from registry.record import replace
from tests.fakes.clocks import Meanwhile
from tests.fakes.envelopes import DELIVERY, P, an_envelope
from tests.fakes.envelopes import a_receipt as plain_receipt
from tests.fakes.evidence import OTHER, StoppedClock, a_report, a_run, an_evidence, told
from tests.fakes.household import (
    BEGAN,
    LINE,
    Household,
    a_draft,
    accept,
    asked,
    conclude,
    key_of,
    settle,
)

TEXT = LINE.decode()
SILENT = Unreadable("empty")


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def state(home):
    """The state of the line in the spool."""
    return home.line().state


def a_receipt(**changes):
    """Our receipt, of a target that lives."""
    return plain_receipt(**({"pid": os.getpid()} | changes))


def receipt_at(transcript, **changes):
    """Our receipt, with the transcript as it was before the write."""
    return a_receipt(transcript=transcript.path, offset=transcript.size, **changes)


# Judged before: what a later look may and may not make of it.


def test_a_delivery_that_surfaces_later_is_raised(home):
    """delivered-start becomes surfaced, and stays it when asked once more."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript))
    transcript.surface(DELIVERY)

    first = verify.verify(DELIVERY, home.house())
    again = verify.verify(DELIVERY, home.house())

    assert ("verify", "surfaced", SURFACED, None) == (
        first.command, first.verdict.name, first.proof, first.reason
    )  # fmt: skip
    assert first == again
    assert home.story()[2:] == [("verified", "surfaced")]
    assert state(home) == kept.DELIVERED


def test_an_open_line_is_settled_by_the_transcript(home):
    """Written, then silence: unknown, until the target's own transcript shows it."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)
    assert state(home) == kept.UNCERTAIN
    transcript.surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"
    assert state(home) == kept.DELIVERED


def test_a_doubt_about_the_carrier_is_not_the_transcripts_to_settle(home):
    """The line is in, and still nobody knows which session was driven: 3, with the proof."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=a_report(session_id=OTHER))
    transcript.surface(DELIVERY)

    found = verify.verify(DELIVERY, home.house())

    assert ("carrier-mismatch", 3, SURFACED) == (
        found.verdict.name, found.verdict.exit, found.proof
    )  # fmt: skip
    assert state(home) == kept.UNCERTAIN


def test_nothing_new_writes_nothing(home):
    """A look that finds nothing is no event, and the class stays."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)

    assert verify.verify(DELIVERY.upper(), home.house()).verdict.name == "unknown"
    assert home.story() == [("accepted", None), ("judged", "unknown")]


def test_an_enqueued_line_raises_the_proof_and_not_the_class(home):
    """Waiting is not read."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript))
    transcript.enqueue(TEXT)

    found = verify.verify(DELIVERY, home.house())

    assert ("delivered-start", ENQUEUED) == (found.verdict.name, found.proof)


def test_a_proof_is_never_lowered(home):
    """Surfaced once, surfaced though the transcript is gone."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), proof=SURFACED)
    os.unlink(transcript.path)

    found = verify.verify(DELIVERY, home.house())

    assert ("delivered-start", SURFACED) == (found.verdict.name, found.proof)


def test_a_transcript_that_came_later_is_found(home):
    """A fresh session has no file at the write (CONTRACT f)."""
    home.judged(receipt=a_receipt(), report=SILENT)
    home.transcript().surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"


@pytest.mark.parametrize(
    "receipt",
    [
        None,
        TornReceipt("half"),
        a_receipt(wrote=False, eof=False, found="target-not-running", detail="gone"),
        a_receipt(nonce="another"),
    ],
    ids=["none", "torn", "nothing written", "foreign"],
)
def test_without_our_own_offset_an_older_text_proves_nothing(home, receipt):
    """An enqueue row has no id, so the same text of yesterday looks the same."""
    home.transcript().enqueue(TEXT)
    before = home.judged(receipt=receipt, proof=NONE)

    found = verify.verify(DELIVERY, home.house())

    assert (before.verdict, NONE) == (found.verdict, found.proof)


@pytest.mark.parametrize("changes", [{"session_id": OTHER}, {"nonce": "another"}])
def test_a_receipt_that_is_not_ours_does_not_choose_the_transcript(home, changes):
    """The target's own transcript is asked, not the one that a stranger named."""
    elsewhere = home.transcript(OTHER)
    home.judged(receipt=receipt_at(elsewhere, **changes), proof=NONE)
    home.transcript().surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"


def test_a_dead_letter_that_turns_out_to_be_in_is_not_delivered_again(home):
    """Its key must not deliver a second time, whatever was thought before."""
    home.judged(intent=False, receipt=None, report=SILENT, proof=NONE, run=a_run(exit=1))
    assert state(home) == kept.DEAD
    home.transcript().surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"
    with home.opened() as database:
        claim = accept(database, a_draft(), asked(attempt=2))
    assert kept.DELIVERED == claim.state


def test_a_refusal_is_told_again_and_not_looked_up(home):
    """Nothing was started, so there is nothing to ask for."""
    home.transcript().surface(DELIVERY)
    keep.refuse(home.house(), asked(verdict=TABLE["target-unknown"], reason="why"), "o", 1.0)

    found = verify.verify(DELIVERY, home.house())

    assert ("target-unknown", "why") == (found.verdict.name, found.reason)


@pytest.mark.parametrize("asked_for", [DELIVERY, "no id", "\udcff"])
def test_an_unknown_delivery_is_told_so(home, asked_for):
    """67, in any spelling."""
    with pytest.raises(DeliveryUnknown):
        verify.verify(asked_for, home.house())


@pytest.mark.parametrize(
    "body", [{}, {"result": None}, {"result": {"v": 2}}, {"result": {"class": "postponed"}}]
)
def test_a_record_of_a_later_zdo_is_not_guessed_at(home, body):
    """It is named, so that somebody can look."""
    home.accepted()
    database = home.database()
    with database.writing() as link:
        journal.add(link, DELIVERY, journal.JUDGED, body, 1.0)
    database.close()

    with pytest.raises(JournalUnreadable, match=DELIVERY) as caught:
        verify.verify(DELIVERY, home.house())
    assert caught.value.event == 2


def test_a_settled_look_removes_the_attempts_folder(home):
    """It holds the only copy of the line outside the spool."""
    transcript = home.transcript()
    result = home.judged(receipt=receipt_at(transcript), report=SILENT)
    folder = post.folder_of(home.house(), result)
    os.mkdir(folder, 0o700)
    verify.verify(DELIVERY, home.house())
    assert os.path.isdir(folder)

    transcript.surface(DELIVERY)
    verify.verify(DELIVERY, home.house())

    assert not os.path.exists(folder)


# Orphans: accepted, and the dispatcher died.


def orphan(home, *, permit=True, taken=True, receipt=None, run=None):
    """An attempt folder as a killed dispatcher leaves it; without *permit*, emptied."""
    result = replace(home.accepted(), attempt=1)
    house = home.house()
    folder = post.folder_of(house, result)
    os.mkdir(folder, 0o700)
    if permit:
        issue(folder, an_envelope(msg_id=DELIVERY, line=TEXT, claude_dir=home.claude_dir))
    if taken:
        take(folder)
    if taken and permit:
        os.utime(f"{folder}/{INTENT}", (1, 1))  # long ago: its wrapper has had its time
    if receipt is not None:
        leave_receipt(folder, receipt)
    if run is not None:
        with open(f"{folder}/{RUN}", "w", encoding="ascii") as file:
            json.dump(
                {
                    "exit": run.exit, "timed_out": run.timed_out, "interrupted": False,
                    "spawn_error": None, "wall_ms": 1,
                },
                file,
            )  # fmt: skip
        with open(f"{folder}/stdout", "wb") as file:
            file.write(run.stdout)
    return folder


SAID = json.dumps({"type": "result", "session_id": P, "num_turns": 0}).encode()
MINE = {"msg_id": DELIVERY}


@pytest.mark.parametrize(
    ("left", "surfaced", "name", "ends"),
    [
        ({"taken": False}, False, "carrier-exit", kept.DEAD),
        ({"taken": False}, True, "carrier-exit", kept.DEAD),
        ({"permit": False}, False, "unknown", kept.UNCERTAIN),
        ({"permit": False}, True, "surfaced", kept.DELIVERED),
        (
            {"permit": False, "run": a_run(stdout=SAID)},
            False,
            "receipt-missing",
            kept.UNCERTAIN,
        ),
        ({"taken": False, "run": a_run(stdout=SAID)}, False, "wrapper-not-run", kept.DEAD),
        ({}, False, "unknown", kept.UNCERTAIN),
        ({}, True, "surfaced", kept.DELIVERED),
        ({"run": a_run(stdout=SAID)}, False, "receipt-missing", kept.UNCERTAIN),
        (
            {"receipt": a_receipt(**MINE), "run": a_run(stdout=SAID)},
            False,
            "delivered-start",
            kept.SENT,
        ),
        ({"receipt": a_receipt(**MINE)}, False, "unknown", kept.UNCERTAIN),
        ({"receipt": a_receipt(**MINE)}, True, "surfaced", kept.DELIVERED),
        (
            {"receipt": a_receipt(nonce="another"), "run": a_run(stdout=SAID)},
            True,
            "receipt-foreign",
            kept.UNCERTAIN,
        ),
    ],
)
def test_an_orphan_is_judged_by_what_its_attempt_left(home, left, surfaced, name, ends):
    """The verdict that a dead dispatcher owes, and the permit withdrawn for good."""
    folder = orphan(home, **left)
    if surfaced:
        home.transcript().surface(DELIVERY)

    found = verify.verify(DELIVERY, home.house())

    assert name == found.verdict.name, found.reason
    assert ends == state(home)
    assert not os.path.exists(f"{folder}/{PERMIT}")
    assert os.path.exists(folder) == (found.verdict.fate == "open")


def test_an_orphan_is_left_alone_while_its_postbox_is_driven(home):
    """A carrier still holds the lease: ask later, and the permit stands."""
    folder = orphan(home, taken=False)
    lease = take_lease(home.house().places.locks, P, timeout_s=0, clock=Clock())

    found = verify.verify(DELIVERY, home.house())
    lease.close()

    assert ("unknown", 1) == (found.verdict.name, found.attempt)
    assert "still holds" in str(found.reason)
    assert os.path.exists(f"{folder}/{PERMIT}")
    assert home.story() == [("accepted", None)]


@pytest.mark.parametrize(
    ("surfaced", "name", "ends"),
    [(False, "unknown", kept.UNCERTAIN), (True, "surfaced", kept.DELIVERED)],
)
def test_an_orphan_without_a_folder_is_a_doubt(home, surfaced, name, ends):
    """Killed before it was made, or somebody removed it: only the transcript can tell."""
    home.accepted()
    if surfaced:
        home.transcript().surface(DELIVERY)

    found = verify.verify(DELIVERY, home.house())

    assert (name, ends) == (found.verdict.name, state(home))
    assert home.story()[1:] == [("verified", name)]


def test_an_orphan_without_a_folder_is_not_settled_by_an_older_text(home):
    """Without a receipt nobody knows where the write began."""
    home.transcript().enqueue(TEXT)
    home.accepted()

    found = verify.verify(DELIVERY, home.house())

    assert ("unknown", NONE) == (found.verdict.name, found.proof)


def judged_under_lease(home, leased=P):
    """What `judge_orphan` makes of the delivery for whoever has the lease on *leased*."""
    database = home.database()
    try:
        return verify.judge_orphan(database, DELIVERY, leased, home.house())
    finally:
        database.close()


def test_whoever_has_the_lease_judges_what_a_dead_owner_left(home):
    """As `zdo verify` does, with the kiss's own lease in hand: the key is free afterwards."""
    folder = orphan(home, taken=False)
    lease = take_lease(home.house().places.locks, P, timeout_s=0, clock=Clock())

    found = judged_under_lease(home)
    lease.close()

    assert ("kiss", "carrier-exit", 1) == (found.command, found.verdict.name, found.attempt)
    assert (kept.DEAD, False) == (state(home), os.path.exists(folder))
    assert home.story() == [("accepted", None), ("verified", "carrier-exit")]


def test_the_newest_attempt_is_the_one_that_is_judged(home):
    """Its number, its nonce, its folder: the first one's folder says nothing of it."""
    home.judged(intent=False, receipt=None, report=SILENT, proof=NONE)
    home.accepted()
    folder = f"{home.state}/attempts/{DELIVERY}.2"
    os.mkdir(folder, 0o700)
    issue(folder, an_envelope(attempt=2, msg_id=DELIVERY, line=TEXT))

    found = judged_under_lease(home)

    assert (2, "carrier-exit") == (found.attempt, found.verdict.name)
    assert not os.path.exists(folder)


def test_a_lease_on_another_postbox_judges_nothing(home):
    """Its own postbox may be driven at this moment: the permit stands, the line stays claimed."""
    folder = orphan(home, taken=False)

    found = judged_under_lease(home, leased=OTHER)

    assert ("unknown", 1) == (found.verdict.name, found.attempt)
    assert (kept.CLAIMED, [PERMIT]) == (state(home), os.listdir(folder))
    assert home.story() == [("accepted", None)]


def test_a_delivery_that_was_concluded_meanwhile_is_looked_up_again(home):
    """It is no orphan: its own verdict stands, raised by what the transcript shows."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript))
    assert "delivered-start" == judged_under_lease(home).verdict.name
    transcript.surface(DELIVERY)

    assert "surfaced" == judged_under_lease(home).verdict.name
    assert home.story()[1:] == [("judged", "delivered-start"), ("verified", "surfaced")]


def test_who_has_a_lease_and_asks_for_an_unknown_delivery_is_told_so(home):
    """Nothing is made up."""
    with pytest.raises(DeliveryUnknown):
        judged_under_lease(home)


def test_a_kiss_that_concludes_while_verify_waits_keeps_its_verdict(home):
    """Between the look at the journal and the lease the dispatcher may have settled."""
    _, owner = home.claimed()
    evidence = an_evidence(receipt=a_receipt())

    def conclude_it():
        with home.opened() as database:
            settle(database, home.house(), conclude(evidence), owner, evidence)

    found = verify.verify(DELIVERY, home.house(clock=Meanwhile(conclude_it)))

    assert found.verdict.name == "delivered-start"
    assert ("verified", "carrier-exit") not in home.story()


# Waiting for the model.


def wait(home, result, clock=None, wait_s=1.0):
    """`await_surface` on an open database."""
    database = home.database()
    try:
        house = home.house(clock=clock or StoppedClock())
        return verify.await_surface(database, result, house, wait_s)
    finally:
        database.close()


def test_a_line_that_surfaces_in_time_is_surfaced(home):
    """The wait ends with the row."""
    transcript = home.transcript()
    result = home.judged(receipt=receipt_at(transcript))
    clock = StoppedClock(lambda: clock.slept == 3 and transcript.surface(DELIVERY))

    found = wait(home, result, clock, wait_s=60.0)

    assert ("surfaced", SURFACED, None) == (found.verdict.name, found.proof, found.reason)
    assert clock.slept == 3
    assert home.story()[-1] == ("verified", "surfaced")


def test_a_line_that_does_not_is_not_surfaced_and_still_delivered(home):
    """3: look, do not repeat; the spool keeps the delivery."""
    transcript = home.transcript()
    result = home.judged(receipt=receipt_at(transcript))
    transcript.enqueue(TEXT)
    clock = StoppedClock()

    found = wait(home, result, clock, wait_s=1.5)

    assert ("not-surfaced", ENQUEUED) == (found.verdict.name, found.proof)
    assert str(found.reason).endswith(" after 1.5 s")
    assert 1.4 < clock.slept * 0.05 < 1.6
    assert state(home) == kept.SENT
    assert verify.verify(DELIVERY, home.house()).verdict.name == "delivered-start"


def test_without_patience_there_is_one_look(home):
    """`--wait 0` asks once."""
    transcript = home.transcript()
    result = home.judged(receipt=receipt_at(transcript))
    transcript.surface(DELIVERY)

    assert wait(home, result, wait_s=0).verdict.name == "surfaced"


def test_ctrl_c_ends_the_wait_and_not_the_delivery(home):
    """What was delivered stays delivered."""
    result = home.judged(receipt=receipt_at(home.transcript()))

    def stop():
        if clock.slept == 30:
            raise KeyboardInterrupt

    clock = StoppedClock(stop)
    found = wait(home, result, clock, wait_s=60.0)

    assert found.verdict.name == "not-surfaced"
    assert str(found.reason).endswith(" after 1.5 s")  # and not after the 60 that were asked for
    assert state(home) == kept.SENT


def test_only_a_delivery_is_waited_for(home):
    """Any other verdict is handed back at once."""
    result = home.judged(receipt=None, proof=NONE)
    clock = StoppedClock()

    assert result == wait(home, result, clock)
    assert clock.slept == 0


def test_a_look_uses_the_session_of_the_target(home):
    """Another session's transcript with the same id proves nothing."""
    home.judged(receipt=a_receipt(), report=SILENT)
    home.transcript(OTHER).surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "unknown"


def test_a_delivery_that_lost_its_line_is_still_looked_up(home):
    """The journal alone names the delivery; the row may have been dropped."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)
    home.alter("DELETE FROM line")
    transcript.surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"


# A target that ended, or said something since.


def held(home, **changes):
    """A kiss's line that the target holds; its folder stands."""
    receipt = a_receipt(**({"notices": told("held")} | changes))
    result = home.judged(receipt=receipt)
    os.mkdir(home.folder(), 0o700)
    return result


def kept_for_the_relay(home):
    """From now on a queue holds the line."""
    home.alter("UPDATE line SET kept = 1")


def look(home, **changes):
    """Class and state after one more look."""
    found = verify.verify(DELIVERY, home.house(**changes))
    return found.verdict.name, kept.STATE_NAMES[state(home)]


@pytest.mark.parametrize(
    ("notices", "name", "ends"),
    [
        ((), "door-held", "uncertain"),
        (told("denied"), "door-denied", "dead"),
        (told("expired"), "expired", "dead"),
        (told("expired", status_detail="refused"), "door-refused", "dead"),
        (told("dropped"), "door-dropped", "dead"),
        (told("delivered"), "door-held", "uncertain"),
    ],
)
def test_what_a_target_says_late_of_a_held_line_counts(home, notices, name, ends):
    """Only the notice tells: its transcript has no row. The folder goes when all is said."""
    held(home)
    leave_late(home.folder(), notices)

    assert (name, ends) == look(home)
    assert (name, ends) == look(home)
    assert (ends == "uncertain") == os.path.exists(home.folder())


@pytest.mark.parametrize(("notices", "status"), [("denied", kept.REFUSED), ("dropped", kept.AGAIN)])
def test_a_key_whose_held_line_was_turned_away_is_as_safe_as_it_is(home, notices, status):
    """Denied: never again.  Dropped for want of room: whoever kissed may try again."""
    held(home)
    leave_late(home.folder(), told(notices))
    look(home)

    assert status == home.line().status


def test_a_kept_line_that_was_dropped_late_is_queued_again(home):
    """It was approved, and there was no room: it goes again when the receiver's minute is over."""
    clock = StoppedClock()
    held(home)
    kept_for_the_relay(home)
    leave_late(home.folder(), told("dropped"))

    assert ("queued", "queued") == look(home, clock=clock)
    line = home.line()
    assert (kept.QUEUED, clock.at + 60.0) == (line.state, line.due_at)
    assert ("verified", "door-dropped") == home.story()[-1]
    assert not os.path.exists(home.folder())


def test_a_kept_line_that_was_dropped_late_is_given_up_when_its_time_is_over(home):
    """Its patience began when it was accepted."""
    held(home)
    kept_for_the_relay(home)
    home.alter("UPDATE pulse SET watched = ?", outcome.SCHEDULE.lifetime_s + 900.5)
    leave_late(home.folder(), told("dropped"))

    assert ("door-dropped", "dead") == look(home)
    assert kept.OUT_OF_TIME == home.line().status


def test_a_held_line_whose_target_ended_has_expired(home):
    """A target takes what it held with it: nobody will approve it any more."""
    held(home, pid=home.registry.ended())

    assert ("expired", "dead") == look(home)
    assert kept.REFUSED == home.line().status
    assert not os.path.exists(home.folder())


def test_a_held_line_that_was_approved_before_its_target_ended_is_not_called_expired(home):
    """It may have been in its input: over, and nothing to repeat."""
    held(home, pid=home.registry.ended())
    leave_late(home.folder(), told("delivered"))

    assert ("not-surfaced", "delivered") == look(home)


def test_a_held_line_that_surfaces_after_its_target_ended_is_surfaced(home):
    """First whether it ended, then its transcript: what it wrote last is not missed."""
    transcript = home.transcript()
    receipt = receipt_at(transcript, pid=home.registry.ended(), notices=told("held"))
    home.judged(receipt=receipt)
    transcript.surface(DELIVERY)

    assert ("surfaced", "delivered") == look(home)


def test_a_sent_line_whose_target_ended_is_closed_as_not_surfaced(home):
    """3, told once; its row is over, holds nobody back and is not looked at again."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript, pid=home.registry.ended()))
    assert "sent" == home.state_of()

    assert ("not-surfaced", "delivered") == look(home)
    assert ("not-surfaced", "delivered") == look(home)
    assert ("verified", "not-surfaced") == home.story()[-1]
    assert 3 == len(home.story())
    with home.opened() as database, database.reading() as link:
        assert () == kept.open_ones(link)


def test_a_sent_line_that_was_not_surfaced_and_is_seen_after_all_is_raised(home):
    """A person has resumed the session, say; the key never delivers again either way."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript, pid=home.registry.ended()))
    look(home)
    transcript.surface(DELIVERY)

    assert ("surfaced", "delivered") == look(home)


def test_a_delivery_that_was_seen_is_not_unseen_when_target_and_transcript_are_gone(home):
    """Old transcripts are cleaned up: 0 stays 0."""
    transcript = home.transcript()
    receipt = receipt_at(transcript, pid=home.registry.ended())
    home.judged(receipt=receipt, proof=SURFACED)
    os.unlink(transcript.path)

    assert ("delivered-start", "delivered") == look(home)
    assert 2 == len(home.story())


@pytest.mark.parametrize(
    "receipt",
    [None, TornReceipt("half"), plain_receipt(wrote=False, eof=False, found="target-not-running")],
)
def test_without_a_write_nobody_is_known_to_have_ended(home, receipt):
    """Whose process it was is not on record: the doubt stays one."""
    before = home.judged(receipt=receipt, proof=NONE)

    assert before.verdict.name == look(home)[0]


@pytest.mark.parametrize(
    ("turn", "words"), [(False, "no model turn since"), (True, "turns without it since")]
)
def test_a_line_that_waits_in_its_target_says_so_and_writes_it_once(home, turn, words):
    """How long it waits is news to the caller, not to the journal."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript))
    transcript.enqueue(TEXT)
    if turn:
        transcript.add({"type": "assistant", "message": {"model": "claude"}})

    found = [verify.verify(DELIVERY, home.house()) for _ in range(2)]

    assert [("delivered-start", ENQUEUED)] * 2 == [(f.verdict.name, f.proof) for f in found]
    assert all(words in str(each.reason) for each in found)
    assert [("verified", "delivered-start")] == home.story()[2:]


# Lines that a queue holds.


def test_a_queued_line_is_queued(home):
    """0: it waits, and its newest entry says why."""
    home.queued()
    assert ("queued", "queued") == look(home)
    gone = asked(verdict=TABLE["target-not-running"], reason="it is gone")
    with home.opened() as database, database.writing() as link:
        keep.note(link, journal.DEFERRED, gone, {}, BEGAN)

    found = verify.verify(DELIVERY, home.house())

    assert ("verify", "queued", 0) == (found.command, found.verdict.name, found.verdict.exit)
    assert "target-not-running: it is gone" == found.reason


def test_a_line_that_was_queued_again_by_hand_and_turns_out_to_be_in_is_delivered(home):
    """Somebody thought that it had not arrived: the relay does not send it once more."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)
    home.alter("UPDATE line SET state = ?", kept.QUEUED)
    transcript.surface(DELIVERY)

    assert ("surfaced", "delivered") == look(home)


def relayed(home, *, taken=False, **left):
    """A kept line whose relay died; what its attempt left."""
    home.queued()
    home.taken()
    folder = home.folder()
    os.makedirs(folder, 0o700)
    issue(folder, an_envelope(msg_id=DELIVERY, line=TEXT, claude_dir=home.claude_dir))
    if taken:
        take(folder)
        os.utime(f"{folder}/{INTENT}", (1, 1))
    if "receipt" in left:
        leave_receipt(folder, left["receipt"])
    return folder


def test_a_kept_orphan_that_never_reached_the_door_is_queued_again(home):
    """With the back-off of its first try; its permit is withdrawn, its folder gone."""
    clock = StoppedClock()
    folder = relayed(home)

    assert ("queued", "queued") == look(home, clock=clock)
    line = home.line()
    assert (clock.at + 2.5, 1, kept.AGAIN) == (line.due_at, line.tries - kept.FIRST, line.status)
    assert not os.path.exists(folder)
    assert [("queued", "queued"), ("claimed", None), ("verified", "carrier-exit")] == home.story()


def test_a_kept_orphan_that_had_its_last_try_is_given_up(home):
    """24 of them: dead, and provably not in."""
    relayed(home)
    home.alter("UPDATE line SET tries = ?", kept.FIRST + outcome.SCHEDULE.tries)

    assert ("carrier-exit", "dead") == look(home)
    assert (kept.OUT_OF_TIME, True) == (home.line().status, home.line().may_be_tried)


@pytest.mark.parametrize("surfaced", [False, True])
def test_a_kept_orphan_that_may_be_in_is_not_queued(home, surfaced):
    """Taken by a wrapper: the transcript decides, else it is in doubt."""
    relayed(home, taken=True)
    if surfaced:
        home.transcript().surface(DELIVERY)

    expected = ("surfaced", "delivered") if surfaced else ("unknown", "uncertain")
    assert expected == look(home)


@pytest.mark.parametrize("orphaned", [relayed, orphan])
def test_an_orphan_whose_wrapper_may_still_be_at_the_door_is_left_alone(home, orphaned):
    """Its keeper was killed too: what it does in its last seconds must not be judged before."""
    folder = orphaned(home, taken=True)
    os.utime(f"{folder}/{INTENT}", (BEGAN, BEGAN))
    clock = StoppedClock()
    clock.at = BEGAN + 9.0

    found = verify.verify(DELIVERY, home.house(clock=clock))
    assert ("unknown", kept.CLAIMED) == (found.verdict.name, state(home))
    assert "may still be at the door" in str(found.reason)
    assert os.path.exists(f"{folder}/{INTENT}")

    clock.at = BEGAN + 11.0
    assert ("unknown", "uncertain") == look(home, clock=clock)


@pytest.mark.parametrize("orphaned", [relayed, orphan])
def test_an_orphan_whose_carrier_still_drives_the_postbox_is_left_alone(home, orphaned):
    """Somebody replaced the lock file: the lease is ours, and a carrier runs all the same."""
    folder = orphaned(home, taken=False)
    write_down(f"{folder}/{CARRIER}", pid := home.registry.sleeper(), home.registry.processes)

    found = verify.verify(DELIVERY, home.house())
    assert ("unknown", kept.CLAIMED) == (found.verdict.name, state(home))
    assert "still drives the postbox" in str(found.reason)
    assert os.path.exists(f"{folder}/{PERMIT}")

    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert look(home)[1] != "claimed"


def test_the_time_that_a_wrapper_has_is_that_of_its_own_run(home):
    """Of many lines it had more; the journal says how much."""
    folder = orphan(home)
    home.alter("UPDATE event SET body = json_set(body, '$.wrapper_s', 40.0)")
    os.utime(f"{folder}/{INTENT}", (BEGAN, BEGAN))
    clock = StoppedClock()

    clock.at = BEGAN + 39.0
    assert "claimed" == look(home, clock=clock)[1]
    clock.at = BEGAN + 41.0
    assert "uncertain" == look(home, clock=clock)[1]


def test_an_orphan_of_an_older_zdo_has_the_usual_time(home):
    """Its journal does not say how much its wrapper had."""
    folder = orphan(home)
    home.alter("UPDATE event SET body = json_remove(body, '$.wrapper_s')")
    os.utime(f"{folder}/{INTENT}", (BEGAN, BEGAN))
    clock = StoppedClock()

    clock.at = BEGAN + 9.0
    assert "claimed" == look(home, clock=clock)[1]
    clock.at = BEGAN + 11.0
    assert "uncertain" == look(home, clock=clock)[1]


def test_an_orphan_whose_row_is_gone_is_judged_and_told(home):
    """What was salvaged from a damaged file: the journal has it, and the folder stands."""
    folder = orphan(home, taken=False)
    home.alter("DELETE FROM line")

    found = verify.verify(DELIVERY, home.house())

    assert ("carrier-exit", ("verified", "carrier-exit")) == (found.verdict.name, home.story()[-1])
    assert not os.path.exists(folder)


@pytest.mark.parametrize("judged", [False, True])
def test_bytes_that_are_damaged_stop_no_look(home, judged):
    """Its id is looked for, not its text."""
    if judged:
        home.judged(receipt=a_receipt(), report=SILENT)
    else:
        orphan(home)
    home.alter("UPDATE line SET body = ?", b"\xff\xfe not what was accepted")
    home.transcript().surface(DELIVERY)

    assert ("surfaced", "delivered") == look(home)


def test_patience_is_drawn_and_counted_in_watched_time(home):
    """Whoever asks has the same dice and the same clock."""
    home.queued()
    home.alter("UPDATE pulse SET watched = 33.5")

    with home.opened() as database:
        found = verify.patience(database, home.house(draw=lambda: 0.25), BEGAN)
    assert outcome.Patience(BEGAN, 0.25, 33.5) == found


def test_a_second_line_is_not_mixed_up_with_the_first(home):
    """Each has its own story, its own row, its own verdict."""
    home.queued()
    home.queued(key_of(2), b"tests are red")
    home.taken(key_of(2))

    assert ("queued", "queued") == look(home)
    assert "claimed" == home.state_of(key_of(2))
