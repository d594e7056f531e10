"""The fake claude is as the recorded one, and records how it was started."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from carrier.argv import settings
from carrier.report import Report, parse_report
from dispatch.rig.claude import DEFAULTS, golden, install, log_of
from dispatch.rig.outcomes import OUTCOMES, SHAPES, shape
from tests.fakes.envelopes import P, T
from tests.fakes.envelopes import shape as types_of
from tests.fakes.runs import wait_for


def play(path, *argv, **changes):
    """How the fake at *path* ran with *argv*, in an empty environment."""
    given = {"env": {}, "stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 15}
    command = [path, "-p", "--resume", P, *argv, "--", "zdo knock"]
    return subprocess.run(command, check=False, **(given | changes))


def with_hook(folder, command):
    """The option for settings whose hook is *command*."""
    path = f"{folder}/settings.json"
    with open(path, "wb") as file:
        file.write(settings(command, 1))
    return "--settings", path


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_the_shape_and_status_of_the_contract(tmp_path, outcome):
    """Names and types of the recording, with the resumed session's id."""
    recorded, status, stderr, _ = OUTCOMES[outcome]

    ran = play(install(tmp_path, hook="none", outcome=outcome))

    assert (status, stderr.format(session=P).encode()) == (ran.returncode, ran.stderr)
    if recorded is None:
        assert ran.stdout == b""
    else:
        printed = json.loads(ran.stdout)
        assert P == printed["session_id"]
        changed = golden(f"result-{recorded}") | OUTCOMES[outcome][3]
        assert types_of(changed) == types_of(printed)


def test_a_blocking_hook_ends_as_recorded(tmp_path):
    """Status 0, no turn, the hook's reason in the result (CONTRACT g)."""
    block = """printf '{"decision":"block","reason":"zdo delivered"}'"""

    ran = play(install(tmp_path), *with_hook(tmp_path, block))

    report = parse_report(ran.stdout)
    assert (0, 0, False) == (ran.returncode, report.num_turns, report.is_error)
    blocked = golden("result-hook-blocked")["result"].partition("\n")[0]
    assert f"{blocked}\nzdo delivered\n\nOriginal prompt: zdo knock" == report.result


def test_a_hook_that_exits_with_2_blocks_as_well(tmp_path):
    """Whatever it prints."""
    ran = play(install(tmp_path), *with_hook(tmp_path, "exit 2"))

    assert (0, 0) == (ran.returncode, parse_report(ran.stdout).num_turns)


@pytest.mark.parametrize("command", ["exit 1", "true", "/none", "echo words", "exec sleep 9"])
def test_any_other_hook_fails_open_and_meets_the_closed_port(tmp_path, command):
    """Also one that takes too long (CONTRACT g)."""
    ran = play(install(tmp_path), *with_hook(tmp_path, command))

    report = parse_report(ran.stdout)
    assert (1, 1, True) == (ran.returncode, report.num_turns, report.is_error)


def test_a_hook_gets_the_recorded_input_and_environment(tmp_path):
    """The fields of 2.1.332 with this run's session, folder and prompt."""
    ran = f"cat > {tmp_path}/hook.json; env > {tmp_path}/hook.env"

    play(install(tmp_path), *with_hook(tmp_path, ran), cwd=tmp_path)

    given = json.loads((tmp_path / "hook.json").read_bytes())
    assert golden("hook-input-userpromptsubmit").keys() == given.keys()
    assert (P, str(tmp_path), "zdo knock") == (
        given["session_id"],
        given["cwd"],
        given["prompt"],
    )
    names = {line.partition("=")[0] for line in (tmp_path / "hook.env").read_text().splitlines()}
    assert golden("child-env")["hook:UserPromptSubmit"]["env"].keys() <= names


def test_a_rig_may_let_it_run_the_wrapper_of_the_environment_with_an_empty_stdin(tmp_path):
    """As INTERFACE 7 allows."""
    path = install(tmp_path, hook="env", hook_stdin="empty")

    play(path, env={"ZDO_CARRIER_WRAPPER": f"cat > {tmp_path}/in; exit 2", "PATH": "/bin:/usr/bin"})

    assert (tmp_path / "in").read_bytes() == b""
    [hooks] = log_of(path, "hooks")
    assert [2] == [run["status"] for run in hooks["runs"]]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_hook_can_run_twice(tmp_path, parallel):
    """One after the other, or both at once."""
    path = install(tmp_path, hook_runs=2, hook_parallel=parallel)

    play(path, *with_hook(tmp_path, f"echo once >> {tmp_path}/runs; exit 2"))

    assert (tmp_path / "runs").read_text() == "once\n" * 2


def test_it_records_how_it_was_started(tmp_path):
    """Arguments, environment, folder, parentage, descriptors, stdin, start and end."""
    path = install(tmp_path, hook="none", outcome="success", after_s=0.05)

    play(path, "extra", env={"A": "b", "LANG": "C.UTF-8"}, cwd=tmp_path)

    start, _, end = log_of(path)
    assert [path, "-p", "--resume", P, "extra", "--", "zdo knock"] == start["argv"]
    assert {"A": "b", "LANG": "C.UTF-8"} == start["env"]
    assert (str(tmp_path), "", os.getpid()) == (start["cwd"], start["stdin"], start["ppid"])
    assert {"0", "1", "2"} == start["fds"].keys()
    assert os.getpid() == start["ancestors"][0]
    assert (start["pid"], 0) == (end["pid"], end["status"])
    assert start["at"] + 0.05 <= end["at"]


def test_its_behaviour_may_be_named_by_the_environment(tmp_path):
    """For rigs that pass FAKE_CLAUDE through."""
    other = install(tmp_path, "other", hook="none", outcome="in-use")
    path = install(tmp_path, hook="none", outcome="success")

    ran = play(path, env={"FAKE_CLAUDE": other + ".behaviour.json"})

    assert (1, b"") == (ran.returncode, ran.stdout)


def test_another_session_and_status_can_be_had(tmp_path):
    """As after a `/clear` or a fork."""
    path = install(tmp_path, hook="none", outcome="success", session=T, exit=7, stderr="said")

    ran = play(path)

    assert (7, T, b"said") == (ran.returncode, json.loads(ran.stdout)["session_id"], ran.stderr)


@pytest.mark.parametrize("name", SHAPES)
def test_every_shape_is_printed_as_built(tmp_path, name):
    """And each but the spoilt ones holds the one result."""
    result = golden("result-success") | {"session_id": P}

    ran = play(install(tmp_path, hook="none", outcome="success", shape=name))

    assert shape(name, result) == ran.stdout
    spoilt = name in ("half", "halves", "twice", "usage-limit")
    assert spoilt is not isinstance(parse_report(ran.stdout), Report)


def test_floods_and_trickles_change_nothing_of_the_result(tmp_path):
    """Noise on both streams, then the result byte by byte."""
    path = install(
        tmp_path, hook="none", outcome="success", trickle_s=1e-6, flood_stdout=9, flood_stderr=5
    )

    ran = play(path)

    assert (b"eeeee", b"o" * 9) == (ran.stderr, ran.stdout.partition(b"\n")[0])
    assert P == json.loads(ran.stdout.partition(b"\n")[2])["session_id"]


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_it_can_be_killed_around_its_hook(tmp_path, moment):
    """The hook never begins, lives on and finishes, or is over."""
    path = install(tmp_path, kill=[9, moment], hook_parallel=moment == "during")

    ran = play(path, *with_hook(tmp_path, f"sleep 0.1; echo > {tmp_path}/ran"))

    assert (-signal.SIGKILL, b"") == (ran.returncode, ran.stdout)
    assert (moment != "before") is (tmp_path / "ran").exists()


def _start(path):
    return subprocess.Popen(
        [path, "-p", "--", "x"], env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_term_and_hangup_end_it_as_recorded(tmp_path, number, status):
    """Its own status, not death by signal (CONTRACT b)."""
    path = install(tmp_path, hook="none", hang_s=20)
    with _start(path) as running:
        wait_for(lambda: log_of(path, "hooks"))
        running.send_signal(number)

        assert status == running.wait(10)


def test_it_can_ignore_term(tmp_path):
    """As the wedged ones under launchd do."""
    path = install(tmp_path, hook="none", hang_s=20, ignore_term=True)
    with _start(path) as running:
        wait_for(lambda: log_of(path, "hooks"))
        running.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.2)
        running.kill()


@pytest.mark.parametrize("double", [False, True])
def test_it_can_leave_a_stray_behind(tmp_path, double):
    """A child, or a daemon, in a session of its own."""
    stray = {"s": 20, "setsid": True, "double": double, "ignore_term": True}
    path = install(tmp_path, hook="none", outcome="success", stray=stray)

    assert play(path).returncode == 0

    [left] = log_of(path, "stray")
    assert os.getsid(left["pid"]) != os.getsid(0)
    os.kill(left["pid"], signal.SIGTERM)
    os.kill(left["pid"], signal.SIGKILL)


@pytest.mark.parametrize("wrong", [{"shape": "round"}, {"outcome": "none"}, {"colour": 1}])
def test_a_behaviour_that_it_does_not_know_is_refused(tmp_path, wrong):
    """A misspelt history must not pass as another one."""
    with pytest.raises(TypeError, match="cannot behave so"):
        install(tmp_path, **wrong)


def test_nothing_was_recorded_before_it_ran(tmp_path):
    """And every key of a behaviour has a default."""
    assert [] == log_of(install(tmp_path, **DEFAULTS))
