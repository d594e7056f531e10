"""What a kiss takes in: the line as it will travel, and an answer's address."""

from __future__ import annotations

import hashlib

import pytest

from dispatch import keep
from dispatch.errand import Errand, Order
from dispatch.errors import DeliveryUnknown, JournalUnreadable, LineInvalid, NobodyToAnswer
from dispatch.intake import take_in
from dispatch.line import MOST_BYTES
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from tests.fakes.envelopes import DELIVERY, T
from tests.fakes.evidence import OTHER
from tests.fakes.household import Household, asked, key_of


@pytest.fixture
def home(tmp_path):
    """A household."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def taken(home: Household, line: bytes = b"tests are green", **order: object) -> Telling:
    """What is told after the line was taken in."""
    given = {"address": "fable", "take_line": lambda: line, "sender": "anonymous"} | order
    telling = Telling(asked(), given["address"] or "")
    take_in(Errand(Order(**given), home.house(), telling, "owner"))
    facts = telling.result.line
    assert (len(telling.line), hashlib.sha256(telling.line).hexdigest()) == (
        facts.bytes, facts.sha256
    )  # fmt: skip
    return telling


def test_a_plain_line_travels_as_it_is(home):
    """By default nothing is changed."""
    assert (b"tests are green", "fable") == ((told := taken(home)).line, told.address)


def test_a_signed_line_has_its_header_and_is_measured_with_it(home):
    """What the JSON says of the line is what the door gets."""
    line = taken(home, sign=True, sender=T).line

    assert line.startswith(f"[zdo] from {T}, delivery {DELIVERY}, answer:".encode())
    assert line.endswith(b"\ntests are green")


def test_the_header_counts(home):
    """A line that fills its bounds has no room for one."""
    full = b"x" * MOST_BYTES
    assert full == taken(home, full).line

    with pytest.raises(LineInvalid, match="with its header"):
        taken(home, full, sign=True)


def test_an_answer_goes_to_the_sender(home):
    """A session by its id, a configured target by its name."""
    home.configure('[targets.ci]\nname = "ci"\n')
    for number, sender in enumerate((T, "ci"), 1):
        home.queued(key_of(number), sender=sender)

        assert sender == taken(home, address=None, reply=key_of(number).upper()).address


@pytest.mark.parametrize("sender", ["anonymous", "nightly", "TK-11", "name:fable", "tsid:x"])
def test_nobody_answers_whom_no_address_names(home, sender):
    """Whoever bears the word as a name, or works on that ticket, did not ask."""
    home.configure('[targets.anonymous]\nname = "fable"\n')
    home.queued(sender=sender)

    with pytest.raises(NobodyToAnswer, match=sender):
        taken(home, address=None, reply=DELIVERY)


def test_who_was_refused_can_be_answered_too(home):
    """The journal knows the sender of every delivery."""
    keep.refuse(home.house(), asked(sender=T, verdict=TABLE["target-unknown"]), "nobody", 1.5)

    assert T == taken(home, address=None, reply=DELIVERY).address


def test_a_stranger_who_was_refused_under_its_id_is_not_its_sender(home):
    """Whoever uses the id of a delivery as a key, before or after, did not send it."""
    stranger = asked(sender=OTHER, verdict=TABLE["key-conflict"])
    keep.refuse(home.house(), stranger, "nobody", 1.5)
    home.queued(sender=T)
    keep.refuse(home.house(), stranger, "nobody", 1.5)

    assert T == taken(home, address=None, reply=DELIVERY).address


def test_a_journal_that_nobody_can_read_names_no_sender(home):
    """It is told as such."""
    home.queued(sender=T)
    home.alter("UPDATE event SET body = ?", "[]")

    with pytest.raises(JournalUnreadable):
        taken(home, address=None, reply=DELIVERY)


@pytest.mark.parametrize("reply", [DELIVERY, "", "no id"])
def test_an_unknown_delivery_has_no_sender(home, reply):
    """It is named in the refusal."""
    with pytest.raises(DeliveryUnknown):
        taken(home, address=None, reply=reply)
