"""The commands that only look: they start nothing and settle nothing by themselves."""

from __future__ import annotations

import json
import os
from functools import partial

import pytest

from carrier.report import Unreadable
from dispatch.cli import views
from registry.clock import Clock
from registry.home import open_state
from registry.locks import take_lease
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.evidence import a_run, an_evidence
from tests.fakes.household import Household, conclude


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in."""
    household = Household(tmp_path)
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


def test_resolve_shows_both_sessions_and_keeps_nothing(home, capsys):
    """The checks of a kiss, without one."""
    home.runs()

    assert views.resolve("fable", None, as_object=False) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"postbox  {P}"
    assert not os.path.exists(home.state)


@pytest.mark.usefixtures("home")
def test_resolve_refuses_like_a_kiss(capsys):
    """With both ids as far as they are known."""
    assert views.resolve("itself", None, as_object=True) == 2
    shown = json.loads(capsys.readouterr().out)

    assert ("resolve", "carrier-misbound") == (shown["command"], shown["class"])
    assert (P, P) == (shown["target"]["session_id"], shown["carrier"]["session_id"])


def test_resolve_sees_a_postbox_that_runs(home, capsys):
    """Before anybody waits for its lease."""
    home.runs()
    home.registry.add(sessionId=P, name="postbox")

    assert views.resolve("fable", None, as_object=False) == 2
    assert "carrier-live" in capsys.readouterr().err


def test_resolve_does_not_take_our_own_carrier_for_a_stranger(home, capsys):
    """While a kiss holds the lease, the postbox's row may be its carrier's."""
    home.runs()
    home.registry.add(sessionId=P, name="postbox")
    house = home.house()
    open_state(house.places)
    lease = take_lease(house.places.locks, P, timeout_s=0, clock=Clock())

    assert views.resolve("fable", None, as_object=False) == 0
    lease.close()
    capsys.readouterr()


def test_sessions_shows_the_running_and_the_skipped(home, capsys):
    """With the reason of each, and whether its door answers."""
    home.runs()
    home.registry.add(damage="torn")

    assert views.sessions(None, every=True, as_object=False) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["fable", T[:8]]
    assert lines[1].split()[7] == "yes"
    assert lines[2].startswith(f"no ticket {T[:8]}: ")
    assert lines[3].endswith(": torn, not one whole JSON object")

    assert views.sessions(None, every=False, as_object=True) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(T, True)] == [(row["session_id"], row["reachable"]) for row in shown["sessions"]]
    assert ["torn"] == [skip["reason"] for skip in shown["skipped"]]


@pytest.mark.usefixtures("home")
def test_targets_shows_the_configuration(capsys):
    """As zdo understood it."""
    assert views.targets(None, as_object=False) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["fable", "session", T, P]

    assert views.targets(None, as_object=True) == 0
    shown = json.loads(capsys.readouterr().out)
    assert ["fable", "itself"] == [target["id"] for target in shown["targets"]]


@pytest.mark.parametrize("view", [partial(views.sessions, every=False), views.targets])
def test_a_bad_configuration_is_said_by_every_view(home, capsys, view):
    """78, in both forms."""
    home.configure("[nonsense]\n")

    assert view(None, as_object=True) == 78
    assert json.loads(capsys.readouterr().out)["class"] == "config-invalid"


def test_verify_says_the_verdict_as_it_is_now(home, capsys):
    """In the sentence of a kiss."""
    transcript = home.transcript()
    home.judged()
    transcript.surface(DELIVERY)

    assert views.verify(DELIVERY, None, as_object=False) == 0
    assert capsys.readouterr().out.startswith("surfaced: fable")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("view", [views.verify, views.show])
@pytest.mark.parametrize("delivery", [DELIVERY, "nonsense", "\udcff"])
def test_an_unknown_delivery_is_67(capsys, view, delivery):
    """INTERFACE 7."""
    assert view(delivery, None, as_object=False) == 67
    assert capsys.readouterr().err.startswith("zdo: target-unknown: no delivery ")


@pytest.mark.parametrize("view", [views.verify, views.show])
def test_a_state_that_cannot_be_used_is_said(home, view):
    """73."""
    with open(home.state, "wb"):
        pass

    assert view(DELIVERY, None, as_object=False) == 73


def test_show_tells_the_story_without_the_line(home, capsys):
    """Every event with its class and reason, oldest first."""
    home.judged(receipt=None, proof="none")

    assert views.show(DELIVERY.upper(), None, as_object=False) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("Z accepted")
    assert second.endswith("Z judged receipt-missing: the receipt is missing")

    assert views.show(DELIVERY, None, as_object=True) == 0
    said = capsys.readouterr().out
    events = json.loads(said)["events"]
    assert ["accepted", "judged"] == [event["kind"] for event in events]
    assert events[0]["id"] < events[1]["id"]
    assert events[1]["class"] == "receipt-missing"
    assert "tests are green" not in said


def test_show_has_the_last_words_of_a_carrier_that_failed(home, capsys):
    """The advice of its class is to read them."""
    said = a_run(exit=1, stdout=b"", stderr=b"one\ntwo\nthree\nNo conversation found\x1b[2J\n")
    home.judged(intent=False, receipt=None, proof="none", run=said, report=Unreadable("empty"))

    views.show(DELIVERY, None, as_object=False)
    lines = capsys.readouterr().out.splitlines()

    assert ["  stderr  two", "  stderr  three", "  stderr  No conversation found\\x1b[2J"] == lines[
        2:
    ]


def test_show_has_the_evidence(home, capsys):
    """Everything known of a delivery."""
    home.judged()
    views.show(DELIVERY, None, as_object=True)
    kept = json.loads(capsys.readouterr().out)["events"][1]

    assert kept["evidence"]["receipt"]["session_id"] == T
    assert kept["result"]["class"] == conclude(an_evidence()).verdict.name
    assert kept["result"]["proof"] == "written"
