"""Asking again in a later process: raises or settles, and never lowers."""

from __future__ import annotations

import json
import os

import pytest

from carrier.proof import PERMIT, RUN, TornReceipt, issue, leave_receipt, take
from carrier.report import Unreadable
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch import journal, keep, post, spool, verify
from dispatch.errors import DeliveryUnknown, JournalUnreadable
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.locks import take_lease
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, P, a_receipt, an_envelope
from tests.fakes.evidence import NONCE, OTHER, StoppedClock, a_report, a_run, an_evidence
from tests.fakes.household import LINE, Household, a_draft, asked, conclude

TEXT = LINE.decode()
SILENT = Unreadable("empty")


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def events(home):
    """The delivery's story as (kind, class)."""
    database = home.database()
    with database.reading() as link:
        found = [(event.kind, event.name) for event in journal.story(link, DELIVERY)]
    database.close()
    return found


def state(home):
    """The state of the line in the spool."""
    database = home.database()
    with database.reading() as link:
        found = spool.find(link, DELIVERY)
    database.close()
    return found.state


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
    assert events(home)[2:] == [("verified", "surfaced")]
    assert state(home) == spool.DELIVERED


def test_an_open_line_is_settled_by_the_transcript(home):
    """Written, then silence: unknown, until the target's own transcript shows it."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)
    assert state(home) == spool.UNCERTAIN
    transcript.surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"
    assert state(home) == spool.DELIVERED


def test_a_doubt_about_the_carrier_is_not_the_transcripts_to_settle(home):
    """The line is in, and still nobody knows which session was driven: 3, with the proof."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=a_report(session_id=OTHER))
    transcript.surface(DELIVERY)

    found = verify.verify(DELIVERY, home.house())

    assert ("carrier-mismatch", 3, SURFACED) == (
        found.verdict.name, found.verdict.exit, found.proof
    )  # fmt: skip
    assert state(home) == spool.UNCERTAIN


def test_nothing_new_writes_nothing(home):
    """A look that finds nothing is no event, and the class stays."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript), report=SILENT)

    assert verify.verify(DELIVERY.upper(), home.house()).verdict.name == "unknown"
    assert events(home) == [("accepted", None), ("judged", "unknown")]


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
    assert state(home) == spool.DEAD
    home.transcript().surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"
    database = home.database()
    claim = keep.accept(database, a_draft(), asked(), NONCE, 1.0)
    database.close()
    assert isinstance(claim, spool.Kept)


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
        ({"taken": False}, False, "carrier-exit", spool.DEAD),
        ({"taken": False}, True, "carrier-exit", spool.DEAD),
        ({"permit": False}, False, "unknown", spool.UNCERTAIN),
        ({"permit": False}, True, "surfaced", spool.DELIVERED),
        (
            {"permit": False, "run": a_run(stdout=SAID)},
            False,
            "receipt-missing",
            spool.UNCERTAIN,
        ),
        ({"taken": False, "run": a_run(stdout=SAID)}, False, "wrapper-not-run", spool.DEAD),
        ({}, False, "unknown", spool.UNCERTAIN),
        ({}, True, "surfaced", spool.DELIVERED),
        ({"run": a_run(stdout=SAID)}, False, "receipt-missing", spool.UNCERTAIN),
        (
            {"receipt": a_receipt(**MINE), "run": a_run(stdout=SAID)},
            False,
            "delivered-start",
            spool.DELIVERED,
        ),
        ({"receipt": a_receipt(**MINE)}, False, "unknown", spool.UNCERTAIN),
        ({"receipt": a_receipt(**MINE)}, True, "surfaced", spool.DELIVERED),
        (
            {"receipt": a_receipt(nonce="another"), "run": a_run(stdout=SAID)},
            True,
            "receipt-foreign",
            spool.UNCERTAIN,
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
    assert events(home) == [("accepted", None)]


@pytest.mark.parametrize(
    ("surfaced", "name", "ends"),
    [(False, "unknown", spool.UNCERTAIN), (True, "surfaced", spool.DELIVERED)],
)
def test_an_orphan_without_a_folder_is_a_doubt(home, surfaced, name, ends):
    """Killed before it was made, or somebody removed it: only the transcript can tell."""
    home.accepted()
    if surfaced:
        home.transcript().surface(DELIVERY)

    found = verify.verify(DELIVERY, home.house())

    assert (name, ends) == (found.verdict.name, state(home))
    assert events(home)[1:] == [("verified", name)]


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
    assert (spool.DEAD, False) == (state(home), os.path.exists(folder))
    assert events(home) == [("accepted", None), ("verified", "carrier-exit")]


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
    assert (spool.CLAIMED, [PERMIT]) == (state(home), os.listdir(folder))
    assert events(home) == [("accepted", None)]


def test_a_delivery_that_was_concluded_meanwhile_is_looked_up_again(home):
    """It is no orphan: its own verdict stands, raised by what the transcript shows."""
    transcript = home.transcript()
    home.judged(receipt=receipt_at(transcript))
    assert "delivered-start" == judged_under_lease(home).verdict.name
    transcript.surface(DELIVERY)

    assert "surfaced" == judged_under_lease(home).verdict.name
    assert events(home)[1:] == [("judged", "delivered-start"), ("verified", "surfaced")]


def test_who_has_a_lease_and_asks_for_an_unknown_delivery_is_told_so(home):
    """Nothing is made up."""
    with pytest.raises(DeliveryUnknown):
        judged_under_lease(home)


class Interrupting(Clock):
    """A clock whose first look runs *act*, as another process would at that moment."""

    def __init__(self, act):
        self._act = act

    def monotonic(self):
        """The time, after the other process had its turn."""
        act, self._act = self._act, lambda: None
        act()
        return super().monotonic()


def test_a_kiss_that_concludes_while_verify_waits_keeps_its_verdict(home):
    """Between the look at the journal and the lease the dispatcher may have settled."""
    draft = a_draft()
    database = home.database()
    keep.accept(database, draft, asked(), NONCE, 1.0)

    def settle():
        result = conclude(an_evidence())
        keep.settle(database, result, post.evidence_facts(an_evidence()), draft.owner, 2.0)

    found = verify.verify(DELIVERY, home.house(clock=Interrupting(settle)))
    database.close()

    assert found.verdict.name == "delivered-start"
    assert ("verified", "carrier-exit") not in events(home)


# A second kiss with the same key.


def test_a_known_key_presents_the_kept_verdict(home):
    """The newest of the newest acceptance."""
    before = home.judged()
    database = home.database()

    assert before == verify.present_verdict(database, asked())
    database.close()


def test_a_known_key_without_a_verdict_is_unknown(home):
    """It is under way, or an orphan; both mean: look, do not repeat."""
    home.accepted()
    database = home.database()

    found = verify.present_verdict(database, asked())
    database.close()

    assert found.verdict.name == "unknown"
    assert "under way" in str(found.reason)


def test_a_new_attempt_makes_the_old_verdict_old(home):
    """After a safe failure the same key is claimed again: its outcome is open."""
    home.judged(intent=False, receipt=None, report=SILENT, proof=NONE)
    home.accepted()
    database = home.database()

    found = verify.present_verdict(database, asked())
    database.close()

    assert found.verdict.name == "unknown"


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
    assert events(home)[-1] == ("verified", "surfaced")


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
    assert state(home) == spool.DELIVERED
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
    assert state(home) == spool.DELIVERED


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
    database = home.database()
    with database.writing() as link:
        link.execute("DELETE FROM line")
    database.close()
    transcript.surface(DELIVERY)

    assert verify.verify(DELIVERY, home.house()).verdict.name == "surfaced"
