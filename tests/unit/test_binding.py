"""Target and postbox side by side."""

from __future__ import annotations

import pytest

from carrier.binding import Binding, bind, postbox_for
from carrier.errors import CarrierMisbound, CarrierUnbound
from registry.targets import Target
from tests.fakes.evidence import a_config

T = "388e03f6-0000-4000-8000-000000000001"
P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
OTHER = "11111111-2222-4333-8444-555555555555"


def config(carrier_session=P):
    """A station with *carrier_session*."""
    return a_config(carrier_session=carrier_session)


def target(carrier_session):
    """A target with *carrier_session*."""
    return Target("fable", "session", T, carrier_session)


def nobody(_):
    """No configured target has a session."""
    return


def test_a_target_without_its_own_postbox_has_the_stations():
    """Configured or addressed directly."""
    assert postbox_for(target(None), config(), nobody) == P
    assert postbox_for(None, config(), nobody) == P


def test_a_targets_own_postbox_comes_before_the_stations():
    """Also where the station has none."""
    assert postbox_for(target(OTHER), config(), nobody) == OTHER
    assert postbox_for(target(OTHER), config(""), nobody) == OTHER


def test_a_postbox_comes_out_canonical():
    """Whatever the spelling in the configuration."""
    assert postbox_for(target(f"urn:uuid:{OTHER.upper()}"), config(), nobody) == OTHER
    assert postbox_for(None, config("{" + P + "}"), nobody) == P


def test_an_empty_postbox_of_a_target_is_none_on_purpose():
    """It never falls back to the station's (INTERFACE 7)."""
    with pytest.raises(CarrierUnbound, match=r"fable .*target fable is empty"):
        postbox_for(target(""), config(), nobody)


def test_a_station_without_a_postbox_is_unbound():
    """Never the target's own id instead (K04)."""
    with pytest.raises(CarrierUnbound, match=r"target fable has no postbox: .*station mini"):
        postbox_for(target(None), config(""), nobody)
    with pytest.raises(CarrierUnbound, match="addressed directly"):
        postbox_for(None, config(""), nobody)


def test_a_postbox_may_be_named_by_another_target():
    """The session of that target is asked for by its id, and made canonical."""
    sessions = {"post": OTHER.upper()}

    assert postbox_for(target("post"), config(), sessions.get) == OTHER


@pytest.mark.parametrize("session", [None, "not a session"])
def test_another_target_without_a_session_leaves_the_target_unbound(session):
    """It is named in the error."""
    with pytest.raises(CarrierUnbound, match="'post', with no session"):
        postbox_for(target("post"), config(), lambda _: session)


def test_two_different_sessions_are_bound():
    """Both canonical, neither in the other's place."""
    assert Binding(T, P) == bind("fable", T.upper(), "{" + P + "}")


def test_one_session_twice_is_misbound():
    """The error has both."""
    with pytest.raises(CarrierMisbound) as caught:
        bind("fable", T, T.upper())

    assert (caught.value.target, caught.value.postbox) == ("fable", T)


def test_a_postbox_that_is_no_id_is_unbound():
    """Nothing can be resumed by it."""
    with pytest.raises(CarrierUnbound, match="no session id"):
        bind("fable", T, "post")


def test_a_target_session_that_is_no_id_is_a_bug_of_the_caller():
    """Rows have canonical ids only; two unknown ids are never taken for different ones."""
    with pytest.raises(ValueError, match="no session id"):
        bind("fable", "x", P)
