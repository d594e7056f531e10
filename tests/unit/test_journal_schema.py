"""The journal's records, read back strictly."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from dispatch.result import as_json
from dispatch.schema import result_from
from dispatch.verdict import TABLE
from registry.record import replace
from tests.fakes.evidence import a_run, an_evidence
from tests.fakes.household import asked, conclude


@pytest.mark.parametrize("name", TABLE)
def test_every_class_comes_back_as_it_was_kept(name):
    """Through JSON and back: equal by every field."""
    result = replace(conclude(an_evidence(run=a_run(exit=None))), verdict=TABLE[name])

    assert result == result_from(json.loads(json.dumps(as_json(result))))


def test_an_early_result_comes_back_too():
    """Nulls are kept as nulls."""
    assert asked() == result_from(as_json(asked()))


@pytest.mark.parametrize(
    "damage",
    [
        {"v": 2},
        {"proof": "certain"},
        {"extra": 1},
        {"target": {"id": "fable"}},
        {"target": {"id": 7, "session_id": None, "pid": None, "status": None, "route": None}},
        {"attempt": "many"},
        {"delivery_id": 7},
        {"class": "postponed"},
    ],
)
def test_what_is_not_ours_is_refused(damage):
    """A record of another shape or of a later zdo is not guessed at."""
    with pytest.raises(ValidationError):
        result_from(as_json(asked()) | damage)
