"""Every spelling of an id is one id, and reading an id twice changes nothing."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from registry.ids import key_to_msg_id, parse_uuid

blanks = st.text(" \t\r\n", max_size=3)


@st.composite
def spellings(draw: st.DrawFn, ids: st.SearchStrategy[uuid.UUID]) -> tuple[str, str]:
    """(canonical, one of its spellings)."""
    canonical = str(draw(ids))
    text = draw(st.sampled_from([canonical, canonical.replace("-", "")]))
    text = "".join(draw(st.sampled_from([char, char.upper()])) for char in text)
    if draw(st.booleans()):
        text = f"{{{text}}}"
    text = draw(st.sampled_from(["", "urn:uuid:", "URN:UUID:", "uuid:"])) + text
    return canonical, draw(blanks) + text + draw(blanks)


@given(spellings(st.uuids()))
def test_every_spelling_is_its_canonical_id(pair: tuple[str, str]) -> None:
    """Two spellings of one session are never two sessions."""
    canonical, spelling = pair

    assert canonical == parse_uuid(spelling)
    assert canonical == key_to_msg_id(spelling)


@given(st.text() | st.from_regex(r"[0-9a-fA-F{} -]{30,40}", fullmatch=True))
def test_an_answer_is_canonical_or_none(text: str) -> None:
    """What comes out is a UUID that reads as itself."""
    found = parse_uuid(text)

    assert found is None or (found == parse_uuid(found) and str(uuid.UUID(found)) == found)


@given(st.text(min_size=1, max_size=200))
def test_any_key_has_one_message_id(key: str) -> None:
    """The same key gives the same id, and the id is a UUID."""
    if not key.isascii():
        key = key.encode("utf-8", "replace").decode()

    assert key_to_msg_id(key) == key_to_msg_id(key) == parse_uuid(key_to_msg_id(key))
