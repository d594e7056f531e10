"""Evidence in, verdict out: histories in a table, and the class of every error."""

from __future__ import annotations

import pytest

# For their error classes: the walk below sees only what is loaded.
import dispatch.database
import dispatch.kiss
import dispatch.verify  # noqa: F401
from carrier.attempt import WRITTEN
from carrier.errors import CarrierError, EnvelopeTorn
from carrier.proof import TornReceipt
from carrier.report import Unreadable
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch.errors import DispatchError
from dispatch.judge import PROOFS, class_of_error, judge, weigh_notices
from dispatch.tool_errors import ToolError
from dispatch.verdict import OPEN, QUEUE, TABLE
from registry.errors import RegistryError
from tests.fakes.envelopes import P, T, a_receipt
from tests.fakes.evidence import BINDING, NONCE, OTHER, a_report, a_run, an_evidence, told

SILENT = Unreadable("empty")
TIMED_OUT = {"exit": 143, "timed_out": True}
NOT_RUNNING = a_receipt(
    wrote=False, eof=False, found="target-not-running", detail="no running row: no-process"
)
CLEARED = a_receipt(wrote=False, eof=False, found="door-mismatch", detail="pid 4201 now runs …")
TROUBLE = a_receipt(wrote=False, eof=False, found="wrapper-trouble", detail="KeyError")

HISTORIES = {
    # The four pairs of K07: the result's session and the receipt's.
    "P and T": ({}, "delivered-start"),
    "T and T": ({"report": a_report(session_id=T)}, "carrier-mismatch"),
    "P and P": ({"receipt": a_receipt(session_id=P)}, "door-mismatch"),
    "T and P": (
        {"report": a_report(session_id=T), "receipt": a_receipt(session_id=P)},
        "carrier-mismatch",
    ),
    "some other session answers": ({"report": a_report(session_id=OTHER)}, "carrier-mismatch"),
    "nobody says which session": ({"report": a_report(session_id=None)}, "carrier-mismatch"),
    # A model's words and a status prove nothing, for and against (INTERFACE 7 b).
    "the child ends with 1": ({"run": a_run(exit=1)}, "delivered-start"),
    "the result is an error": ({"report": a_report(is_error=True)}, "delivered-start"),
    "the subtype is odd": ({"report": a_report(subtype="error_max_turns")}, "delivered-start"),
    "two turns, no marker": ({"report": a_report(num_turns=2, result=None)}, "delivered-start"),
    "the child says it wrote": (
        {"intent": False, "receipt": None, "report": a_report(result="zdo wrote"), "proof": NONE},
        "wrapper-not-run",
    ),
    # Receipts (7 f).
    "a foreign receipt": ({"receipt": a_receipt(nonce="another")}, "receipt-foreign"),
    "a foreign receipt, and it surfaced": (
        {"receipt": a_receipt(nonce="another"), "proof": SURFACED},
        "receipt-foreign",
    ),
    "a foreign receipt, another carrier": (
        {"receipt": a_receipt(nonce="another"), "report": a_report(session_id=T)},
        "receipt-foreign",
    ),
    "a foreign receipt, Ctrl-C": (
        {
            "receipt": a_receipt(nonce="another"),
            "run": a_run(interrupted=True),
            "intent": False,
        },
        "receipt-foreign",
    ),
    "no receipt": ({"receipt": None, "proof": NONE}, "receipt-missing"),
    "a torn receipt": ({"receipt": TornReceipt("half"), "proof": NONE}, "receipt-missing"),
    "no receipt, but it surfaced": ({"receipt": None, "proof": SURFACED}, "surfaced"),
    "no receipt, silence": ({"receipt": None, "report": SILENT, "proof": NONE}, "unknown"),
    "no receipt, silence, surfaced": (
        {"receipt": None, "report": SILENT, "proof": SURFACED},
        "unknown",
    ),
    "no receipt, killed, surfaced": (
        {"receipt": None, "report": SILENT, "proof": SURFACED, "run": a_run(exit=-9)},
        "surfaced",
    ),
    # What the wrapper found when it did not write (7 e).
    "the target is gone": ({"receipt": NOT_RUNNING, "proof": NONE}, "target-not-running"),
    "the target was cleared": ({"receipt": CLEARED, "proof": NONE}, "door-mismatch"),
    "the wrapper failed": ({"receipt": TROUBLE, "proof": NONE}, "wrapper-not-run"),
    "the target is gone, no detail": (
        {"receipt": a_receipt(wrote=False, eof=False, found="target-not-running"), "proof": NONE},
        "target-not-running",
    ),
    "the target is gone, and silence": (
        {"receipt": NOT_RUNNING, "report": SILENT, "proof": NONE},
        "target-not-running",
    ),
    # Written, and then silence (7 c, decision 0005).
    "written, unreadable": ({"report": SILENT}, "unknown"),
    "surfaced, unreadable": ({"report": SILENT, "proof": SURFACED}, "unknown"),
    "written, at the deadline": ({"report": SILENT, "run": a_run(**TIMED_OUT)}, "unknown"),
    "surfaced, at the deadline": (
        {"report": SILENT, "run": a_run(**TIMED_OUT), "proof": SURFACED},
        "surfaced",
    ),
    "surfaced, killed": (
        {"report": SILENT, "run": a_run(exit=-9), "proof": SURFACED},
        "surfaced",
    ),
    "surfaced, Ctrl-C": (
        {"report": SILENT, "run": a_run(exit=143, interrupted=True), "proof": SURFACED},
        "surfaced",
    ),
    "written, Ctrl-C": (
        {"report": SILENT, "run": a_run(exit=143, interrupted=True)},
        "unknown",
    ),
    "written, no end known": ({"report": SILENT, "run": a_run(exit=None)}, "unknown"),
    # Notices of the door (K10).
    "held": ({"receipt": a_receipt(notices=told("held", reason="for approval"))}, "door-held"),
    "held, no reason": ({"receipt": a_receipt(notices=told("held"))}, "door-held"),
    "refused": (
        {"receipt": a_receipt(notices=told("expired", status_detail="refused"))},
        "door-refused",
    ),
    "denied after held": ({"receipt": a_receipt(notices=told("held", "denied"))}, "door-denied"),
    "expired": ({"receipt": a_receipt(notices=told("held", "expired"))}, "expired"),
    "rate-limited": (
        {"receipt": a_receipt(notices=told("dropped", drop_reason="rate-limited"))},
        "door-dropped",
    ),
    "delivered": ({"receipt": a_receipt(notices=told("delivered"))}, "delivered-start"),
    "a status nobody knows": ({"receipt": a_receipt(notices=told("postponed"))}, "unknown"),
    "held, and it surfaced": (
        {"receipt": a_receipt(notices=told("held", "delivered")), "proof": SURFACED},
        "surfaced",
    ),
    "another session since": ({"receipt": a_receipt(moved_to=P)}, "door-mismatch"),
    # How far the door got.
    "no end of file": ({"receipt": a_receipt(eof=False, detail="EPIPE")}, "unknown"),
    "no end of file, surfaced": (
        {"receipt": a_receipt(eof=False), "proof": SURFACED},
        "delivered-start",
    ),
    "enqueued": ({"proof": ENQUEUED}, "delivered-start"),
    # The door untouched (7 c, d).
    "untouched, exit 0": ({"intent": False, "receipt": None, "report": SILENT}, "carrier-output"),
    "untouched, exit 1": (
        {"intent": False, "receipt": None, "report": SILENT, "run": a_run(exit=1)},
        "carrier-exit",
    ),
    "untouched, killed": (
        {"intent": False, "receipt": None, "report": SILENT, "run": a_run(exit=-9)},
        "carrier-exit",
    ),
    "untouched, deadline": (
        {"intent": False, "receipt": None, "report": SILENT, "run": a_run(**TIMED_OUT)},
        "carrier-timeout",
    ),
    "untouched, deadline, with a report": (
        {"intent": False, "receipt": None, "run": a_run(**TIMED_OUT)},
        "carrier-timeout",
    ),
    "no program": (
        {
            "intent": False,
            "receipt": None,
            "report": SILENT,
            "run": a_run(exit=None, spawn_error="no such file"),
        },
        "carrier-spawn",
    ),
    "untouched, Ctrl-C": (
        {"intent": False, "receipt": None, "report": SILENT, "run": a_run(interrupted=True)},
        "interrupted",
    ),
    "untouched, another carrier": (
        {"intent": False, "receipt": None, "report": a_report(session_id=T)},
        "carrier-mismatch",
    ),
}


@pytest.mark.parametrize("history", HISTORIES)
def test_each_history_has_its_class(history):
    """One attempt from its evidence alone; a new failure is a new row."""
    changes, expected = HISTORIES[history]
    evidence = an_evidence(**changes)

    finding = judge(evidence, BINDING, NONCE)

    assert expected == finding.verdict.name, finding.reason
    assert evidence.proof == finding.proof


@pytest.mark.parametrize("history", HISTORIES)
def test_a_failure_has_a_reason_and_a_delivery_has_none(history):
    """`zdo: <class>: <reason>` is never `None`, and nothing is excused when it went well."""
    changes, _ = HISTORIES[history]

    finding = judge(an_evidence(**changes), BINDING, NONCE)

    assert (finding.verdict.exit != 0) == bool(finding.reason)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"report": a_report(session_id=T)}, f"session {T}, not as {P}"),
        ({"receipt": a_receipt(session_id=OTHER)}, f"session {OTHER} was written, not {T}'s"),
        ({"receipt": None, "proof": NONE}, "is missing"),
        ({"receipt": TornReceipt("half"), "proof": NONE}, "is torn"),
        ({"receipt": a_receipt(notices=told("held", reason="for approval"))}, "for approval"),
        ({"receipt": a_receipt(notices=told("held"))}, "the target answered 'held'"),
        ({"receipt": a_receipt(eof=False, detail="EPIPE")}, "EPIPE"),
        ({"report": SILENT, "run": a_run(**TIMED_OUT)}, "was ended, output unreadable (empty)"),
        (
            {"report": SILENT, "run": a_run(exit=1, stderr=b"first\n  No conversation \xff\n\n")},
            "ended with 1, output unreadable (empty): No conversation \N{REPLACEMENT CHARACTER}",
        ),
    ],
)
def test_the_reason_names_what_was_seen(changes, words):
    """Both ids, what the door said, the last words of the carrier."""
    finding = judge(an_evidence(**changes), BINDING, NONCE)

    assert words in str(finding.reason)


def test_the_last_words_of_a_carrier_are_short():
    """A flood on stderr does not flood ours."""
    run = a_run(exit=1, stderr=b"x" * 100_000)
    evidence = an_evidence(intent=False, receipt=None, report=SILENT, run=run, proof=NONE)

    assert len(str(judge(evidence, BINDING, NONCE).reason)) < 300


def test_without_the_intent_nothing_is_open_and_with_it_nothing_unwritten_is_safe():
    """The permit is the hinge: the same silence is safe before it and a doubt after it."""
    silence = {"receipt": None, "report": SILENT, "proof": NONE}

    before = judge(an_evidence(**silence, intent=False), BINDING, NONCE)
    after = judge(an_evidence(**silence, intent=True), BINDING, NONCE)

    assert (QUEUE, OPEN) == (before.verdict.fate, after.verdict.fate)


def test_the_gravest_notice_decides():
    """A refusal is not softened by what else was said."""
    grave = told("held", "postponed", "dropped", "refused")

    assert weigh_notices(grave) == ("door-refused", "the target answered 'refused'")
    assert weigh_notices(told("held", "delivered")) == (
        "unknown",
        "it was held, then approved; the transcript does not show it yet",
    )
    assert weigh_notices(told("delivered", "postponed")) == (
        "unknown",
        "the target answered 'postponed'",
    )
    assert weigh_notices(told("delivered")) is None
    assert weigh_notices(()) is None


# Never seen by a command: the wrapper and the keeper meet it and leave evidence instead.
INTERNAL = {
    EnvelopeTorn: "the dispatcher only writes envelopes; the wrapper that reads one blocks",
    ToolError: "the root alone; each leaf names its class",
}


def leaves(root):
    """Every error class under *root*."""
    below = [leaf for each in root.__subclasses__() for leaf in leaves(each)]
    return [*root.__subclasses__(), *below]


@pytest.mark.parametrize(
    "leaf", [leaf for root in (RegistryError, CarrierError, DispatchError) for leaf in leaves(root)]
)
def test_every_refusal_has_a_class(leaf):
    """A refusal without a row in the table would be reported as a bug."""
    named = class_of_error(leaf.__new__(leaf))

    assert (named == "internal") == (leaf in INTERNAL)
    assert named in TABLE


def test_a_strangers_error_is_internal():
    """What nobody named is a bug, and open: nobody knows how far it got."""
    assert class_of_error(KeyError("x")) == "internal"
    assert TABLE["internal"].fate == OPEN


def test_the_door_read_it_is_less_than_the_transcript_shows_it():
    """The four proofs in their order."""
    assert PROOFS == (NONE, WRITTEN, ENQUEUED, SURFACED)
