"""What a pass amounts to: counts, one line, one object, one exit status."""

from __future__ import annotations

import json

import pytest

from dispatch.tally import Tally
from dispatch.verdict import TABLE
from tests.fakes.envelopes import DELIVERY
from tests.fakes.household import asked

FIELDS = (
    "v", "command", "class", "exit", "sender", "reason", "runs", "delivered", "deferred", "open",
    "dead", "regraded", "recovered", "left", "doubtful", "lines",
)  # fmt: skip


def counted(*names, dead=False):
    """A tally of lines with these verdicts."""
    tally = Tally()
    for name in names:
        tally.count(asked(verdict=TABLE[name], reason=f"why {name}"), dead=dead)
    return tally


def test_a_pass_that_did_nothing_says_so():
    """And has no class, for nothing happened; its exit is 0."""
    tally = Tally()

    assert ("relay: nothing to do", 0) == (tally.line(), tally.verdict.exit)
    assert (None, None) == (tally.as_json()["class"], tally.as_json()["reason"])


def test_the_line_names_what_there_was():
    """In the order of the counts; nothing that is zero."""
    tally = counted("delivered-start", "surfaced", "target-not-running", "unknown")
    tally.runs, tally.left, tally.regraded, tally.recovered = 1, 3, 2, 1

    assert tally.line() == (
        "relay: 2 delivered, 1 put off, 1 open, 2 graded again, 1 recovered, 3 waiting"
        " in 1 carrier run"
    )
    tally.runs = 2
    assert tally.line().endswith(" in 2 carrier runs")


@pytest.mark.parametrize(
    ("name", "dead", "field"),
    [
        ("delivered-start", False, "delivered"),
        ("surfaced", False, "delivered"),
        ("door-held", False, "open"),
        ("unknown", False, "open"),
        ("door-refused", True, "dead"),
        ("expired", False, "dead"),
        ("carrier-exit", True, "dead"),
        ("spool-unwritable", True, "dead"),
        ("carrier-exit", False, "deferred"),
        ("target-not-running", False, "deferred"),
        ("target-unknown", False, "deferred"),
        ("interrupted", False, "deferred"),
    ],
)
def test_every_fate_has_its_count(name, dead, field):
    """Each line is counted once."""
    shown = counted(name, dead=dead).as_json()

    counts = {each: shown[each] for each in ("delivered", "deferred", "open", "dead")}
    assert counts == {"delivered": 0, "deferred": 0, "open": 0, "dead": 0, field: 1}


@pytest.mark.parametrize("name", ["carrier-exit", "target-not-running", "door-dropped"])
def test_what_only_waits_is_no_trouble(name):
    """The relay's own work: exit 0."""
    assert (0, None) == (counted(name).verdict.exit, counted(name).trouble)


@pytest.mark.parametrize("name", ["unknown", "door-held", "door-refused", "expired"])
def test_what_a_person_must_see_is_the_exit(name):
    """With the delivery, its target and the reason."""
    tally = counted("delivered-start", name, "door-denied")

    assert (TABLE[name], f"delivery {DELIVERY} to fable: why {name}") == (
        tally.verdict,
        tally.trouble[1],
    )


@pytest.mark.parametrize("name", ["interrupted", "carrier-spawn"])
def test_what_stops_every_line_is_told_for_all(name):
    """Over what became of a single one."""
    tally = counted("unknown", name, "door-refused")

    assert (name, f"why {name}") == tally.trouble


def test_broken_surroundings_outweigh_a_single_line():
    """And the first of them stands."""
    tally = counted("unknown")
    tally.broken("carrier-live", "it runs")
    tally.broken("spool-unwritable", "no room")

    assert ("carrier-live", "it runs") == tally.trouble


def test_a_pass_that_broke_off_does_not_claim_that_there_was_nothing():
    """It could not know."""
    tally = Tally()
    tally.broken("spool-unwritable", "no room")

    assert tally.line() == "relay: nothing done"


def test_a_pass_is_over_when_somebody_ends_it():
    """By a signal, or by Ctrl-C that has ended a carrier run; not by other trouble."""
    ended, interrupted, broken = Tally(), counted("interrupted"), counted("carrier-spawn")
    ended.end()

    assert (True, True, False, False) == (
        ended.stopped,
        interrupted.stopped,
        broken.stopped,
        Tally().stopped,
    )


def test_the_object_has_the_same_fields_whatever_happened():
    """Scripts read these names; each line is the object that a kiss prints."""
    for tally in (Tally(), counted("delivered-start"), counted("unknown", "expired")):
        assert FIELDS == tuple(tally.as_json())
        assert json.loads(json.dumps(tally.as_json())) == tally.as_json()
    (line,) = counted("unknown").as_json()["lines"]
    assert (DELIVERY, "unknown", 3) == (line["delivery_id"], line["class"], line["exit"])
