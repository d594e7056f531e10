"""What a kiss was asked for, and the line as it asks to be kept."""

from __future__ import annotations

import hashlib

import pytest

from dispatch.errand import Errand, Order, draft_of
from dispatch.result import CarrierFacts, LineFacts, TargetFacts
from dispatch.telling import Telling
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.household import LINE, asked

DIGEST = hashlib.sha256(LINE).digest()


def errand(order, **changes):
    """A kiss whose line was read."""
    telling = Telling(asked(line=LineFacts(len(LINE), DIGEST.hex()), **changes), order.address)
    telling.line = LINE
    return Errand(order, None, telling, owner="token")


def order(**changes):
    """A kiss of LINE to fable."""
    return Order(**({"address": "fable", "take_line": lambda: LINE, "sender": "me"} | changes))


def test_a_draft_is_what_was_read_and_who_is_meant():
    """By what is known of the target, under the delivery's own id."""
    draft = draft_of(errand(order(key="build-812", if_idle=True)))

    assert (DELIVERY, DIGEST, LINE, "fable", "token", P) == (
        draft.key, draft.digest, draft.body, draft.target, draft.owner, draft.postbox
    )  # fmt: skip
    assert ("me", "build-812", 1) == (draft.sender, draft.given_key, draft.idle)
    assert "fable" == draft.spelled


def test_without_a_key_none_was_given():
    """The delivery's id is no key of the caller's."""
    assert ("", 0) == (draft_of(errand(order())).given_key, draft_of(errand(order())).idle)


@pytest.mark.parametrize(("known", "target"), [(T, T), (None, "name:fable")])
def test_an_address_stands_where_nothing_is_known(known, target):
    """A bare name became the session that it means; what does not run yet keeps its address."""
    unknown = errand(
        order(address="name:fable"), target=TargetFacts(id=known), carrier=CarrierFacts()
    )

    assert (target, "") == (draft_of(unknown).target, draft_of(unknown).postbox)


def test_a_sender_that_no_utf8_can_spell_is_kept_as_it_is_written_out():
    """A caller's environment may hold any bytes; a database holds text."""
    assert "me\\udcff" == draft_of(errand(order(sender="me\udcff"))).sender


def test_a_plain_kiss_keeps_nothing():
    """Only who asks for it leaves a line to the relay."""
    assert (False, False, False) == (order().queue, order().or_queue, order().dry_run)


def test_a_sender_that_no_utf_8_spells_is_kept_as_it_is_written_out():
    """A02: a sender is never an error."""
    assert "me\\udcff" == draft_of(errand(order(sender="me\udcff"))).sender
