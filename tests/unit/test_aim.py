"""From an address to two sessions, in the one order of refusals."""

from __future__ import annotations

import pytest

from carrier.binding import Binding
from carrier.errors import CarrierLive, CarrierMisbound, CarrierUnbound
from dispatch.aim import gate, refuse_live_postbox, take_aim
from dispatch.errors import TargetNotRunning, TargetStatus
from dispatch.result import Result
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from registry.errors import AddressUnknown
from registry.rows import Listing, Skipped
from registry.targets import Target
from tests.fakes.envelopes import P, T
from tests.fakes.evidence import OTHER, a_config, a_listing, a_row
from tests.fakes.scenes import a_roster, a_scene


def a_telling():
    """Nothing is known yet."""
    return Telling(Result(command="kiss", verdict=TABLE["unknown"]))


def fable(carrier_session=None, **changes):
    """The configured target fable."""
    return Target(
        **({"id": "fable", "kind": "session", "value": T} | changes),
        carrier_session=carrier_session,
    )


def test_an_aim_has_both_sessions_and_tells_them():
    """What a refusal or a delivery will say of target and carrier."""
    telling = a_telling()

    aim = take_aim("fable", a_scene(a_config(fable()), a_listing(a_row())), telling)

    assert Binding(T, P) == aim.binding
    assert a_row() == aim.row
    target = telling.result.target
    assert ("fable", T, 4201, "idle", "target") == (
        target.id, target.session_id, target.pid, target.status, target.route
    )  # fmt: skip
    assert telling.result.carrier.session_id == P


def test_a_postbox_may_be_named_by_another_target():
    """`carrier_session` is resolved like an address of the configuration."""
    clerk = Target("clerk", "session", OTHER, None)
    config = a_config(fable("clerk"), clerk)

    aim = take_aim("fable", a_scene(config, a_listing(a_row())), a_telling())

    assert OTHER == aim.binding.postbox


def test_a_pane_without_a_session_is_not_called_a_name():
    """What is missing is said as it was configured."""
    scene = a_scene(a_config(fable(kind="tsid", value="w0t0p0")), a_listing(), a_roster())

    with pytest.raises(TargetNotRunning, match="in that pane"):
        take_aim("fable", scene, a_telling())


def test_misbound_is_judged_before_the_target_is_found_dead():
    """The order is the contract: the binding first, then whether it runs."""
    with pytest.raises(CarrierMisbound):
        take_aim("fable", a_scene(a_config(fable(T.upper())), a_listing()), a_telling())


def test_a_session_without_a_row_is_not_running():
    """And the telling names both ids all the same."""
    telling = a_telling()

    with pytest.raises(TargetNotRunning, match=T):
        take_aim("fable", a_scene(a_config(fable()), a_listing()), telling)
    assert (T, None, None, P) == (
        telling.result.target.session_id,
        telling.result.target.pid,
        telling.result.target.status,
        telling.result.carrier.session_id,
    )


def test_a_display_name_that_nobody_has_is_not_running():
    """A target by name is known even while no session answers to it."""
    with pytest.raises(TargetNotRunning, match="that name"):
        take_aim(
            "fable", a_scene(a_config(fable(kind="name", value="fable")), a_listing()), a_telling()
        )


@pytest.mark.parametrize("sought", [fable(), fable(kind="name", value="fable")])
def test_rows_that_could_not_be_read_are_named(sought):
    """The session may be one of them, so "not running" is not all that is said."""
    listing = Listing((), (Skipped("1.json", "unreadable", 1), Skipped("2.json", "torn", 2)))

    with pytest.raises(TargetNotRunning, match="1 rows could not be read"):
        take_aim("fable", a_scene(a_config(sought), listing), a_telling())


def test_an_unbound_target_is_told_with_its_name():
    """The refusal says who was meant."""
    telling = a_telling()

    with pytest.raises(CarrierUnbound):
        take_aim("fable", a_scene(a_config(fable("")), a_listing(a_row())), telling)
    assert telling.result.target.id == "fable"
    assert telling.result.carrier.session_id is None


def test_an_unknown_address_tells_nothing():
    """There is no target to speak of."""
    telling = a_telling()

    with pytest.raises(AddressUnknown):
        take_aim("nobody", a_scene(a_config(), a_listing()), telling)
    assert telling.result.target.id is None


def aim_at(status):
    """An aim at T with that status."""
    return take_aim(
        "fable", a_scene(a_config(fable()), a_listing(a_row(status=status))), a_telling()
    )


@pytest.mark.parametrize("status", ["idle", "busy", "waiting"])
def test_three_statuses_take_a_line(status):
    """INTERFACE 3."""
    gate(aim_at(status), if_idle=False)


@pytest.mark.parametrize("status", [None, "", "stopped", "IDLE", "idle "])
def test_any_other_status_does_not(status):
    """Unlisted is not proven."""
    with pytest.raises(TargetStatus, match="idle or busy or waiting"):
        gate(aim_at(status), if_idle=False)


def test_if_idle_takes_idle_alone():
    """INTERFACE 7: `--if-idle` on another status is target-status."""
    gate(aim_at("idle"), if_idle=True)
    with pytest.raises(TargetStatus, match="has status busy, not idle"):
        gate(aim_at("busy"), if_idle=True)


def test_a_postbox_that_runs_is_refused():
    """Somebody drives it."""
    refuse_live_postbox(P, a_listing(a_row()))
    with pytest.raises(CarrierLive, match="pid 4201"):
        refuse_live_postbox(P, a_listing(a_row(session_id=P)))
