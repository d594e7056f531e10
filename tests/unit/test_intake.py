"""What a kiss takes in: the line as it will travel, and an answer's address."""

from __future__ import annotations

import hashlib

import pytest

from dispatch.errand import Errand, Order
from dispatch.errors import DeliveryUnknown, LineInvalid, NobodyToAnswer
from dispatch.intake import take_in
from dispatch.line import MOST_BYTES
from dispatch.telling import Telling
from tests.fakes.envelopes import DELIVERY, T
from tests.fakes.household import Household, asked


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
    """Whoever that was, as it was spelled."""
    home.queued(sender="nightly")

    assert "nightly" == taken(home, address=None, reply=DELIVERY.upper()).address


def test_nobody_answers_the_anonymous(home):
    """They left no address."""
    home.queued()

    with pytest.raises(NobodyToAnswer, match="anonymous"):
        taken(home, address=None, reply=DELIVERY)


@pytest.mark.parametrize("reply", [DELIVERY, "", "no id"])
def test_an_unknown_delivery_has_no_sender(home, reply):
    """It is named in the refusal."""
    with pytest.raises(DeliveryUnknown):
        taken(home, address=None, reply=reply)
