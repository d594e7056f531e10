"""The judge over everything that evidence can be, also what contradicts itself."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from carrier.attempt import WRITTEN
from carrier.proof import FOUND, Notice, Receipt, TornReceipt
from carrier.report import FAULTS, Report, Unreadable
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch.judge import judge
from dispatch.verdict import DONE, FAILED, QUEUE, TABLE
from tests.fakes.envelopes import P, T, a_receipt
from tests.fakes.evidence import BINDING, NONCE, OTHER, a_report, a_run, an_evidence

MILLISECONDS = st.integers(0, 10**6)
# The right values are the likely ones, or a rare mistake would never be met.
CARRIERS = st.sampled_from([P, P, P, P, T, OTHER, None])
DOORS = st.sampled_from([T, T, T, T, P, OTHER])
BAD = ("held", "denied", "expired", "dropped", "refused")

NOTICES = st.builds(
    Notice,
    status=st.sampled_from([*BAD, "delivered", "postponed"]),
    status_detail=st.sampled_from([None, "refused"]),
    reason=st.sampled_from([None, "", "because"]),
)

RUNS = st.builds(
    a_run,
    exit=st.sampled_from([None, 0, 1, 130, 143, -9, -15]),
    timed_out=st.booleans(),
    spawn_error=st.sampled_from([None, None, "no such file"]),
    stderr=st.binary(max_size=20),
    wall_ms=MILLISECONDS,
    interrupted=st.booleans(),
)

SILENCE = st.builds(Unreadable, st.sampled_from(sorted(FAULTS)))
SPOKEN = st.builds(
    a_report,
    session_id=CARRIERS,
    is_error=st.booleans() | st.none(),
    subtype=st.sampled_from([None, "success", "error_max_turns"]),
    num_turns=st.integers(0, 3) | st.none(),
    result=st.sampled_from([None, "delivered", "zdo wrote"]),
)
REPORTS = st.sampled_from([SPOKEN, SPOKEN, SILENCE]).flatmap(lambda each: each)


@st.composite
def receipts(draw):
    """Any receipt that `parse_receipt` would take, ours or not."""
    wrote = draw(st.sampled_from([True, True, False]))
    return a_receipt(
        nonce=draw(st.sampled_from([NONCE] * 4 + ["another"])),
        session_id=draw(DOORS),
        wrote=wrote,
        eof=wrote and draw(st.booleans()),
        found=None if wrote else draw(st.sampled_from(sorted(FOUND))),
        detail=draw(st.sampled_from([None, "", "why"])),
        notices=tuple(draw(st.lists(NOTICES, max_size=3))),
        surfaced=draw(st.booleans()),
    )


MISSING = st.sampled_from([None, TornReceipt("half")])

EVIDENCE = st.builds(
    an_evidence,
    run=RUNS,
    report=REPORTS,
    intent=st.booleans(),
    receipt=st.sampled_from([receipts(), receipts(), MISSING]).flatmap(lambda each: each),
    proof=st.sampled_from([NONE, WRITTEN, ENQUEUED, SURFACED, SURFACED]),
)

RIGHT = an_evidence()


def is_ours(evidence):
    """Whether the receipt is of this attempt."""
    return isinstance(evidence.receipt, Receipt) and evidence.receipt.nonce == NONCE


def is_of_postbox(evidence):
    """Whether the carrier answered as the postbox."""
    return isinstance(evidence.report, Report) and evidence.report.session_id == P


@settings(max_examples=300)
@given(EVIDENCE)
@example(RIGHT)
def test_every_evidence_has_a_verdict_of_the_table(evidence):
    """Total: a row of the table, the proof as it was, a reason exactly for a failure."""
    finding = judge(evidence, BINDING, NONCE)

    assert TABLE[finding.verdict.name] is finding.verdict
    assert evidence.proof == finding.proof
    assert (finding.verdict.exit == 0) == (finding.reason is None)
    assert finding.reason != ""


@settings(max_examples=300)
@given(EVIDENCE)
@example(RIGHT)
def test_delivered_start_is_exactly_both_ids_the_nonce_and_no_bad_notice(evidence):
    """INTERFACE 5: the result's session, the receipt's session, our nonce, nothing held."""
    receipt = evidence.receipt
    expected = (
        is_of_postbox(evidence)
        and is_ours(evidence)
        and receipt.session_id == T
        and receipt.wrote
        and (receipt.eof or evidence.proof == SURFACED)
        and all(n.status == "delivered" and n.status_detail is None for n in receipt.notices)
    )

    assert expected == (judge(evidence, BINDING, NONCE).verdict.name == "delivered-start")


@settings(max_examples=300)
@given(EVIDENCE)
def test_nothing_is_done_under_a_wrong_id(evidence):
    """Exit 0 never with another session's result, a foreign receipt or another door's."""
    if judge(evidence, BINDING, NONCE).verdict.fate != DONE:
        return

    run = evidence.run
    ended = run.timed_out or run.interrupted or run.exit is None or run.exit < 0
    silent = isinstance(evidence.report, Unreadable)
    assert is_of_postbox(evidence) or (silent and ended and evidence.proof == SURFACED)
    if isinstance(evidence.receipt, Receipt):
        assert is_ours(evidence)
        assert evidence.receipt.session_id == T
        assert evidence.receipt.wrote
    else:
        assert evidence.intent
        assert evidence.proof == SURFACED


@settings(max_examples=300)
@given(EVIDENCE)
def test_a_foreign_receipt_is_one_whatever_else(evidence):
    """INTERFACE 7 f."""
    foreign = isinstance(evidence.receipt, Receipt) and evidence.receipt.nonce != NONCE

    assert foreign == (judge(evidence, BINDING, NONCE).verdict.name == "receipt-foreign")


@settings(max_examples=300)
@given(EVIDENCE)
def test_only_what_never_entered_may_be_repeated(evidence):
    """A repeat is invited when the door was untouched, left alone, or threw the line away."""
    finding = judge(evidence, BINDING, NONCE)
    if finding.verdict.fate not in (QUEUE, FAILED):
        return

    if isinstance(evidence.receipt, Receipt):
        thrown_away = any(notice.status in BAD for notice in evidence.receipt.notices)
        refused = any(notice.status_detail == "refused" for notice in evidence.receipt.notices)
        assert is_ours(evidence)
        assert not evidence.receipt.wrote or thrown_away or refused
    else:
        assert not evidence.intent


@settings(max_examples=300)
@given(EVIDENCE, REPORTS)
def test_words_and_status_of_the_child_change_nothing(evidence, report):
    """With one session id, subtype, turns and text of a result are for the reader alone."""
    if not isinstance(evidence.report, Report) or not isinstance(report, Report):
        return
    said = an_evidence(
        run=evidence.run,
        report=a_report(
            session_id=evidence.report.session_id,
            is_error=report.is_error,
            subtype=report.subtype,
            num_turns=report.num_turns,
            result=report.result,
        ),
        intent=evidence.intent,
        receipt=evidence.receipt,
        proof=evidence.proof,
    )

    assert judge(evidence, BINDING, NONCE).verdict == judge(said, BINDING, NONCE).verdict
