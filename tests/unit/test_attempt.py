"""One attempt from permit to evidence: (what the wrapper did, what T shows) → facts."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys

import pytest

from carrier.argv import settings
from carrier.attempt import Evidence, attempt, clear, collect, may_be_at_the_door, prepare
from carrier.errors import AttemptExists
from carrier.proof import TornReceipt, leave_receipt, read_receipt, take
from carrier.report import Report, Unreadable
from carrier.run import Run, read_run
from registry.clock import Clock
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, MSG, P, T, a_receipt, a_round, receipt_for
from tests.fakes.evidence import OTHER
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
    [found] = carry_round(stage, command, **changes)
    return found


def carry_round(stage, command, **changes):
    """The evidence of each line of a round on *stage* with *command* as its wrapper."""
    env = ENV | {"ZDO_CARRIER_ATTEMPT": stage.attempt_dir, "ZDO_CARRIER_WRAPPER": command}
    order = stage.order(**({"env": env} | changes))
    prepare(stage.folders, stage.envelopes(), command)
    return attempt(order, stage.envelopes(), Clock())


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
    """One with a history tells of an attempt that nobody knows: nothing is started."""
    stage = Stage(tmp_path, hook="none")
    take(stage.attempt_dir)

    with pytest.raises(AttemptExists, match=f"{DELIVERY}.1 is left"):
        carry(stage, wrapper({}))

    assert ["intent"] == os.listdir(stage.attempt_dir)
    assert [] == stage.log("start")


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


# Takes the permits of a round in order, as many as its arguments name, and leaves their receipts.
ROUND_WRAPPER = """
import json, os, sys
sys.path.append(sys.argv[1])
from carrier.proof import leave_receipt, read_round, take
from tests.fakes.envelopes import receipt_for
lead = os.environ["ZDO_CARRIER_ATTEMPT"]
folders = [lead, *(os.path.dirname(lead) + "/" + name for name in read_round(lead))]
for folder, receipt in zip(folders, json.loads(sys.argv[2])):
    envelope = take(folder)
    if receipt is not None:
        leave_receipt(folder, receipt_for(envelope, **receipt))
print('{"decision":"block","reason":"zdo"}')
"""


def round_wrapper(*receipts):
    """A wrapper that takes as many lines as there are *receipts*, and leaves those that are one."""
    return shlex.join([sys.executable, "-c", ROUND_WRAPPER, ROOT, json.dumps(receipts)])


def surfaced(number):
    """The row that shows line *number* of a round in the model's input."""
    msg_id = a_round(number)[-1].msg_id
    return {"type": "user", "sessionId": T, "origin": {"kind": "peer", "msg_id": msg_id}}


def test_a_round_has_evidence_for_each_line(tmp_path):
    """Taken with and without a receipt, and not taken: each line is judged on its own."""
    stage = stage_in(tmp_path, lines=5)
    path = transcript(stage, surfaced(1), ENQUEUED | {"content": "line 2"}, surfaced(4))

    found = carry_round(stage, round_wrapper({}, {}, {}, None))

    assert ["surfaced", "enqueued", "written", "surfaced", "none"] == [f.proof for f in found]
    assert [True, True, True, True, False] == [each.intent for each in found]
    assert [0, 0, 0, None, None] == [each.offset for each in found]
    assert [path] * 4 + [None] == [each.transcript for each in found]
    assert [read_receipt(folder) for folder in stage.folders] == [f.receipt for f in found]
    assert [4] == stage.having("withdrawn")
    assert [(0, P)] == list({(each.run.exit, each.report.session_id) for each in found})
    assert all(each.run is found[0].run and each.report is found[0].report for each in found)


def test_lines_of_several_sessions_are_looked_for_in_their_own_transcripts(tmp_path):
    """What one target shows says nothing of a line to another."""
    stage = stage_in(tmp_path, lines=3)
    transcript(stage, surfaced(1), surfaced(2), surfaced(3))
    second = replace(stage.envelopes()[1], session_id=OTHER)
    envelopes = (stage.envelopes()[0], second, stage.envelopes()[2])
    prepare(stage.folders, envelopes, "true")
    for folder, envelope in zip(stage.folders, envelopes, strict=True):
        take(folder)
        leave_receipt(folder, receipt_for(envelope))

    found = attempt(stage.order(argv=["/bin/true"]), envelopes, Clock())

    assert ["surfaced", "written", "surfaced"] == [each.proof for each in found]
    assert found[1].transcript is None


def test_lines_of_the_same_text_are_not_taken_for_each_other(tmp_path):
    """One row shows one of them, the one that went first."""
    stage = stage_in(tmp_path, lines=2)
    envelopes = stage.envelopes(line="one line of text")
    transcript(stage, ENQUEUED_OURS)
    prepare(stage.folders, envelopes, "true")
    for folder, envelope in zip(stage.folders, envelopes, strict=True):
        take(folder)
        leave_receipt(folder, receipt_for(envelope))

    found = attempt(stage.order(argv=["/bin/true"]), envelopes, Clock())

    assert ["enqueued", "written"] == [each.proof for each in found]


def test_lines_that_share_a_file_share_its_reading(tmp_path):
    """Each receipt is opened once, a transcript once for all lines written at one offset.

    Lines that nobody took are not looked for at all.
    """
    stage = stage_in(tmp_path, lines=40)
    path = transcript(stage, SURFACED, surfaced(1), ENQUEUED | {"content": "line 36"})
    offsets, envelopes = (0, 0, 0, 7), stage.envelopes()
    prepare(stage.folders, envelopes, "true")
    written = list(zip(stage.folders, envelopes, strict=True))[:-4]
    for at, (folder, envelope) in enumerate(written):
        take(folder)
        leave_receipt(folder, receipt_for(envelope, offset=offsets[at % 4] + 1))
    seen = tmp_path / "seen"

    def act():
        opened = []

        def hear(event, given):
            if event in ("open", "os.listdir"):
                opened.append((event, str(given[0])))

        sys.addaudithook(hear)
        found = attempt(stage.order(argv=["/bin/true"]), envelopes, Clock())
        assert ["surfaced", "enqueued", "none"] == [found[at].proof for at in (0, 35, 36)]
        seen.write_text(json.dumps(opened))

    assert status_of(in_child(act)) == 0
    opened = [given for event, given in json.loads(seen.read_bytes()) if event == "open"]
    listed = [given for event, given in json.loads(seen.read_bytes()) if event == "os.listdir"]
    assert [f"{each}/receipt.json" for each in stage.folders] == [
        each for each in opened if each.endswith("/receipt.json")
    ]
    assert [path, path] == [each for each in opened if each == path]
    assert [os.path.dirname(os.path.dirname(path))] == [
        each for each in listed if "projects" in each
    ]


def test_a_report_that_has_been_parsed_is_not_parsed_again(tmp_path):
    """Who collects many lines of one run hands it in."""
    stage = Stage(tmp_path)
    never = Run(exit=None, timed_out=False, spawn_error=None, stdout=b"", stderr=b"", wall_ms=0)
    parsed = Unreadable("seen before")

    assert parsed is collect(stage.envelope(), never, stage.attempt_dir, parsed).report


def test_each_line_of_a_round_can_be_collected_alone(tmp_path):
    """The dispatcher died, the keeper told the run in every folder: no other one is needed."""
    stage = stage_in(tmp_path, lines=3, after_s=0.3)
    transcript(stage, surfaced(2))
    dispatcher = in_child(lambda: carry_round(stage, round_wrapper({}, {})))
    wait_for(lambda: stage.log("start"))
    os.kill(dispatcher, 9)
    status_of(dispatcher)
    os.close(stage.lease_fd)
    wait_for(stage.lease_is_free)
    alone = stage.folders[::-1]

    for folder, envelope, proof in zip(
        alone, stage.envelopes()[::-1], ("none", "surfaced", "written"), strict=True
    ):
        found = collect(envelope, read_run(folder), folder)
        assert (0, P, proof) == (found.run.exit, found.report.session_id, found.proof)
        clear(folder)


@pytest.mark.parametrize(
    ("age", "may"), [(0.0, True), (9.9, True), (10.0, False), (1e6, False), (-1.0, True)]
)
def test_a_wrapper_may_be_at_the_door_while_it_has_time(tmp_path, age, may):
    """Counted from the taking of the permit."""
    (tmp_path / "intent").touch()
    os.utime(tmp_path / "intent", (1000.0, 1000.0))

    assert may == may_be_at_the_door(str(tmp_path), 10.0, 1000.0 + age)


@pytest.mark.parametrize("names", [(), ("permit",), ("withdrawn",), ("intent", "receipt.json")])
def test_without_an_intent_or_with_a_receipt_nobody_is_at_the_door(tmp_path, names):
    """Not yet, never, or over."""
    for name in names:
        (tmp_path / name).touch()

    assert not may_be_at_the_door(str(tmp_path), 10.0, 0.0)
    assert not may_be_at_the_door(f"{tmp_path}/gone", 10.0, 0.0)


def test_an_intent_from_the_future_costs_one_wait(tmp_path):
    """The clock was set back by years: it is waited for once, not for years."""
    (tmp_path / "intent").touch()
    os.utime(tmp_path / "intent", (2e9, 2e9))

    assert may_be_at_the_door(str(tmp_path), 10.0, 1000.0)
    assert may_be_at_the_door(str(tmp_path), 10.0, 1009.0)
    assert not may_be_at_the_door(str(tmp_path), 10.0, 1010.0)
    assert os.stat(tmp_path / "intent").st_mtime == 1000.0


def test_where_no_intent_can_be_seen_nobody_is_waited_for(tmp_path):
    """Its place is no folder: a wait would never end, and the evidence says what it is."""
    (tmp_path / "file").touch()

    assert not may_be_at_the_door(f"{tmp_path}/file", 10.0, 0.0)


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
    prepare(stage.folders, stage.envelopes(), wrapper({}))
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
