"""The one object of --json: every field, in its order, null where unknown."""

from __future__ import annotations

import json

import pytest

from dispatch.result import Plan, Result, as_json
from dispatch.verdict import TABLE
from tests.fakes.evidence import an_evidence
from tests.fakes.household import asked, conclude

# INTERFACE 5, name by name.
INTERFACE = json.loads(
    """
{"v":1,"command":"kiss","class":"delivered-start","exit":0,"state":"delivered-start","proof":"surfaced",
 "delivery_id":"…","key":"…","attempt":1,"sender":"anonymous","line":{"bytes":16,"sha256":"…"},
 "target":{"id":"fable","session_id":"…T…","pid":4201,"status":"idle","route":"target"},
 "carrier":{"session_id":"…P…","result_session_id":"…P…","num_turns":0,"cost_usd":0.0,"exit":0,"wall_ms":561},
 "receipt":{"session_id":"…T…","msg_id":"…","door":"inbox","at":"…Z"},
 "reason":null,"advice":null}
"""
)


def names(shown):
    """The names of *shown* in order, with those of the objects inside."""
    return [
        (name, names(value) if isinstance(value, dict) else None) for name, value in shown.items()
    ]


def test_a_delivery_has_the_fields_of_the_interface_in_their_order():
    """Scripts read these names."""
    assert names(INTERFACE) == names(as_json(conclude(an_evidence())))


def test_an_early_refusal_has_the_same_fields_with_nulls():
    """A field that is not known is null, never left out."""
    shown = as_json(Result(command="kiss", verdict=TABLE["usage"]))

    assert names(INTERFACE) == names(shown)
    assert set(shown["target"].values()) == {None}


def test_only_a_dry_run_has_a_plan():
    """Words and names of variables, after the fields that are always there."""
    shown = as_json(asked(verdict=TABLE["dry-run"], plan=Plan(argv=("claude",), env=("HOME",))))

    assert {"argv": ("claude",), "env": ("HOME",)} == shown.pop("plan")
    assert names(INTERFACE) == names(shown)


@pytest.mark.parametrize("name", TABLE)
def test_advice_is_given_exactly_when_there_is_something_to_do(name):
    """It names the delivery where one exists, else the word for it."""
    advice = asked(verdict=TABLE[name]).advice

    assert (advice is None) == (TABLE[name].exit == 0)
    assert "{" not in str(advice)


def test_advice_without_a_delivery_still_reads():
    """A placeholder instead of None."""
    result = Result(command="kiss", verdict=TABLE["unknown"])

    assert str(result.advice).endswith("zdo verify DELIVERY")
