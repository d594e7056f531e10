"""K12, K13, K17 to K19: limits, the line as data, odd rows, carriers that fail."""

from __future__ import annotations

import os
import signal
import socket
import time
from urllib.parse import urlsplit

import pytest

from dispatch.rig.damage import DAMAGES
from dispatch.rig.registry import FakeRegistry
from dispatch.rig.rig import P
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    SHELL,
    complained,
    delivered,
    lease_is_held,
    normal,
    refused,
    shell_claude,
    shell_runs,
    story,
)

FROM_CALLER = {"HOME", "PATH", "LANG"}
SET_BY_ZDO = {
    "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_MAX_RETRIES",
    "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "ZDO_CARRIER_DOOR_TARGET", "ZDO_CARRIER_SESSION", "ZDO_CARRIER_ATTEMPT",
    "ZDO_CARRIER_WRAPPER", "ZDO_SENDER_SESSION_ID",
}  # fmt: skip

# -- K12


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("max_budget_usd", v) for v in ("0", "-0.05", "inf", "nan", "true")),
        *(("max_turns", v) for v in ("0", "5", "1.0")),
        *(("timeout_s", v) for v in ("0", "nan")),
    ],
)
def test_k12_limits_cannot_be_removed(rig, key, value):
    """K12: a limit that is none is 78 with file, line and key; nothing is started."""
    door = rig.door()
    rig.configure(f"[carrier]\nsettle_s = 0.1\n{key} = {value}\n")

    told = refused(rig, rig.zdo("kiss", "--json", T, "x"), "config-invalid", 78)

    assert f"{rig.config_file}:3: carrier.{key}: " in told["reason"]
    assert ([], []) == (rig.runs(), door.calls())


def test_k12_lowered_limits_are_on_the_command_line(rig):
    """K12: what the configuration says stands in argv, in plain figures."""
    rig.configure("[carrier]\nmax_turns = 2\nmax_budget_usd = 0.00001\nsettle_s = 0.05\n")
    rig.door()

    delivered(rig.zdo("kiss", "--json", T, "x"))

    argv = rig.runs()[0]["argv"]
    assert ["--max-turns", "2", "--max-budget-usd", "0.00001"] == argv[11:15]


def test_k12_the_environment_is_built_not_inherited(rig):
    """K12: only the short list, `pass_env` and what zdo sets; no credential, no reachable model."""
    rig.configure(CONFIG.replace("[carrier]", '[carrier]\npass_env = ["RIG"]'))
    rig.door()
    more = {
        "ANTHROPIC_API_KEY": "sk-real", "ANTHROPIC_AUTH_TOKEN": "sk-real", "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": T, "CLAUDE_CODE_MESSAGING_TOKEN": "t", "CLAUDE_PID": "1",
        "CLAUDE_JOB_DIR": "/tmp", "AWS_SECRET_ACCESS_KEY": "s", "TERM_SESSION_ID": "pane",
        "PYTHONPATH": "/nowhere", "LD_PRELOAD": "", "ZDO_SESSION_ID": "me", "RIG": "yes",
        "LC_ALL": "C.UTF-8", "TZ": "UTC", "HTTP_PROXY": "http://127.0.0.1:2",
    }  # fmt: skip

    delivered(rig.zdo("kiss", "--json", "fable", "x", env=more))

    env = rig.runs()[0]["env"]
    assert FROM_CALLER | SET_BY_ZDO | {"LC_ALL", "TZ", "RIG"} == set(env)
    assert ("me", "0") == (env["ZDO_SENDER_SESSION_ID"], env["CLAUDE_CODE_MAX_RETRIES"])
    assert "sk-real" not in str(env)
    model = urlsplit(env["ANTHROPIC_BASE_URL"])
    with socket.socket() as ours:
        assert 0 != ours.connect_ex((model.hostname, model.port))


@pytest.mark.parametrize("outcome", ["auto", "success"])
def test_k12_a_hook_that_does_not_run_is_named(rig, outcome):
    """K12: the hook broken on purpose is 76 `wrapper-not-run`, whatever the model's result says."""
    door = rig.door()
    rig.install_claude(hook="none", outcome=outcome)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "wrapper-not-run", 76)

    assert ("started", "none", []) == (told["state"], told["proof"], door.calls())


# -- K13

LINES = (
    "plain",
    "/clear",
    "--help",
    "$(touch /tmp/never) `id` ; rm -rf / & \\ ' \" %s {}",
    "two\nlines\tand a tab",
    "\N{GRINNING FACE} äöü \N{ZERO WIDTH JOINER} \N{RIGHT-TO-LEFT OVERRIDE}",
    '{"type":"auth","token":"x"}\n{"type":"user"}',
    "x" * 65_536,
)


def test_k13_argv_and_environment_are_equal_for_every_line(rig):
    """K13: the line is data; it arrives exactly and changes nothing of how the carrier is run."""
    door = rig.door()
    deliveries = [
        delivered(rig.zdo("kiss", "--json", "fable", "--", line))["delivery_id"] for line in LINES
    ]

    starts = [normal(run, own) for run, own in zip(rig.runs(), deliveries, strict=True)]

    assert [starts[0]] * len(LINES) == starts
    assert list(LINES) == door.lines()


def test_k13_the_story_of_a_delivery_does_not_hold_its_line(rig):
    """K13: `zdo show` and the journal know length and digest, never the text."""
    rig.door()
    own = delivered(rig.zdo("kiss", "--json", "fable", "a-canary-of-ours"))["delivery_id"]

    shown = rig.zdo("show", "--json", own).out + rig.zdo("show", own).out

    assert "a-canary-of-ours" not in shown
    assert ["accepted", "judged"] == [event["kind"] for event in story(rig, own)]


# -- K17

# As `zdo sessions` words them; `refused` is only found by knocking.
ON_DISK = tuple(word for word in DAMAGES if word != "refused")


def test_k17_every_odd_row_is_skipped_with_its_reason(rig):
    """K17: dead, recycled, torn, foreign, without socket or id: named in `sessions`, never used."""
    with FakeRegistry(rig.home) as registry:
        damaged = {word: registry.add(damage=word, sessionId=OTHER) for word in ON_DISK}
        whole = registry.add(name="whole")

        told = rig.zdo("sessions", "--json").json

    assert {damaged[word].pid: word for word in ON_DISK} == {
        each["pid"]: each["reason"] for each in told["skipped"]
    }
    assert [(whole.pid, True)] == [(row["pid"], row["reachable"]) for row in told["sessions"]]


@pytest.mark.parametrize("word", ["no-process", "recycled", "torn", "no-socket", "not-a-socket"])
def test_k17_a_skipped_row_is_not_running(rig, word):
    """K17: a kiss to the id of an odd row is 69, no carrier is started."""
    with FakeRegistry(rig.home) as registry:
        registry.add(damage=word, sessionId=T)

        refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)
    assert [] == rig.runs()


def test_k17_a_door_that_refuses_is_not_running(rig):
    """K17: a socket where nobody listens is 69, found by the wrapper; `sessions` says so too."""
    with FakeRegistry(rig.home) as registry:
        registry.add(damage="refused", sessionId=T)

        (row,) = rig.zdo("sessions", "--json").json["sessions"]
        told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)

    assert (False, "none") == (row["reachable"], told["proof"])


@pytest.mark.parametrize("address", ["fable", T, "twin", "name:twin"])
def test_k17_two_live_rows_are_ambiguous(rig, address):
    """K17: two running rows with one id, or one name, are 67 with both pids shown."""
    doors = [rig.door(name="twin"), rig.door(name="twin")]

    told = refused(rig, rig.zdo("kiss", "--json", address, "x"), "target-ambiguous", 67)

    assert all(f"pid {door.pid}" in told["reason"] for door in doors)
    assert [] == rig.runs()


def test_k17_a_socket_of_another_user_is_foreign(rig):
    """K17: a foreign-owned socket is skipped, and its session is not running."""
    door = rig.door()
    os.chown(door.socket, 12345, 12345)

    (skipped,) = rig.zdo("sessions", "--json").json["skipped"]

    assert (door.pid, "foreign-owner") == (skipped["pid"], skipped["reason"])
    refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "target-not-running", 69)


# -- K18


def test_k18_a_dry_run_shows_argv_and_both_ids_and_starts_nothing(rig):
    """K18: argv as it would be, the environment by name, both ids, exit 0; nothing kept."""
    door = rig.door()

    dry = delivered(rig.zdo("kiss", "--json", "fable", "x", "--dry-run"), "dry-run")
    wet = delivered(rig.zdo("kiss", "--json", "fable", "x"))

    (run,) = rig.runs()
    names = (("delivery_id", "D"),)
    dry_argv = [word.replace(dry[names[0][0]], "D") for word in dry["plan"]["argv"]]
    assert [word.replace(wet["delivery_id"], "D") for word in run["argv"]] == dry_argv
    assert sorted(run["env"]) == sorted(dry["plan"]["env"])
    assert (T, P) == (dry["target"]["session_id"], dry["carrier"]["session_id"])
    assert 1 == len(door.calls(1))


def test_k18_a_dry_run_prints_for_a_person(rig):
    """K18: the sentence form names argv, the variables and both sessions, on stdout."""
    rig.door()

    said = rig.zdo("kiss", "fable", "the-text", "--dry-run")

    assert (0, "") == (said.exit, said.err)
    assert all(word in said.out for word in (T, P, "--resume", "ZDO_CARRIER_ATTEMPT"))
    assert "the-text" not in said.out


def test_k18_a_dry_run_is_refused_like_a_kiss(rig):
    """K18: misbound is still 2, an unknown name 67, a bad line 65."""
    rig.door()
    for words, name, status in (
        (("itself", "x"), "carrier-misbound", 2),
        (("nobody", "x"), "target-unknown", 67),
        (("fable", " "), "line-invalid", 65),
    ):
        refused(rig, rig.zdo("kiss", "--json", *words, "--dry-run"), name, status)
    assert [] == rig.runs()


# -- K19


def test_k19_a_missing_binary_is_told_before_anything(rig):
    """K19: no claude on PATH is 69 `carrier-spawn`, and the door is untouched."""
    door = rig.door()
    os.unlink(rig.claude)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-spawn", 69)

    assert ([], "refused") == (door.calls(), told["state"])


UNTOUCHED = [
    ("unknown-postbox", {}, "carrier-exit"),
    ("malformed-id", {}, "carrier-exit"),
    ("in-use", {}, "carrier-exit"),
    ("unknown-option", {}, "carrier-exit"),
    ("cwd-deleted", {}, "carrier-exit"),
    ("empty-failed", {}, "carrier-exit"),
    ("sigterm", {}, "carrier-exit"),
    ("sighup", {}, "carrier-exit"),
    ("success", {"kill": [signal.SIGKILL, "before"]}, "carrier-exit"),
    ("empty", {}, "carrier-output"),
    ("sigint", {}, "carrier-output"),
    ("success", {"shape": "half"}, "carrier-output"),
    ("success", {"shape": "twice"}, "carrier-output"),
    ("success", {"shape": "halves"}, "carrier-output"),
    ("success", {"shape": "usage-limit"}, "carrier-output"),
    ("success", {"shape": "half", "exit": 1}, "carrier-exit"),
    ("api-401", {}, "wrapper-not-run"),
    ("api-529", {}, "wrapper-not-run"),
    ("max-budget", {}, "wrapper-not-run"),
    ("success", {"session": OTHER}, "carrier-mismatch"),
    ("slash-clear", {"session": OTHER}, "carrier-mismatch"),
]


@pytest.mark.parametrize(("outcome", "more", "name"), UNTOUCHED)
def test_k19_each_failure_before_the_hook_has_a_class(rig, outcome, more, name):
    """K19: the door was provably not touched; 76, or 3 where another session answered."""
    door = rig.door()
    rig.install_claude(hook="none", outcome=outcome, **more)

    status = 3 if name == "carrier-mismatch" else 76
    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), name, status)

    assert ("none", []) == (told["proof"], door.calls())


@pytest.mark.parametrize(
    ("outcome", "more"),
    [
        *(("success", {"shape": s}) for s in ("banner", "bom", "crlf", "log-lines", "trailing")),
        *(("success", {"shape": s}) for s in ("array", "stream", "pretty", "not-utf8")),
        ("success", {"shape": "same-line"}),
        ("success", {"exit": 1}),
        ("connection-refused", {}),  # is_error with subtype success
        ("max-turns", {}),
        ("max-turns-without-errors", {}),
        ("over-the-cap", {}),
        ("auto", {"hook_stdin": "empty"}),
        ("auto", {"flood_stderr": 1 << 20}),
        ("auto", {"flood_stdout": 1 << 16}),
    ],
)
def test_k19_noise_and_bad_marks_do_not_hide_a_delivery(rig, outcome, more):
    """K19, fine print a and b: one readable result with the right ids is 0."""
    door = rig.door()
    rig.install_claude(outcome=outcome, **more)

    delivered(rig.zdo("kiss", "--json", "fable", "x"))

    assert ["x"] == door.lines()


@pytest.mark.parametrize("shape", ["half", "twice", "halves", "usage-limit"])
def test_k19_unreadable_output_after_the_write_is_unknown(rig, shape):
    """K19, fine print c: the intent was taken, so it is 3 `unknown` with what is known."""
    door = rig.door()
    rig.install_claude(outcome="success", shape=shape)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "unknown", 3)

    assert ("surfaced", ["x"]) == (told["proof"], door.lines())
    assert f"zdo verify {told['delivery_id']}" in told["advice"]


def test_k19_another_session_answering_is_a_mismatch_also_after_the_write(rig):
    """K19: `--resume` that answers under another id is 3 `carrier-mismatch`."""
    rig.door()
    rig.install_claude(outcome="success", session=OTHER)

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-mismatch", 3)

    assert (P, OTHER) == (
        told["carrier"]["session_id"],
        told["carrier"]["result_session_id"],
    )


def test_k19_a_hang_ends_at_the_deadline_with_every_descendant_gone(rig):
    """K19: TERM ignored, a child in its own session, stdout held: 76, all gone, lease free."""
    rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 1.5"))
    door = rig.door()
    stray = {"s": 60, "setsid": True, "double": True, "ignore_term": True, "holds_stdout": True}
    rig.install_claude(before_s=0.3, hook="none", hang_s=60, ignore_term=True, stray=stray)
    began = time.monotonic()

    told = refused(rig, rig.zdo("kiss", "--json", "fable", "x"), "carrier-timeout", 76)

    assert 10 > time.monotonic() - began
    pids = [entry["pid"] for entry in rig.log() if entry["event"] in ("start", "stray")]
    assert [False, False] == [os.path.exists(f"/proc/{pid}") for pid in pids]
    assert ("none", []) == (told["proof"], door.calls())
    assert not lease_is_held(rig)


def test_k19_a_hang_after_the_write_is_no_failure(rig):
    """K19, fine print g: ended at the deadline with the line in the transcript is `surfaced`."""
    rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 0.7"))
    rig.door()
    rig.install_claude(hang_s=60)

    delivered(rig.zdo("kiss", "--json", "fable", "x"), "surfaced")


@pytest.mark.parametrize(
    ("accept", "name", "status", "proof"),
    [("surface", "surfaced", 0, "surfaced"), ("bare", "unknown", 3, "written")],
)
def test_k19_a_wrapper_with_the_permit_outlives_the_deadline(rig, accept, name, status, proof):
    """K19, fine print g: the deadline falls into the write; the wrapper finishes and is heard."""
    rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 0.5"))
    door = rig.door(accept=accept, eof_after=0.8)
    rig.install_claude(hang_s=60)

    said = rig.zdo("kiss", "--json", "fable", "x")

    told = delivered(said, name) if status == 0 else refused(rig, said, name, status)
    assert (proof, ["x"], T) == (told["proof"], door.lines(), told["receipt"]["session_id"])


@pytest.mark.parametrize(
    ("kind", "by"),
    [
        *((kind, "name") for kind in ("not-executable", "folder", "dangling")),
        *((kind, "path") for kind in ("not-executable", "folder", "text", "interpreter")),
    ],
)
def test_k19_something_that_is_no_program_is_carrier_spawn(rig, kind, by):
    """K19: a file without permission or format, a folder, a dangling link: 69, door untouched."""
    door = rig.door()
    os.unlink(rig.claude)
    if kind == "folder":
        os.mkdir(rig.claude)
    elif kind == "dangling":
        os.symlink("absent", rig.claude)
    else:
        first = {"text": "just words\n", "interpreter": "#!/absent/sh\n"}.get(kind, "#!/bin/sh\n")
        with open(rig.claude, "w", encoding="ascii") as file:
            file.write(first)
        os.chmod(rig.claude, 0o600 if kind == "not-executable" else 0o700)
    env = {"ZDO_CLAUDE_BIN": rig.claude if by == "path" else "claude"}

    refused(rig, rig.zdo("kiss", "--json", "fable", "x", env=env), "carrier-spawn", 69)

    assert [] == door.calls()


def test_the_stand_in_of_the_usage_page_is_enough(rig):
    """Fine print: a rig may run the wrapper with an empty stdin and print two fields."""
    door = rig.door()
    shell_claude(rig, SHELL % "")

    delivered(rig.zdo("kiss", "--json", "fable", "x"))
    said = rig.zdo("kiss", "fable", "y")

    assert (0, "", 2, ["x", "y"]) == (said.exit, said.err, shell_runs(rig), door.lines())
    complained(rig.zdo("kiss", "nobody", "z"), "target-unknown", 67)
