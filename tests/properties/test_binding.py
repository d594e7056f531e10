"""Misbound is misbound under every spelling of an id (K03)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carrier.binding import bind
from carrier.errors import CarrierMisbound

IDS = st.uuids().map(str)


@st.composite
def spellings(draw, of):
    """One of the ways to write the id *of*."""
    text = draw(st.sampled_from([of, of.replace("-", "")]))
    text = "".join(draw(st.sampled_from([c, c.upper()])) for c in text)
    text = draw(st.sampled_from(["{}", "{{{}}}", "urn:uuid:{}", "URN:UUID:{}"])).format(text)
    return draw(st.text(" \t\n", max_size=3)) + text + draw(st.text(" \t\n", max_size=3))


@given(data=st.data(), session=IDS)
def test_one_session_is_misbound_under_every_two_spellings(data, session):
    """Case, blanks, braces, urn and hyphens make no second session."""
    one, two = data.draw(spellings(session)), data.draw(spellings(session))

    with pytest.raises(CarrierMisbound):
        bind("fable", one, two)


@given(data=st.data(), told=IDS, resumed=IDS)
def test_two_sessions_are_bound_in_canonical_spelling(data, told, resumed):
    """And stay at their places."""
    assume(told != resumed)

    binding = bind("fable", data.draw(spellings(told)), data.draw(spellings(resumed)))

    assert (told, resumed) == (binding.target_session, binding.postbox)
