"""What a later look makes of a delivery: every rule, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrier.attempt import WRITTEN
from carrier.proof import Notice
from carrier.transcript import ENQUEUED, NONE, SURFACED
from dispatch import kept, outcome
from dispatch.judge import PROOFS
from dispatch.late import Look, regrade
from dispatch.verdict import DONE, OPEN, SCALE, TABLE
from registry.record import replace
from tests.fakes.evidence import told
from tests.fakes.household import asked

REFUSED = (Notice("expired", status_detail="refused"),)

# class before, proof before, look → class and proof after
TABLE_OF_LOOKS = {
    "sent, and seen since": ("delivered-start", WRITTEN, Look(SURFACED), "surfaced", SURFACED),
    "sent, nothing new": ("delivered-start", WRITTEN, Look(NONE), "delivered-start", WRITTEN),
    "sent, it waits": ("delivered-start", WRITTEN, Look(ENQUEUED), "delivered-start", ENQUEUED),
    "sent, the target ended": (
        "delivered-start",
        WRITTEN,
        Look(NONE, ended=True),
        "not-surfaced",
        WRITTEN,
    ),
    "sent, it waited, the target ended": (
        "delivered-start",
        ENQUEUED,
        Look(NONE, ended=True),
        "not-surfaced",
        ENQUEUED,
    ),
    "sent, seen, the target ended": (
        "delivered-start",
        WRITTEN,
        Look(SURFACED, ended=True),
        "surfaced",
        SURFACED,
    ),
    "seen at the start, the transcript gone": (
        "delivered-start",
        SURFACED,
        Look(NONE),
        "delivered-start",
        SURFACED,
    ),
    "seen at the start, transcript and target gone": (
        "delivered-start",
        SURFACED,
        Look(NONE, ended=True),
        "delivered-start",
        SURFACED,
    ),
    "held, nothing new": ("door-held", WRITTEN, Look(NONE), "door-held", WRITTEN),
    "held, told so again": (
        "door-held",
        WRITTEN,
        Look(NONE, late=told("held")),
        "door-held",
        WRITTEN,
    ),
    "held, denied": ("door-held", WRITTEN, Look(NONE, late=told("denied")), "door-denied", WRITTEN),
    "held, expired": ("door-held", WRITTEN, Look(NONE, late=told("expired")), "expired", WRITTEN),
    "held, refused": ("door-held", WRITTEN, Look(NONE, late=REFUSED), "door-refused", WRITTEN),
    "held, approved, no room": (
        "door-held",
        WRITTEN,
        Look(NONE, late=told("dropped")),
        "door-dropped",
        WRITTEN,
    ),
    "held, a word that nobody knows": (
        "door-held",
        WRITTEN,
        Look(NONE, late=told("postponed")),
        "unknown",
        WRITTEN,
    ),
    "held, approved": (
        "door-held",
        WRITTEN,
        Look(NONE, late=told("delivered")),
        "door-held",
        WRITTEN,
    ),
    "held, approved, as the whole story": (
        "door-held",
        WRITTEN,
        Look(NONE, late=told("held", "delivered")),
        "door-held",
        WRITTEN,
    ),
    "held, approved, seen": (
        "door-held",
        WRITTEN,
        Look(SURFACED, late=told("delivered")),
        "surfaced",
        SURFACED,
    ),
    "held, approved, the target ended": (
        "door-held",
        WRITTEN,
        Look(NONE, ended=True, late=told("delivered")),
        "not-surfaced",
        WRITTEN,
    ),
    "held, denied, and the same text of another waits": (
        "door-held",
        WRITTEN,
        Look(ENQUEUED, late=told("denied")),
        "door-denied",
        ENQUEUED,
    ),
    "held, then it waits": ("door-held", WRITTEN, Look(ENQUEUED), "door-held", ENQUEUED),
    "held, then it waits, the target ended": (
        "door-held",
        WRITTEN,
        Look(ENQUEUED, ended=True),
        "not-surfaced",
        ENQUEUED,
    ),
    "held, the target ended": ("door-held", WRITTEN, Look(NONE, ended=True), "expired", WRITTEN),
    "held, denied, the target ended": (
        "door-held",
        WRITTEN,
        Look(NONE, ended=True, late=told("denied")),
        "door-denied",
        WRITTEN,
    ),
    "held, and it is there": ("door-held", WRITTEN, Look(SURFACED), "surfaced", SURFACED),
    "in doubt, nothing new": ("unknown", WRITTEN, Look(NONE), "unknown", WRITTEN),
    "in doubt, it waits": ("unknown", NONE, Look(ENQUEUED), "unknown", ENQUEUED),
    "in doubt, the target ended": ("unknown", NONE, Look(NONE, ended=True), "unknown", NONE),
    "in doubt, and it is there": ("unknown", NONE, Look(SURFACED), "surfaced", SURFACED),
    "no receipt, and it is there": ("receipt-missing", NONE, Look(SURFACED), "surfaced", SURFACED),
    "another door, and it is there": ("door-mismatch", NONE, Look(SURFACED), "surfaced", SURFACED),
    "another carrier, and it is there": (
        "carrier-mismatch",
        NONE,
        Look(SURFACED),
        "carrier-mismatch",
        SURFACED,
    ),
    "not surfaced, and it is there": (
        "not-surfaced",
        WRITTEN,
        Look(SURFACED, ended=True),
        "surfaced",
        SURFACED,
    ),
    "not surfaced, nothing new": (
        "not-surfaced",
        WRITTEN,
        Look(NONE, ended=True),
        "not-surfaced",
        WRITTEN,
    ),
    "safe, and it is there": ("carrier-exit", NONE, Look(SURFACED), "surfaced", SURFACED),
    "denied, the target ended": (
        "door-denied",
        WRITTEN,
        Look(NONE, ended=True),
        "door-denied",
        WRITTEN,
    ),
}


def said(name, proof=NONE):
    """A delivery that was judged so."""
    return asked(verdict=TABLE[name], proof=proof, reason=f"it was {name}")


@pytest.mark.parametrize("case", TABLE_OF_LOOKS)
def test_each_look_makes_its_class(case):
    """What the transcript shows, what the target said since, whether it lives."""
    before, proof, look, after, shown = TABLE_OF_LOOKS[case]

    found = regrade(said(before, proof), look)

    assert (after, shown) == (found.verdict.name, found.proof)


@pytest.mark.parametrize("case", TABLE_OF_LOOKS)
def test_a_new_class_has_a_reason_of_its_own(case):
    """The old one told of something else; a delivery has none."""
    before, proof, look, after, _ = TABLE_OF_LOOKS[case]

    found = regrade(said(before, proof), look)

    if after != before:
        assert (found.reason is None) == (found.verdict.exit == 0)
        assert found.reason != f"it was {before}"


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("proof", PROOFS)
def test_a_look_without_news_is_the_same_look(name, proof):
    """Nothing seen, nothing told, the target alive: every class stays."""
    found = regrade(said(name, proof), Look(NONE))

    assert said(name, proof) == replace(found, reason=f"it was {name}")


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (Look(ENQUEUED), "has it waiting; no model turn since"),
        (Look(ENQUEUED, turn_after=True), "has it waiting; turns without it since"),
    ],
)
def test_how_long_it_waits_is_said(look, words):
    """A model turn since then went by without it."""
    assert words in str(regrade(said("delivered-start", WRITTEN), look).reason)


@pytest.mark.parametrize(
    ("look", "words"),
    [
        (Look(NONE, late=told("delivered")), "then approved; the transcript does not show it yet"),
        (Look(NONE, ended=True), "ended before anybody approved"),
        (Look(NONE, ended=True, late=told("delivered")), "then approved; the target ended"),
        (Look(NONE, late=told("denied", reason="not today")), "not today"),
    ],
)
def test_what_became_of_a_held_line_is_said(look, words):
    """An approved one is not called one that nobody approved."""
    assert words in str(regrade(said("door-held", WRITTEN), look).reason)


LOOKS = st.builds(
    Look,
    st.sampled_from([NONE, ENQUEUED, SURFACED]),
    turn_after=st.booleans(),
    ended=st.booleans(),
    late=st.lists(
        st.builds(
            Notice,
            st.sampled_from(["held", "delivered", "denied", "expired", "dropped", "postponed"]),
            status_detail=st.sampled_from([None, "refused"]),
        ),
        max_size=3,
    ).map(tuple),
)
BEFORE = st.builds(said, st.sampled_from(sorted(TABLE)), st.sampled_from(PROOFS))


def place(verdict):
    """A verdict's place on the scale; those beside it are below what may settle them."""
    return SCALE.index(verdict.state) if verdict.state in SCALE else -1


@settings(max_examples=400)
@given(BEFORE, LOOKS)
def test_no_look_lowers_a_proof_or_takes_a_delivery_back(before, look):
    """The proof rises or stays; what is delivered stays delivered, and is not repeated."""
    found = regrade(before, look)

    assert PROOFS.index(before.proof) <= PROOFS.index(found.proof)
    if before.verdict.fate == DONE:
        assert found.verdict.name in (before.verdict.name, "surfaced", "not-surfaced")
        assert place(before.verdict) <= place(found.verdict)
    if found.verdict != before.verdict and found.verdict.fate == DONE:
        assert (found.verdict.name, found.proof, look.proof) == ("surfaced", SURFACED, SURFACED)


@settings(max_examples=400)
@given(BEFORE, st.lists(LOOKS, max_size=4))
def test_only_a_drop_notice_makes_an_open_delivery_one_to_try_again(before, looks):
    """No transcript, no end of the target and no other word does."""
    result = before
    for look in looks:
        was_open = result.verdict.fate in (OPEN, DONE)
        result = regrade(result, look)
        line_may_be_tried = outcome.of(result).status == kept.AGAIN
        if was_open and line_may_be_tried:
            assert result.verdict.name == "door-dropped"
            assert any(notice.status == "dropped" for notice in look.late)
            return
