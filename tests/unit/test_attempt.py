"""One attempt from permit to evidence: (what the wrapper did, what T shows) → facts."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from carrier.argv import settings
from carrier.attempt import Evidence, attempt, collect, prepare
from carrier.errors import AttemptExists
from carrier.proof import TornReceipt, read_receipt
from carrier.report import Report, Unreadable
from carrier.run import Run, read_run
from registry.clock import Clock
from tests.fakes.envelopes import DELIVERY, MSG, P, T, a_receipt
from tests.fakes.runs import ENV, Stage, in_child, status_of, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
SURFACED = {"type": "user", "sessionId": T, "origin": {"kind": "peer", "msg_id": MSG}}
ENQUEUED = {"type": "queue-operation", "operation": "enqueue", "sessionId": T}

# Takes the permit, leaves the receipt that its argument describes, and blocks.
WRAPPER = """
import json, os, sys
sys.path.append(sys.argv[1])
from carrier.proof import leave_receipt, take
from tests.fakes.envelopes import a_receipt
folder, receipt = os.environ["ZDO_CARRIER_ATTEMPT"], json.loads(sys.argv[2])
assert take(folder) is not None
if isinstance(receipt, str):
    open(folder + "/receipt.json", "w").write(receipt)
elif receipt is not None:
    leave_receipt(folder, a_receipt(**receipt))
print('{"decision":"block","reason":"zdo"}')
"""


def wrapper(receipt):
    """A wrapper that leaves *receipt*: changes of a right one, a text, or None for none."""
    return shlex.join([sys.executable, "-c", WRAPPER, ROOT, json.dumps(receipt)])


def stage_in(folder, **behaviour):
    """A stage whose attempt is not laid out yet."""
    return Stage(folder, laid_out=False, **behaviour)


def carry(stage, command, **changes):
    """The evidence of one attempt on *stage* with *command* as its wrapper."""
    env = ENV | {"ZDO_CARRIER_ATTEMPT": stage.attempt_dir, "ZDO_CARRIER_WRAPPER": command}
    given = {
        "argv": stage.argv(), "env": env, "cwd": stage.cwd, "attempt_dir": stage.attempt_dir,
        "lease_fd": stage.lease_fd, "deadline_s": 10.0, "clock": Clock(),
    }  # fmt: skip
    prepare(stage.attempt_dir, command, stage.envelope())
    return attempt(stage.envelope(), **(given | changes))


def transcript(stage, *rows):
    """T's transcript with *rows*; its path."""
    folder = f"{stage.folder}/claude-config/projects/-w"
    os.makedirs(folder)
    path = f"{folder}/{T}.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


ENQUEUED_OURS = ENQUEUED | {"content": "one line of text"}


@pytest.mark.parametrize(
    ("receipt", "rows", "intent", "proof"),
    [
        ({}, [], True, "written"),
        ({}, [ENQUEUED_OURS], True, "enqueued"),
        ({}, [ENQUEUED_OURS, SURFACED], True, "surfaced"),
        ({"surfaced": True}, [], True, "written"),
        ({"eof": False}, [], True, "none"),
        ({"eof": False}, [SURFACED], True, "surfaced"),
        ({}, [SURFACED | {"sessionId": P}], True, "written"),
        ({"wrote": False, "eof": False, "found": "door-mismatch"}, [SURFACED], True, "none"),
        (None, [], True, "none"),
        (None, [ENQUEUED_OURS], True, "none"),
        (None, [SURFACED], True, "surfaced"),
        ("{torn", [ENQUEUED_OURS], True, "none"),
        ({"nonce": "another"}, [], True, "none"),
        ({"nonce": "another"}, [SURFACED], True, "surfaced"),
        ({"session_id": P}, [ENQUEUED_OURS], True, "none"),
    ],
)
def test_the_proof_is_what_door_and_transcript_show(tmp_path, receipt, rows, intent, proof):
    """A wrapper's word for "surfaced" is not enough; without a receipt only msg_id counts."""
    stage = stage_in(tmp_path)
    path = transcript(stage, *rows)

    found = carry(stage, wrapper(receipt))

    assert (intent, proof, path if found.transcript else None) == (
        found.intent,
        found.proof,
        found.transcript,
    )
    assert isinstance(found, Evidence)
    assert (0, P, False) == (found.run.exit, found.report.session_id, found.report.is_error)
    assert found.receipt == read_receipt(stage.attempt_dir)
    ours = receipt in ({}, {"surfaced": True}, {"eof": False})
    assert (0 if ours else None) == found.offset


def test_rows_from_before_the_write_prove_nothing_of_the_queue(tmp_path):
    """The same text may have been told before: only what follows the offset counts."""
    stage = stage_in(tmp_path)
    path = transcript(stage, ENQUEUED_OURS)
    receipt = {"transcript": path, "offset": os.path.getsize(path)}

    found = carry(stage, wrapper(receipt))

    assert ("written", path) == (found.proof, found.transcript)
    assert receipt["offset"] == found.offset
    assert found.receipt == a_receipt(**receipt)


def test_a_receipt_that_is_torn_is_evidence_too(tmp_path):
    """Named, not dropped."""
    assert isinstance(carry(stage_in(tmp_path), wrapper("{torn")).receipt, TornReceipt)


def test_a_carrier_that_never_ran_the_wrapper_left_the_door_untouched(tmp_path):
    """The permit is withdrawn; nobody can take it later; the transcript is not asked."""
    stage = stage_in(tmp_path, hook="none")
    transcript(stage, SURFACED)

    found = carry(stage, wrapper({}))

    assert (False, None, "none", None) == (
        found.intent,
        found.receipt,
        found.proof,
        found.transcript,
    )
    assert isinstance(found.report, Report)
    assert [False, False] == [stage.has("permit"), stage.has("intent")]
    assert stage.has("withdrawn")


@pytest.mark.parametrize(("rows", "proof"), [([], "none"), ([SURFACED], "surfaced")])
def test_a_carrier_that_took_the_permit_away_left_a_doubt(tmp_path, rows, proof):
    """Without the withdrawn permit nobody can tell; the transcript alone may."""
    stage = stage_in(tmp_path)
    transcript(stage, *rows)

    found = carry(stage, f"rm {stage.attempt_dir}/permit; exit 2")

    assert (True, None, proof) == (found.intent, found.receipt, found.proof)


def test_an_attempts_folder_is_made_by_its_attempt_alone(tmp_path):
    """One that is there already tells of an attempt that nobody knows: nothing in it is touched."""
    stage = Stage(tmp_path, hook="none")
    before = {
        name: os.stat(f"{stage.attempt_dir}/{name}") for name in os.listdir(stage.attempt_dir)
    }

    with pytest.raises(AttemptExists, match=f"{DELIVERY}.1 is left") as caught:
        carry(stage, wrapper({}))

    assert stage.attempt_dir == caught.value.folder
    assert ["permit"] == os.listdir(stage.attempt_dir)
    assert before == {"permit": os.stat(f"{stage.attempt_dir}/permit")}
    assert [] == stage.log("start")


def test_an_attempt_with_a_higher_number_is_from_a_lost_journal(tmp_path):
    """Who counts from one again must not deliver again; lower numbers are our own past."""
    stage = stage_in(tmp_path)
    folder = os.path.dirname(stage.attempt_dir)
    for name in (f"{DELIVERY}.0", f"{DELIVERY}.x", f"{MSG}.7"):
        os.mkdir(f"{folder}/{name}")
    later = f"{folder}/{DELIVERY}.2"
    os.mkdir(later)

    with pytest.raises(AttemptExists, match=f"{DELIVERY}.2 is left"):
        prepare(stage.attempt_dir, wrapper({}), stage.envelope())
    os.rmdir(later)
    prepare(stage.attempt_dir, wrapper({}), stage.envelope())


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_whatever_lies_in_the_folders_place_is_an_attempt_that_exists(tmp_path, kind):
    """It is neither followed nor replaced."""
    stage = stage_in(tmp_path)
    if kind == "file":
        Path(stage.attempt_dir).touch()
    else:
        os.symlink(stage.cwd if kind == "link" else "/nowhere", stage.attempt_dir)

    with pytest.raises(AttemptExists):
        prepare(stage.attempt_dir, wrapper({}), stage.envelope())
    assert [] == os.listdir(stage.cwd)


def test_a_second_wrapper_in_one_run_finds_no_permit(tmp_path):
    """One permit, one write (K14)."""
    stage = stage_in(tmp_path, hook_runs=2)

    found = carry(stage, wrapper({}))

    [hooks] = stage.log("hooks")
    assert [0, 1] == [run["status"] for run in hooks["runs"]]
    assert (True, "written") == (found.intent, found.proof)


def test_a_missing_binary_leaves_everything_untouched(tmp_path):
    """A spawn error is a fact like the others."""
    stage = stage_in(tmp_path)

    found = carry(stage, wrapper({}), argv=[f"{tmp_path}/missing"])

    assert "No such file" in found.run.spawn_error
    assert (Unreadable("empty"), False, None) == (found.report, found.intent, found.receipt)


def test_everything_is_in_place_and_private_before_the_carrier_starts(tmp_path):
    """Settings with the one hook, the permit, and a folder for us alone."""
    stage = stage_in(tmp_path, hook="none")
    argv = ["/bin/sh", "-c", f"cp -p {stage.attempt_dir}/permit {tmp_path}/seen"]

    carry(stage, "the wrapper", argv=argv)

    with open(f"{stage.attempt_dir}/settings.json", "rb") as file:
        assert settings("the wrapper", 15) == file.read()
    assert json.loads((tmp_path / "seen").read_bytes())["delivery_id"] == DELIVERY
    modes = [
        stat.S_IMODE(os.stat(path).st_mode)
        for path in (stage.attempt_dir, f"{stage.attempt_dir}/settings.json", tmp_path / "seen")
    ]
    assert [0o700, 0o600, 0o600] == modes


def test_evidence_can_be_collected_after_the_dispatcher_died(tmp_path):
    """The keeper finished alone; whoever comes next finds the same."""
    stage = stage_in(tmp_path, after_s=0.3)
    transcript(stage, SURFACED)
    dispatcher = in_child(lambda: carry(stage, wrapper({})))
    wait_for(lambda: stage.log("start"))
    os.kill(dispatcher, 9)
    status_of(dispatcher)
    os.close(stage.lease_fd)
    wait_for(stage.lease_is_free)

    found = collect(stage.envelope(), read_run(stage.attempt_dir), stage.attempt_dir)

    assert (0, True, "surfaced") == (found.run.exit, found.intent, found.proof)


HEAVY = [
    "carrier.door", "carrier.wrapper", "dataclasses", "typing", "pathlib", "subprocess", "tempfile",
    "shutil", "uuid", "logging", "asyncio", "datetime", "pydantic", "typer", "filelock", "socket",
    "hashlib", "ctypes",
]  # fmt: skip


def test_an_attempt_loads_neither_the_door_nor_anything_heavy():
    """The dispatcher cannot touch a door (K11), and a kiss pays for nothing it does not use."""
    script = (
        "import sys; import carrier.attempt, carrier.binding, carrier.argv, carrier.keeper;"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )

    ran = subprocess.run(
        [sys.executable, "-IS", "-c", f"import sys; sys.path.append({ROOT!r}); {script}"],
        capture_output=True,
        check=True,
    )

    assert b"\n" == ran.stdout


def test_collecting_withdraws_a_permit_that_nobody_took(tmp_path):
    """A dispatcher killed before the fork leaves it; no stray may take it afterwards."""
    stage = stage_in(tmp_path)
    prepare(stage.attempt_dir, wrapper({}), stage.envelope())
    never = Run(exit=None, timed_out=False, spawn_error=None, stdout=b"", stderr=b"", wall_ms=0)

    found = collect(stage.envelope(), never, stage.attempt_dir)

    assert (False, "none", never) == (found.intent, found.proof, found.run)
    assert [False, True] == [stage.has("permit"), stage.has("withdrawn")]


@pytest.mark.parametrize("there", [False, True])
def test_evidence_of_a_folder_that_was_emptied_is_doubt(tmp_path, there):
    """Killed before the permit was out, or cleaned up by somebody: it looks the same."""
    stage = stage_in(tmp_path)
    if there:
        os.mkdir(stage.attempt_dir)
    never = Run(exit=None, timed_out=False, spawn_error=None, stdout=b"", stderr=b"", wall_ms=0)

    found = collect(stage.envelope(), never, stage.attempt_dir)

    assert (True, None, "none") == (found.intent, found.receipt, found.proof)
