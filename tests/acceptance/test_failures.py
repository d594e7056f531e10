"""Failures that users of such tools reported, replayed: number, script, door, what zdo says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from dispatch.rig.registry import FakeRegistry
from dispatch.rig.rig import P
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    SHELL,
    delivered,
    journal,
    lease_is_held,
    peer,
    refused,
    shell_claude,
    transcript_of,
)

QUIET = {"accept": "bare"}
MUTE = {"hook": "none"}

# number, behaviour of the carrier, script of the door, class, exit, proof, door writes
HISTORIES: list[tuple[int, dict[str, Any], dict[str, Any], str, int, str, int]] = [
    # A: the carrier says success, the line is not there
    (1, {"outcome": "success"}, QUIET, "delivered-start", 0, "written", 1),
    (1, {"outcome": "success"} | MUTE, QUIET, "wrapper-not-run", 76, "none", 0),
    (7, {"outcome": "success"}, {"surface_after": None}, "delivered-start", 0, "enqueued", 1),
    (10, {"outcome": "success"}, {"accept": "refuse"}, "door-refused", 77, "written", 1),
    (13, {"kill": [9, "after"]}, {}, "surfaced", 0, "surfaced", 1),
    (13, {"kill": [9, "after"]}, QUIET, "unknown", 3, "written", 1),
    # C: another session answers
    (34, {"outcome": "success", "session": T}, {}, "carrier-mismatch", 3, "surfaced", 1),
    (34, {"outcome": "success", "session": T} | MUTE, {}, "carrier-mismatch", 3, "none", 0),
    # D: the carrier dribbles one byte at a time
    (50, {"trickle_s": 0.0005}, {}, "delivered-start", 0, "surfaced", 1),
    # E: exit, output, limits
    (56, {"outcome": "max-turns"} | MUTE, {}, "wrapper-not-run", 76, "none", 0),
    (57, {"outcome": "max-turns-without-errors"} | MUTE, {}, "wrapper-not-run", 76, "none", 0),
    (61, {"outcome": "success", "shape": "usage-limit"} | MUTE, {}, "carrier-output", 76,
     "none", 0),
    (61, {"outcome": "success", "shape": "usage-limit", "exit": 1} | MUTE, {}, "carrier-exit", 76,
     "none", 0),
    (61, {"outcome": "success", "shape": "usage-limit", "exit": 1}, {}, "unknown", 3,
     "surfaced", 1),
    (65, {"outcome": "success", "shape": "half"}, QUIET, "unknown", 3, "written", 1),
    (65, {"outcome": "empty"}, QUIET, "unknown", 3, "written", 1),
    (73, {"kill": [15, "after"]}, QUIET, "unknown", 3, "written", 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "history", HISTORIES, ids=[f"{each[0]}-{each[3]}-{n}" for n, each in enumerate(HISTORIES)]
)
def test_a_reported_failure_replayed(rig, history):
    """Each history has one verdict, one proof, so many door writes, one judgement."""
    number, behaviour, script, name, status, proof, writes = history
    door = rig.door(**script)
    rig.install_claude(**behaviour)

    said = rig.zdo("kiss", "--json", "fable", "x")

    told = delivered(said, name) if status == 0 else refused(rig, said, name, status)
    assert (number, proof, writes) == (number, told["proof"], len(door.lines()))
    assert [None, name] == journal(rig, told["delivery_id"])
    assert 1 == len(rig.runs())


def test_1_with_proof_surfaced_success_alone_is_not_enough(rig):
    """1, 14: a perfect result and a growing transcript without the line is 3 `not-surfaced`."""
    rig.door(accept="bare")
    rig.install_claude(outcome="success")
    transcript_of(rig, T).surface("unrelated", peer(OTHER))

    said = rig.zdo("kiss", "--json", "fable", "x", "--proof", "surfaced", "--wait", "0.1")

    refused(rig, said, "not-surfaced", 3)


def test_2_a_long_transcript_is_read_to_its_last_line(rig):
    """2, 116: 16 MB, NULs, half lines and malformed rows: absent is not seen, the last one is."""
    door = rig.door(accept="bare")
    told = delivered(rig.zdo("kiss", "--json", "fable", "the line"))
    target = transcript_of(rig, T)
    target.surface("unrelated", peer(OTHER))
    with open(door.transcript, "ab") as file:
        row = json.dumps({"type": "assistant", "text": "y" * 4000}).encode() + b"\n"
        file.write(row * 4200)
        file.write(b"\0" * 4096 + b"\n" + b'{"type":"user","origin":{"kind":"pe\n')
        file.write(b'{"type":"attachment","attachment":[1,2]}\n{"type":"user","origin":"peer"}\n')
        file.write(b'"\\ud83d"\n\xff\xfe\n' + b"[" * 50_000 + b"\n")

    before = delivered(rig.zdo("verify", "--json", told["delivery_id"]))
    with open(door.transcript, "ab") as file:
        file.write(b"\0" * 512)
    target.surface("the line", peer(told["delivery_id"]))
    after = delivered(rig.zdo("verify", "--json", told["delivery_id"]), "surfaced")

    assert ("written", "surfaced") == (before["proof"], after["proof"])


def test_3_a_name_that_never_existed_is_unknown(rig):
    """3: whatever the carrier would say, nothing is started for a name that nobody has."""
    rig.install_claude(outcome="success")

    refused(rig, rig.zdo("kiss", "--json", "never-existed", "x"), "target-unknown", 67)

    assert [] == rig.runs()


@pytest.mark.parametrize(
    ("address", "name", "status"),
    [("fable", "target-not-running", 69), (T, "target-not-running", 69),
     ("name:fable", "target-unknown", 67)],
)  # fmt: skip
def test_4_a_dead_session_that_is_listed_idle_is_not_running(rig, address, name, status):
    """4, 129: the row of a killed process is no session; 69, by name 67, nothing is started."""
    rig.door().kill()
    rig.install_claude(outcome="success")

    refused(rig, rig.zdo("kiss", "--json", address, "x"), name, status)

    assert [] == rig.runs()


def test_5_every_spelling_of_a_target_comes_to_one_door(rig):
    """5: id, name, configured target in any spelling: one session, one door, receipts agree."""
    door = rig.door(name="api")

    told = [
        delivered(rig.zdo("kiss", "--json", address, address))
        for address in ("fable", T, T.upper(), "api", "name:api")
    ]

    assert {(T, door.pid)} == {
        (each["receipt"]["session_id"], each["target"]["pid"]) for each in told
    }
    assert 5 == len(door.lines())


def test_8_failures_in_a_row_are_failures_in_a_row(rig):
    """8: five sends that a carrier only claims are five failures, not one ok."""
    door = rig.door()
    rig.install_claude(outcome="success", hook="none")

    said = [rig.zdo("kiss", "fable", f"x {n}").exit for n in range(5)]

    assert ([76] * 5, []) == (said, door.calls())


@pytest.mark.parametrize("drop", ["messagingSocketPath", "procStart"])
def test_9_a_session_without_an_inbox_is_not_running(rig, drop):
    """9, 44: a row without a socket path, or without another part, is no target: 69."""
    rig.install_claude(outcome="success")
    with FakeRegistry(rig.home) as registry:
        registry.add(sessionId=T, drop=(drop,))

        refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)

    assert [] == rig.runs()


@pytest.mark.parametrize(
    ("gone", "accept", "name", "status"),
    [
        ("receipt.json", "surface", "surfaced", 0),
        ("receipt.json", "bare", "receipt-missing", 3),
        ("permit", "surface", "receipt-missing", 3),
    ],
)
def test_12_a_file_that_vanishes_is_no_receipt(rig, gone, accept, name, status):
    """12: what is taken away behind the tool's back proves nothing; the transcript does.

    That goes for the permit too: only one that was withdrawn says that the door is untouched.
    """
    door = rig.door(accept=accept)
    remove = f'rm "$ZDO_CARRIER_ATTEMPT/{gone}"'
    first = remove if gone == "permit" else ":"
    last = remove if gone != "permit" else ":"
    shell_claude(rig, SHELL.replace("sh -c", f"{first}\nsh -c") % last)

    said = rig.zdo("kiss", "--json", "fable", "x")

    told = delivered(said, name) if status == 0 else refused(rig, said, name, status)
    assert (0 if gone == "permit" else 1) == len(door.lines())
    assert ("surfaced" if name == "surfaced" else "none") == told["proof"]


@pytest.mark.parametrize(
    ("accept", "number", "name", "status"),
    [("surface", 9, "surfaced", 0), ("surface", 15, "surfaced", 0), ("bare", 9, "unknown", 3)],
)
def test_13_a_carrier_that_dies_while_its_wrapper_writes(rig, accept, number, name, status):
    """13, 73: handed over, then killed: the wrapper is heard out, the transcript decides."""
    door = rig.door(accept=accept, eof_after=0.1)
    intent = '"$ZDO_CARRIER_ATTEMPT/intent"'
    wait = f"while [ ! -e {intent} ]; do sleep 0.01; done; kill -{number} $$"
    shell_claude(rig, SHELL.replace("</dev/null >/dev/null", "</dev/null >/dev/null &") % wait)

    said = rig.zdo("kiss", "--json", "fable", "x")

    told = delivered(said, name) if status == 0 else refused(rig, said, name, status)
    wanted = (-number, "surfaced" if status == 0 else "written", ["x"])
    assert wanted == (told["carrier"]["exit"], told["proof"], door.lines())


def test_36_three_rows_with_one_id(rig):
    """36: one dead and two alive: ambiguous; with one alive it is the one."""
    dead, first = rig.door(name="a"), rig.door(name="b")
    dead.kill()
    second = rig.door(name="c")

    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-ambiguous", 67)
    second.kill()

    told = delivered(rig.zdo("kiss", "--json", "fable", "x"))
    assert (first.pid, ["x"]) == (told["target"]["pid"], first.lines())


@pytest.mark.parametrize("typed", ["a-1g", "A-1e", "a-1e "])
def test_42_a_near_name_is_never_chosen(rig, typed):
    """42: names that differ by one edit are suggested at most; nothing is started."""
    doors = [rig.door(name=n, session_id=s) for n, s in (("a-1e", T), ("a-1f", OTHER))]

    refused(rig, rig.zdo("kiss", "--json", typed, "x"), "target-unknown", 67)

    assert [] == [call for door in doors for call in door.calls()]


def test_46_a_row_of_a_living_stranger_is_not_written(rig):
    """46: the pid is alive but another process has the socket: 3 `door-mismatch`, no byte."""
    with FakeRegistry(rig.home) as registry:
        session = registry.add(sessionId=T)

        told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "door-mismatch", 3)

    assert "none" == told["proof"]
    assert str(session.pid) in told["reason"]


def test_47_another_pid_name_space_sees_no_session(rig):
    """47: in a container that shares the folder every row is foreign: 69, and none is removed."""
    door = rig.door()
    within = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a name space")

    said = subprocess.run(
        [*within, *rig.command("sessions", "--json")], env=rig.env, capture_output=True, check=True
    )

    assert ["foreign-domain"] == [each["reason"] for each in json.loads(said.stdout)["skipped"]]
    delivered(rig.zdo("kiss", "--json", "fable", "x"))
    assert ["x"] == door.lines()


def test_48_thousands_of_stale_rows_hide_nobody(rig):
    """48: 5,000 stale rows and one live: found, in time."""
    door = rig.door()
    row = json.loads(Path(door.row_file).read_text(encoding="utf-8"))
    for pid in range(4_200_000, 4_205_000):
        stale = json.dumps(row | {"pid": pid, "sessionId": OTHER, "procStart": "1"})
        Path(f"{rig.claude_dir}/sessions/{pid}.json").write_text(stale, encoding="ascii")
    began = time.monotonic()

    delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert 10 > time.monotonic() - began
    assert ["x"] == door.lines()


def test_50_odd_temporary_folders_do_not_matter(rig):
    """50, 51: `XDG_RUNTIME_DIR` a plain file, `TMPDIR` 150 characters deep: delivered."""
    rig.door()
    env = {"XDG_RUNTIME_DIR": rig.config_file, "TMPDIR": f"{rig.root}/{'t' * 150}"}

    delivered(rig.zdo("kiss", "--json", "fable", "x", env=env))

    assert env == {name: rig.runs()[0]["env"][name] for name in env}


def test_53_a_parked_row_is_not_the_holder(rig):
    """53: the row that moved to the background is skipped, the true holder is told."""
    with FakeRegistry(rig.home) as registry:
        registry.add(sessionId=T, parkedJobId="job", status="busy")
        door = rig.door()

        told = delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert (door.pid, ["x"]) == (told["target"]["pid"], door.lines())


def test_68_a_wedged_carrier_is_killed_and_its_lease_freed(rig):
    """68: no output, TERM ignored: 76 after the deadline, and the next kiss works."""
    rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 0.3"))
    door = rig.door()
    rig.install_claude(hook="none", hang_s=60, ignore_term=True)

    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-timeout", 76)

    assert not lease_is_held(rig)
    rig.configure(CONFIG)
    rig.install_claude()
    delivered(rig.zdo("kiss", "--json", "fable", "y"))
    assert ["y"] == door.lines()


def test_76_the_binary_may_be_swapped_between_two_kisses(rig):
    """76: good, a stub with an installer hint, gone, good again: each told as what it is."""
    door = rig.door()
    delivered(rig.zdo("kiss", "--json", "fable", "a"))
    shell_claude(rig, "#!/bin/sh\necho 'run: npm install -g claude'\n")
    refused(rig, rig.zdo("kiss", "--json", "fable", "b"), "carrier-output", 76)
    os.unlink(f"{rig.bin}/claude")
    refused(rig, rig.zdo("kiss", "--json", "fable", "c"), "carrier-spawn", 69)
    rig.install_claude()
    delivered(rig.zdo("kiss", "--json", "fable", "d"))

    assert ["a", "d"] == door.lines()


@pytest.mark.parametrize("size", [1_023, 1_024, 4_096, 8_186, 8_187, 65_536])
def test_80_no_length_is_cut(rig, size):
    """80, 81, 82: lines around the usual limits arrive whole, from argv and from a pipe."""
    door = rig.door()
    line = ("0123456789" * 6554)[: size - 1] + "."

    given = {"stdin": line} if size % 2 else {}
    delivered(rig.zdo("kiss", "--json", "fable", "-" if given else line, **given))

    assert [line] == door.lines()


def test_80_longer_ones_are_refused_whole(rig):
    """80: 131,072 and 200,000 bytes are 65 from a pipe; nothing is cut to fit."""
    for size in (131_072, 200_000):
        said = rig.zdo("kiss", "--json", "fable", "-", stdin="x" * size)
        refused(rig, said, "line-invalid", 65)


def test_83_a_re_flowed_text_is_still_the_line(rig):
    """83: the transcript may wrap, normalise or translate the text; the id decides."""
    rig.door(accept="bare")
    told = delivered(rig.zdo("kiss", "--json", "fable", "caf\N{LATIN SMALL LETTER E WITH ACUTE} x"))
    transcript_of(rig, T).surface("cafe\u0301\r\n\N{NO-BREAK SPACE}x", peer(told["delivery_id"]))

    delivered(rig.zdo("verify", "--json", told["delivery_id"]), "surfaced")


def test_84_no_character_is_split(rig):
    """84: an emoji on the edge of 64 KiB arrives; a lone surrogate in the transcript is no harm."""
    door = rig.door()
    transcript_of(rig, T).surface("half \ud83d", peer(OTHER))
    line = "x" * 65_532 + "\N{GRINNING FACE}"

    told = delivered(rig.zdo("kiss", "--json", "fable", line))

    assert ("surfaced", [line]) == (told["proof"], door.lines())


WORDS = ("/login is broken", "/compact", "@/etc/passwd", "!ls", "#note", "--help", "-", "a\nb\tc")


def test_85_no_text_is_a_command(rig):
    """85, 86: slash, at, bang, hash and dashes are text; they reach the door and only the door."""
    door = rig.door()

    for words in WORDS:
        stdin = "-" if words == "-" else None
        delivered(rig.zdo("kiss", "--json", "fable", "--", words, stdin=stdin))

    assert list(WORDS) == door.lines()
    assert {"zdo knock"} == {run["argv"][-1].rpartition(" ")[0] for run in rig.runs()}


LEAKS = (
    "CLAUDECODE", "CLAUDE_JOB_DIR", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PID",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
    "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_MODEL", "AI_AGENT", "NODE_OPTIONS", "PYTHONSTARTUP",
)  # fmt: skip


def test_102_nothing_of_the_callers_session_leaks(rig):
    """101, 102, 103: started from inside a session, the carrier inherits none of its marks."""
    rig.door()
    marks = {name: f"leak-{name}" for name in LEAKS}

    told = delivered(rig.zdo("kiss", "--json", "fable", "x", env=marks))

    (run,) = rig.runs()
    assert marks["CLAUDE_CODE_SESSION_ID"] == told["sender"]
    assert {told["sender"]} == {value for value in run["env"].values() if "leak-" in value}
    assert {rig.env["HOME"], rig.env["PATH"], rig.claude_dir} <= set(run["env"].values())


def test_106_claude_config_dir_is_honoured_for_rows_and_transcripts(rig):
    """106: with two folders the one named is used for both, and passed on."""
    rig.door(name="here")
    other = f"{rig.root}/other-claude"
    shutil.copytree(rig.claude_dir, other)
    for key in Path(f"{rig.claude_dir}/sessions").iterdir():
        key.unlink()

    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)
    told = delivered(rig.zdo("kiss", "--json", "fable", "x", env={"CLAUDE_CONFIG_DIR": other}))

    assert "written" == told["proof"]  # its transcript grows in the other folder
    assert other == rig.runs()[0]["env"]["CLAUDE_CONFIG_DIR"]


@pytest.mark.parametrize(
    "cwd",
    ["/nfs/home/u", "/a_b/c.d/e f/", "/" + "ä" * 60, "/" + "n" * 220],
)
def test_108_any_working_folder_of_the_target_is_found(rig, cwd):
    """108, 109: underscores, dots, blanks, Unicode, slashes, 200 characters: proof surfaced."""
    rig.door(cwd=cwd)

    told = delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert "surfaced" == told["proof"]


def test_108_a_transcript_under_another_spelling_of_the_folder_is_found(rig):
    """108: the row says /home/u, the transcript stands under /nfs/home/u: found by id."""
    door = rig.door(cwd="/nfs/home/u")
    row = Path(door.row_file)
    row.write_text(row.read_text(encoding="utf-8").replace("/nfs/home/u", "/home/u"), "utf-8")

    told = delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert "surfaced" == told["proof"]


def test_117_a_postbox_that_was_cleaned_up_is_told(rig):
    """117: no conversation any more is 76 with claude's own words in the reason."""
    rig.door()
    rig.install_claude(hook="none", outcome="unknown-postbox")

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-exit", 76)

    assert f"No conversation found with session ID: {P}" in told["reason"]


def test_121_without_home_everything_else_still_works(rig):
    """121: HOME unset; the folders are named by other variables: delivered."""
    rig.door()
    env = {name: value for name, value in rig.env.items() if name != "HOME"}

    told = delivered(
        rig.zdo(
            "kiss", "--json", "fable", "x", whole_env=env | {"CLAUDE_CONFIG_DIR": rig.claude_dir}
        )
    )

    assert ("surfaced", False) == (told["proof"], "HOME" in rig.runs()[0]["env"])


@pytest.mark.parametrize("env", [{"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LC_ALL": "C.UTF-8"}])
def test_122_bytes_that_are_not_text_on_both_streams(rig, env):
    """122: 0xff 0xfe on stdout and stderr in any locale: the class is told, nothing crashes."""
    rig.door()
    shell_claude(rig, "#!/bin/sh\nprintf '\\377\\376'\nprintf '\\377\\376\\033[31m' >&2\nexit 1\n")

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x", env=env), "carrier-exit", 76)

    assert told["reason"].isprintable() or "\x1b" not in rig.zdo("show", told["delivery_id"]).out


def test_145_a_session_that_is_busy_since_yesterday_is_told(rig):
    """145: a status has no age limit; the door and the transcript decide."""
    door = rig.door(status="busy", accept="busy")
    row = json.loads(Path(door.row_file).read_text(encoding="utf-8"))
    row["statusUpdatedAt"] = row["updatedAt"] = 1
    Path(door.row_file).write_text(json.dumps(row), encoding="utf-8")

    assert "surfaced" == delivered(rig.zdo("kiss", "--json", "fable", "x"))["proof"]


def test_44_a_door_that_goes_while_the_line_is_on_its_way(rig):
    """44, 10: the session dies as the line is read: never 0 without proof, never a repeat."""
    for die, allowed in (
        ("before-accept", {"target-not-running", "unknown"}),
        ("at-accept", {"target-not-running", "unknown"}),
        ("during", {"unknown"}),
    ):
        door = rig.door(die=die)
        line = "x" * 60_000
        told = rig.zdo("kiss", "--json", "fable", line).json
        assert told["class"] in allowed, (die, told)
        rig.close_doors()
        assert door.process.returncode in (9, -signal.SIGKILL, 0)
