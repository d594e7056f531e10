"""K01 to K06, K15, K16: who is told, who is resumed, and that they are never one."""

from __future__ import annotations

import hashlib
import itertools
import subprocess

import pytest

from dispatch.rig.rig import P, Rig, Said
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    answered,
    delivered,
    journal,
    lease,
    normal,
    refused,
    wait_for,
    waits,
)

COUNT = itertools.count(1)


def spellings(session_id: str) -> dict[str, str]:
    """The ways to spell one id that are one id (INTERFACE 7, binding)."""
    bare = session_id.replace("-", "")
    return {
        "canonical": session_id,
        "upper": session_id.upper(),
        "blanks": f"  {session_id} ",
        "braces": f"{{{session_id}}}",
        "urn": f"urn:uuid:{session_id}",
        "no-hyphens": bare,
        "all-at-once": f" URN:UUID:{bare.upper()} ",
    }


def untouched(rig: Rig, door: object) -> None:
    """Nothing was started and no door was called."""
    assert [] == rig.runs()
    assert [] == door.calls()


# -- K01


def test_k01_the_carrier_resumes_the_postbox_with_the_argv_of_the_interface(rig):
    """K01: argv equals INTERFACE 4 position by position; P is resumed, T is nowhere in it."""
    rig.door()

    told = delivered(rig.zdo("kiss", "--json", "fable", "tests are green"))

    (run,) = rig.runs()
    attempt = f"{rig.state}/attempts/{told['delivery_id']}.1"
    assert [
        rig.claude, "-p", "--resume", P, "--output-format", "json", "--tools=",
        "--strict-mcp-config", "--setting-sources=", "--permission-mode", "dontAsk",
        "--max-turns", "1", "--max-budget-usd", "0.05",
        "--settings", f"{attempt}/settings.json", "--", f"zdo knock {told['delivery_id']}",
    ] == run["argv"]  # fmt: skip
    assert T not in " ".join(run["argv"])
    assert (f"{rig.state}/postbox", "") == (run["cwd"], run["stdin"])
    assert run["pid"] == run["pgid"]


def test_k01_the_answer_names_both_sessions_side_by_side(rig):
    """K01: target T, carrier P, the door's msg_id is the delivery; nothing is guessed."""
    door = rig.door()

    told = delivered(rig.zdo("kiss", "--json", "fable", "tests are green"))

    digest = hashlib.sha256(b"tests are green").hexdigest()
    assert {"bytes": 15, "sha256": digest} == told["line"]
    assert {
        "id": "fable", "session_id": T, "pid": door.pid, "status": "idle", "route": "target",
    } == told["target"]  # fmt: skip
    assert (P, P, 0) == tuple(
        told["carrier"][name] for name in ("session_id", "result_session_id", "exit")
    )
    assert (T, told["delivery_id"], "inbox") == tuple(
        told["receipt"][name] for name in ("session_id", "msg_id", "door")
    )
    assert ("surfaced", 1, "anonymous", None, None) == tuple(
        told[name] for name in ("proof", "attempt", "sender", "reason", "advice")
    )
    assert ["tests are green"] == door.lines()


def test_k01_a_targets_own_postbox_goes_before_the_stations(rig):
    """K01: `carrier_session` of the target is resumed, as a UUID or as another target's session."""
    rig.configure(f"""{CONFIG}
[targets.own]
session = "{T}"
carrier_session = "{OTHER}"
[targets.lent]
session = "{T}"
carrier_session = "itself"
""")
    rig.door()

    delivered(rig.zdo("kiss", "--json", "own", "x"))
    delivered(rig.zdo("kiss", "--json", "lent", "x"))

    assert [OTHER, P] == [run["argv"][3] for run in rig.runs()]


# -- K02


def test_k02_idle_busy_and_waiting_take_the_same_route(rig):
    """K02: argv and environment are equal for each status, and the JSON shows the status."""
    door = rig.door()
    deliveries = []
    for status in ("idle", "busy", "waiting"):
        door.change(status=status, accept="busy" if status == "busy" else "surface")
        told = delivered(rig.zdo("kiss", "--json", "fable", "x"))
        assert status == told["target"]["status"]
        deliveries.append(told["delivery_id"])

    starts = [normal(run, own) for run, own in zip(rig.runs(), deliveries, strict=True)]

    assert starts[0] == starts[1] == starts[2]


@pytest.mark.parametrize("status", ["stopped", None, "IDLE", "idle ", ""])
def test_k02_any_other_status_is_refused(rig, status):
    """K02: an unknown or absent status is 75 `target-status`, and no carrier is started."""
    door = rig.door(status=status)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-status", 75)

    assert (status or None) == (told["target"]["status"] or None)
    untouched(rig, door)


def test_k02_if_idle_refuses_a_busy_target(rig):
    """K02: with `--if-idle` a busy target is 75 `target-status`, an idle one is told."""
    door = rig.door(status="busy")

    refused(rig, rig.zdo("kiss", "--json", "fable", "x", "--if-idle"), "target-status", 75)
    untouched(rig, door)

    door.change(status="idle")
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--if-idle"))


# -- K03, K04


def test_k03_every_spelling_of_the_targets_own_id_is_misbound(rig):
    """K03: whichever way the carrier is spelled, equal ids are 2 before anything starts."""
    tables = "".join(
        f'[targets.{name}]\nsession = "{T}"\ncarrier_session = "{given}"\n'
        for name, given in spellings(T).items()
    )
    rig.configure(CONFIG + tables)
    door = rig.door()

    for name in spellings(T):
        told = refused(rig, rig.zdo("kiss", "--json", name, "x"), "carrier-misbound", 2)
        assert ["carrier-misbound"] == journal(rig, told["delivery_id"])
        assert (T, T) == (told["target"]["session_id"], told["carrier"]["session_id"])
        assert "refused" == told["state"]
    untouched(rig, door)


@pytest.mark.parametrize("given", spellings(P).values(), ids=spellings(P))
def test_k04_kissing_the_postbox_itself_is_misbound(rig, given):
    """K03, K04: the station's own postbox as the address is 2, however it is spelled."""
    told = refused(rig, rig.zdo("kiss", "--json", given, "x"), "carrier-misbound", 2)

    assert ["carrier-misbound"] == journal(rig, told["delivery_id"])
    assert [] == rig.runs()


def test_k04_a_running_postbox_as_target_is_misbound_before_live(rig):
    """K04, fine print: `carrier-misbound` is judged before `carrier-live`."""
    door = rig.door(session_id=P, name="pbox")

    for address in ("itself", P, "pbox", "name:pbox"):
        refused(rig, rig.zdo("kiss", "--json", address, "x"), "carrier-misbound", 2)
    untouched(rig, door)


@pytest.mark.parametrize("where", ["target", "station", "station-default"])
def test_k04_a_missing_carrier_is_unbound(rig, where):
    """K04: an empty carrier is 2 `carrier-unbound`, never the target's own id or the default."""
    own = f'[targets.lone]\nsession = "{T}"\ncarrier_session = ""\n'
    none = '[station]\ncarrier_session = ""\n'
    rig.configure(CONFIG + own if where == "target" else none + CONFIG)
    door = rig.door()
    address = {"target": "lone", "station": "fable", "station-default": T}[where]

    refused(rig, rig.zdo("kiss", "--json", address, "x"), "carrier-unbound", 2)
    untouched(rig, door)


# -- K05 (the parallel half is in test_concurrency.py)


def test_k05_a_running_postbox_is_not_driven_a_second_time(rig):
    """K05: a live row with the postbox's id is 2 `carrier-live`, and no carrier is started."""
    door, _ = rig.door(), rig.door(session_id=P, name="pbox")

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-live", 2)

    assert (T, P) == (told["target"]["session_id"], told["carrier"]["session_id"])
    untouched(rig, door)


def test_k05_a_dead_postbox_row_does_not_block(rig):
    """K05: what the carrier left behind when it was killed is no running session."""
    rig.door()
    rig.door(session_id=P, name="pbox").kill()

    delivered(rig.zdo("kiss", "--json", "fable", "x"))


# -- K06


@pytest.mark.parametrize(
    ("address", "wanted"),
    [("fable", "fable"), (T, T), (T.upper(), T), ("name:api", T), ("api", T)],
)
def test_k06_the_child_is_told_the_targets_id(rig, address, wanted):
    """K06: the target's id as the user configured it, else the session's; never the carrier's."""
    rig.door(name="api")

    delivered(rig.zdo("kiss", "--json", address, "x"))

    (run,) = rig.runs()
    assert (wanted, P) == (
        run["env"]["ZDO_CARRIER_DOOR_TARGET"],
        run["env"]["ZDO_CARRIER_SESSION"],
    )


# -- K15


def waiting_kiss(rig: Rig, address: str, change: object) -> Said:
    """What a kiss said that waited for the lease while *change* was made."""
    key = f"a0000000-0000-4000-8000-{next(COUNT):012d}"
    with lease(rig):
        process = rig.start("kiss", "--json", address, "x", "--key", key)
        wait_for(lambda: waits(process), "the wait for the lease")
        change()
    out, err = process.communicate(timeout=20)
    return Said(subprocess.CompletedProcess((), process.returncode, out, err))


def test_k15_a_row_that_went_meanwhile_is_not_running(rig):
    """K15: the target ended while we waited for the postbox: 69, nothing started."""
    door = rig.door()

    said = waiting_kiss(rig, "fable", lambda: door.change(registered=False))

    refused(rig, said, "target-not-running", 69)
    untouched(rig, door)


def test_k15_a_configured_session_that_was_cleared_is_not_running(rig):
    """K15: after `/clear` the configured id runs no more: 69, nothing started."""
    door = rig.door()

    said = waiting_kiss(rig, "fable", lambda: door.change(session_id=OTHER))

    refused(rig, said, "target-not-running", 69)
    untouched(rig, door)


def test_k15_a_name_is_bound_again_to_the_id_it_has_now(rig):
    """K15: by name, a changed id is bound again, and only the new session is written."""
    door = rig.door(name="api")

    said = waiting_kiss(rig, "api", lambda: door.change(session_id=OTHER))

    told = delivered(said)
    assert OTHER == told["target"]["session_id"] == told["receipt"]["session_id"]
    assert ["x"] == door.lines()


def test_k15_a_name_that_went_meanwhile_is_unknown(rig):
    """K15: by name, a name that nobody has any more is 67, nothing started."""
    door = rig.door(name="api")

    said = waiting_kiss(rig, "api", lambda: door.change(name="web"))

    refused(rig, said, "target-unknown", 67)
    untouched(rig, door)


def test_k15_a_target_that_became_the_postbox_is_misbound(rig):
    """K15: the binding is made again under the lease, not only the row looked up."""
    door = rig.door(name="api")

    said = waiting_kiss(rig, "api", lambda: door.change(session_id=P))

    refused(rig, said, "carrier-misbound", 2)
    untouched(rig, door)


def test_k15_a_status_that_closed_meanwhile_is_refused(rig):
    """K15: the gate is asked again too: 75, nothing started."""
    door = rig.door()

    said = waiting_kiss(rig, "fable", lambda: door.change(status="stopped"))

    refused(rig, said, "target-status", 75)
    untouched(rig, door)


def test_k15_a_name_that_two_have_meanwhile_is_ambiguous(rig):
    """K15: two candidates are a refusal under the lease too."""
    door = rig.door(name="api")

    said = waiting_kiss(rig, "api", lambda: rig.door(name="api", session_id=OTHER))

    refused(rig, said, "target-ambiguous", 67)
    untouched(rig, door)


# -- K16


@pytest.mark.parametrize("value", ["fable", ""])
def test_k16_no_kiss_from_inside_a_carrier(rig, value):
    """K16: with `ZDO_CARRIER_DOOR_TARGET` set, even to nothing, it is 2 `nested-kiss`."""
    door = rig.door()

    said = rig.zdo("kiss", "--json", "fable", "x", env={"ZDO_CARRIER_DOOR_TARGET": value})

    refused(rig, said, "nested-kiss", 2)
    untouched(rig, door)


def test_k16_the_carriers_own_environment_makes_a_kiss_nested(rig):
    """K16: a kiss with exactly the environment that a carrier got is refused."""
    door = rig.door()
    delivered(rig.zdo("kiss", "--json", "fable", "x"))
    env = rig.runs()[0]["env"] | {"ZDO_CONFIG": rig.config_file, "ZDO_STATE_DIR": rig.state}

    said = rig.zdo("kiss", "--json", "fable", "x", whole_env=env)

    refused(rig, said, "nested-kiss", 2)
    assert ["x"] == door.lines()


def test_looking_is_allowed_from_inside_a_carrier(rig):
    """K16 is about kisses: `resolve` starts nothing and answers there too."""
    rig.door()

    told = answered(rig.zdo("resolve", "--json", "fable", env={"ZDO_CARRIER_DOOR_TARGET": "x"}))

    assert (T, P) == (told["target"]["session_id"], told["carrier"]["session_id"])
