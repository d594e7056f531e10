"""K07 to K11, K14: what counts as delivered, and who may touch the door."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

from dispatch.rig.rig import ROOT, P, Rig, Said
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    OTHER,
    SHELL,
    at_gate,
    complained,
    delivered,
    open_gate,
    peer,
    refused,
    shell_claude,
    story,
    transcript_of,
)

RECEIPT = '"$ZDO_CARRIER_ATTEMPT/receipt.json"'


def forged(sed: str = "", says: str = P) -> str:
    """A stand-in that edits the receipt by *sed* and says it is session *says*."""
    edit = f"sed -i '{sed}' {RECEIPT}" if sed else ""
    return SHELL.replace("${SAYS:-$ZDO_CARRIER_SESSION}", says) % edit


# -- K07


@pytest.mark.parametrize(
    ("result", "receipt", "name", "status"),
    [
        (P, T, "delivered-start", 0),
        (T, T, "carrier-mismatch", 3),
        (P, P, "door-mismatch", 3),
        (T, P, "carrier-mismatch", 3),
        (OTHER, T, "carrier-mismatch", 3),
        (P, OTHER, "door-mismatch", 3),
        (P.upper(), T, "delivered-start", 0),
    ],
)
def test_k07_two_ids_are_compared_with_two_constants(rig, result, receipt, name, status):
    """K07: the result's id with the carrier, the receipt's with the target, each by itself."""
    door = rig.door()
    shell_claude(rig, forged(f"s/{T}/{receipt}/g", result))

    said = rig.zdo("kiss", "--json", "fable", "x")

    told = delivered(said) if status == 0 else refused(rig, said, name, status)
    assert (name, result.lower()) == (told["class"], told["carrier"]["result_session_id"])
    assert receipt == told["receipt"]["session_id"]
    assert ["x"] == door.lines()


@pytest.mark.parametrize("says", [P, T])
def test_k07_a_receipt_that_is_not_this_attempts_is_foreign(rig, says):
    """K07, fine print f: another nonce is 3 `receipt-foreign`, whatever else fits or not."""
    rig.door()
    nonce = 's/"nonce": "[^"]*"/"nonce": "00000000-0000-4000-8000-000000000000"/'
    shell_claude(rig, forged(nonce, says))

    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "receipt-foreign", 3)


@pytest.mark.parametrize(
    "result",
    [
        '"is_error":true,"subtype":"success","api_error_status":529',
        '"is_error":true,"subtype":"error_max_turns","num_turns":73',
        '"result":"I could not deliver it, sorry","num_turns":"many"',
    ],
)
def test_k07_a_models_words_prove_nothing_against_a_delivery(rig, result):
    """K07, fine print b: with both ids and the receipt right the rest is only shown."""
    rig.door()
    program = SHELL.replace('"type":"result"', f'"type":"result",{result}') + "exit 1\n"
    shell_claude(rig, program.replace("%s\nprintf", ":\nprintf").replace("%%", "%"))

    told = delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert 1 == told["carrier"]["exit"]


# -- K08


def during_the_carrier(rig: Rig, change: object) -> Said:
    """What a kiss said when *change* was made between the carrier's start and its wrapper."""
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "x")
    at_gate(rig, "before")
    change()
    for gate in ("before", "after"):
        open_gate(rig, gate)
    out, err = kiss.communicate(timeout=20)
    return Said(subprocess.CompletedProcess((), kiss.returncode, out, err))


def test_k08_a_cleared_target_is_not_written(rig):
    """K08: `/clear` between resolve and write is 3 `door-mismatch`, and the door is untouched."""
    door = rig.door()

    said = during_the_carrier(rig, lambda: door.change(session_id=OTHER))

    told = refused(rig, said, "door-mismatch", 3)
    assert OTHER in told["reason"]
    assert ("none", None) == (told["proof"], told["receipt"]["msg_id"])
    assert [] == door.calls()


def test_k08_a_target_that_ended_is_not_running(rig):
    """K08, fine print e: the target gone before the write is 69, the door is untouched."""
    door = rig.door()

    said = during_the_carrier(rig, door.kill)

    refused(rig, said, "target-not-running", 69)
    assert [] == door.calls()


def test_k08_a_second_row_with_the_id_is_a_mismatch(rig):
    """K08, fine print e: two running rows with the id are 3 `door-mismatch`, none is written."""
    door = rig.door()
    doors = [door]

    said = during_the_carrier(rig, lambda: doors.append(rig.door(name="twin")))

    refused(rig, said, "door-mismatch", 3)
    assert [] == [call for each in doors for call in each.calls()]


@pytest.mark.parametrize("damage", ["procStart", "pidDomain"])
def test_k08_a_row_that_is_another_process_is_not_written(rig, damage):
    """K08: another start time or another pid domain is no row; 69, the door is untouched."""
    door = rig.door()

    def spoil() -> None:
        row = Path(door.row_file)
        text = row.read_text(encoding="utf-8")
        row.write_text(text.replace(f'"{damage}":"', f'"{damage}":"9'), encoding="utf-8")

    said = during_the_carrier(rig, spoil)

    refused(rig, said, "target-not-running", 69)
    assert [] == door.calls()


def test_k08_a_socket_that_another_process_serves_is_not_written(rig):
    """K08: the kernel's peer pid must be the row's; else 3 `door-mismatch`, no byte is written."""
    door, stranger = rig.door(), rig.door(name="stranger", session_id=OTHER)

    def swap() -> None:
        os.unlink(door.socket)
        os.link(stranger.socket, door.socket)

    said = during_the_carrier(rig, swap)

    refused(rig, said, "door-mismatch", 3)
    assert [] == [line for each in (door, stranger) for line in each.lines()]


@pytest.mark.parametrize("what", ["symlink", "file", "foreign"])
def test_k08_a_door_that_is_not_the_users_own_socket_is_not_written(rig, what):
    """K08, K17: a link, a file or another user's socket at the path is 3 `door-mismatch`."""
    door = rig.door()

    def swap() -> None:
        if what == "foreign":
            os.chown(door.socket, 12345, 12345)
            return
        os.rename(door.socket, door.socket + ".moved")
        if what == "symlink":
            os.symlink(door.socket + ".moved", door.socket)
        else:
            Path(door.socket).touch()

    said = during_the_carrier(rig, swap)

    refused(rig, said, "door-mismatch", 3)
    assert [] == door.calls()


def test_k08_the_frame_is_pinned_to_the_session(rig):
    """K08: `session_id` stands in the frame, so a door that was just cleared drops the line."""
    door = rig.door()

    delivered(rig.zdo("kiss", "--json", "fable", "x"))

    (call,) = door.calls(1)
    assert T == call["frames"][-1]["session_id"]
    assert door.token == call["auth"]


def test_k08_a_target_cleared_at_the_very_door_has_not_read_the_line(rig):
    """K08, K09: cleared between look-up and write, the pin makes the door drop it: 3, no proof."""
    door = rig.door(clear_to=OTHER)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "door-mismatch", 3)

    assert told["proof"] in ("none", "written")
    assert [["session-mismatch"]] == [call["fates"] for call in door.calls(1)]


# -- K09


def test_k09_the_proof_says_how_far_the_line_got(rig):
    """K09: read is `written`, waiting is `enqueued`, only the user row is `surfaced`."""
    door = rig.door()
    for script, proof in (
        ({"accept": "bare"}, "written"),
        ({"accept": "surface", "surface_after": None}, "enqueued"),
        ({"accept": "surface", "surface_after": 0.0}, "surfaced"),
        ({"accept": "busy", "status": "busy"}, "surfaced"),
        ({"accept": "busy", "status": "busy", "enqueue": False}, "surfaced"),
    ):
        door.change(**({"surface_after": 0.0} | script))
        told = delivered(rig.zdo("kiss", "--json", "fable", f"x {proof} {script}"))
        assert (proof, script) == (told["proof"], script)


def test_k09_verify_raises_only_by_the_targets_own_row(rig):
    """K09: `zdo verify` is `surfaced` by `origin.msg_id` in T's transcript and nothing else."""
    rig.door(accept="bare")
    told = delivered(rig.zdo("kiss", "--json", "fable", "the line"))
    own, msg_id = told["delivery_id"], told["receipt"]["msg_id"]
    postbox, target = transcript_of(rig, P), transcript_of(rig, T)
    postbox.queue("enqueue", content="the line")
    postbox.surface("the line", peer(msg_id))
    target.surface("the line", peer(OTHER))
    target.surface(f"the line {msg_id}", peer(OTHER))
    target.surface(f"the line {msg_id}", {"kind": "human", "msg_id": msg_id})

    before = delivered(rig.zdo("verify", "--json", own))
    target.surface("the line", peer(msg_id))
    after = delivered(rig.zdo("verify", "--json", own), "surfaced")

    assert ("written", "surfaced") == (before["proof"], after["proof"])
    assert "surfaced" == story(rig, own)[-1]["class"]


def test_k09_verify_never_lowers(rig):
    """K09: a transcript that is gone takes nothing back."""
    door = rig.door()
    told = delivered(rig.zdo("kiss", "--json", "fable", "the line"))
    os.unlink(door.transcript)

    again = delivered(rig.zdo("verify", "--json", told["delivery_id"]))

    assert "surfaced" == again["proof"]


def test_k09_proof_surfaced_waits_for_the_row(rig):
    """K09: `--proof surfaced` ends with the row, or after `--wait` as 3 `not-surfaced`."""
    door = rig.door(surface_after=0.3)

    delivered(rig.zdo("kiss", "--json", "fable", "a", "--proof", "surfaced"), "surfaced")

    door.change(surface_after=None)
    said = rig.zdo("kiss", "--json", "fable", "b", "--proof", "surfaced", "--wait", "0.2")
    told = refused(rig, said, "not-surfaced", 3)
    assert ("delivered-start", "enqueued") == (told["state"], told["proof"])


# -- K10


@pytest.mark.parametrize(
    ("script", "name", "status"),
    [
        ({"accept": "hold"}, "door-held", 3),
        ({"accept": "hold", "hold_then": "denied", "hold_after": 0.0}, "door-denied", 77),
        ({"accept": "hold", "hold_then": "expired", "hold_after": 0.0}, "expired", 69),
        ({"accept": "refuse"}, "door-refused", 77),
        ({"accept": "dropped"}, "door-dropped", 75),
        ({"accept": "dropped", "drop_reason": "duplicate"}, "door-dropped", 75),
    ],
)
def test_k10_each_notice_is_a_verdict_of_its_own(rig, script, name, status):
    """K10: held, denied, expired, refused and dropped are told apart, and none is 0."""
    door = rig.door(**script)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), name, status)

    assert (T, "written") == (told["receipt"]["session_id"], told["proof"])
    assert all(each["hung_up"] for each in door.notices(1))


def test_k10_a_held_line_that_is_approved_in_the_window_is_delivered(rig):
    """K10: approved inside the settle window it is `surfaced`, by the transcript."""
    rig.door(accept="hold", hold_then="delivered", hold_after=0.01)
    rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 2"))

    told = delivered(rig.zdo("kiss", "--json", "fable", "x"), "surfaced")

    assert "surfaced" == told["proof"]


def test_k10_a_held_line_is_settled_by_a_later_look(rig):
    """K10: `zdo verify` leaves a held line held, and raises it once it was approved."""
    rig.door(accept="hold")
    own = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "door-held", 3)["delivery_id"]

    complained(rig.zdo("verify", own), "door-held", 3)
    transcript_of(rig, T).surface("x", peer(own))

    delivered(rig.zdo("verify", "--json", own), "surfaced")


def test_k10_no_sender_claims_a_mode(rig):
    """K10: the frame claims no permission mode for anybody, whatever the target asks for."""
    door = rig.door(accept="hold")

    rig.zdo("kiss", "fable", "x")

    (call,) = door.calls(1)
    frame = call["frames"][-1]
    assert {"type", "msgV", "msg_id", "from", "session_id", "priority", "message"} == set(frame)
    assert "x" == frame["message"]["content"]


# -- K11


def test_k11_only_a_descendant_of_the_carrier_writes(rig):
    """K11: the door's peer descends from the fake claude; the dispatcher never calls."""
    door = rig.door()

    delivered(rig.zdo("kiss", "--json", "fable", "x"))

    (run,), (call,) = rig.runs(), door.calls(1)
    above = [step["pid"] for step in call["ancestry"]]
    assert run["pid"] in above[1:]
    assert call["peer_pid"] not in (run["pid"], *run["ancestors"])


def test_k11_the_dispatcher_cannot_reach_the_door():
    """K11: nothing under registry/ or dispatch/ imports what writes; only the wrapper does."""
    names = ("door", "calls", "visit", "companions", "notices", "knock", "stay", "wrapper")
    writers = {f"carrier.{name}" for name in names}
    own = {f"{ROOT}/{name.replace('.', '/')}.py" for name in writers}
    found = {
        (path.name, name)
        for layer in ("registry", "carrier", "dispatch")
        for path in (ROOT / layer).rglob("*.py")
        if str(path) not in own
        for name in imports(path)
        if name in writers
    }

    assert set() == found


def imports(path: Path) -> set[str]:
    """Every module that *path* imports, at the top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return names


# -- K14


@pytest.mark.parametrize("parallel", [False, True])
def test_k14_a_second_call_of_the_wrapper_does_nothing(rig, parallel):
    """K14: the permit is taken once, also by four wrappers at the same moment."""
    door = rig.door()
    rig.install_claude(hook_runs=4, hook_parallel=parallel)

    delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert ["x"] == door.lines()


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        ({}, 0),
        ({"hook": "none"}, 76),
        ({"hook": "none", "outcome": "empty"}, 76),
        ({"before_s": 9}, 76),
    ],
)
def test_k14_a_stray_wrapper_after_the_verdict_does_nothing(rig, behaviour, status):
    """K14: with the permit withdrawn the wrapper blocks and leaves the door alone."""
    door = rig.door()
    rig.install_claude(**behaviour)
    rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 0.7"))
    assert status == rig.zdo("kiss", "fable", "x").exit
    (run,), before = rig.runs(), door.calls()

    late = subprocess.run(
        ["sh", "-c", run["env"]["ZDO_CARRIER_WRAPPER"]],
        env=run["env"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )

    assert (0, True) == (late.returncode, b'"decision":"block"' in late.stdout)
    assert before == door.calls()
