"""What `zdo explain` says of each class is there, and short."""

from __future__ import annotations

import pytest

from dispatch.cli.explaining import paragraphs
from dispatch.explain import FATES, MEANINGS
from dispatch.verdict import TABLE


def test_every_class_is_explained():
    """And nothing else is."""
    assert TABLE.keys() == MEANINGS.keys()
    assert {row.fate for row in TABLE.values()} == FATES.keys()


@pytest.mark.parametrize("name", TABLE)
def test_a_text_is_whole_sentences(name):
    """For a person, with no delivery's id left open."""
    lines = paragraphs(TABLE[name])

    assert MEANINGS[name].endswith(".")
    assert "{id}" not in "".join(lines)
    assert all(len(line) <= 88 for line in lines)
