"""Ids: every spelling of a UUID is one id, everything else is none."""

from __future__ import annotations

import uuid

import pytest

from registry.ids import KEY_SPACE, key_to_msg_id, new_uuid, parse_uuid

CANONICAL = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
BARE = CANONICAL.replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        CANONICAL,
        CANONICAL.upper(),
        BARE,
        f"{{{CANONICAL}}}",
        f"{{ {BARE} }}",
        f"urn:uuid:{CANONICAL}",
        f"URN:UUID:{CANONICAL.upper()}",
        f"uuid:{CANONICAL}",
        f" \t{CANONICAL}\n",
    ],
)
def test_every_spelling_is_one_id(text: str) -> None:
    """Case, blanks, braces, prefix and hyphens do not make another session."""
    assert CANONICAL == parse_uuid(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        CANONICAL[:-1],
        CANONICAL + "0",
        CANONICAL.replace("6", "g"),
        "-".join(BARE),
        BARE[:4] + "-" + BARE[4:],
        f"{{{CANONICAL}",
        f"{CANONICAL}}}",
        f"urn:{{{CANONICAL}}}x",
        "\N{ARABIC-INDIC DIGIT SIX}" * 32,
        CANONICAL.replace("-", "\u2010"),
        None,
        5,
        b"61b7959a122e410e945df4b9b4f73cb7",
    ],
)
def test_what_is_no_uuid_is_none(text: object) -> None:
    """Misplaced hyphens, foreign digits and other types included."""
    assert parse_uuid(text) is None


def test_a_new_id_is_a_random_uuid() -> None:
    """Version 4, RFC variant, canonical, and not the last one again."""
    made = [new_uuid() for _ in range(100)]

    assert len(set(made)) == 100
    for one in made:
        assert one == parse_uuid(one)
        assert (uuid.UUID(one).version, uuid.UUID(one).variant) == (4, uuid.RFC_4122)


def test_a_key_that_is_a_uuid_is_its_own_id() -> None:
    """In canonical form."""
    assert CANONICAL == key_to_msg_id(CANONICAL.upper())


def test_a_text_key_is_a_uuid_of_our_name_space() -> None:
    """The same text is the same id on every machine."""
    assert str(uuid.uuid5(uuid.UUID(KEY_SPACE), "nightly 7")) == key_to_msg_id("nightly 7")
    assert key_to_msg_id("nightly 7") != key_to_msg_id("nightly 8")
