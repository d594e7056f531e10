"""The dispatcher's side of a carrier run."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import sys
import time

import pytest

from carrier.argv import wrapper_command
from carrier.family import Orphans
from carrier.run import Run, ended_by, find_binary, read_run, run_carrier, watch
from registry.clock import Clock
from registry.processes import Processes
from registry.record import replace
from tests.fakes.ears import ROOT, env_of, send_away, started_with, target_of, the_ear_of
from tests.fakes.runs import ENV, Stage, fail, in_child, runs, slow_taker, status_of, wait_for


def test_a_run_says_how_the_carrier_ended_and_what_it_printed(tmp_path):
    """Exit status, both streams and the time of a carrier that just ends."""
    stage = Stage(tmp_path, hook="none", outcome="max-turns", stderr="warned\n", after_s=0.1)

    run = run_carrier(stage.order(), Clock())

    assert (1, False, False, None) == (
        run.exit,
        run.timed_out,
        run.interrupted,
        run.spawn_error,
    )
    assert json.loads(run.stdout)["subtype"] == "error_max_turns"
    assert run.stderr == b"warned\n"
    assert 100 <= run.wall_ms < 5000


def test_a_carrier_gets_exactly_the_argv_environment_and_folder_of_the_order(tmp_path):
    """Nothing is added, dropped or inherited."""
    stage = Stage(tmp_path, hook="none")

    stage.run()

    [start] = stage.log("start")
    assert stage.argv() == start["argv"]
    assert ENV == start["env"]
    assert os.path.realpath(stage.cwd) == start["cwd"]
    assert start["stdin"] == ""


def test_a_carrier_has_the_lease_and_no_other_descriptor(tmp_path):
    """Beside the lease it has /dev/null and two different pipes, whatever we have open."""
    stage = Stage(tmp_path, hook="none")
    leaked = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leaked, True)

    try:
        stage.run()
    finally:
        os.close(leaked)

    fds = stage.log("start")[0]["fds"]
    assert {"0", "1", "2", str(stage.lease_fd)} == fds.keys()
    assert fds["0"] == os.devnull
    assert fds["1"].startswith("pipe:")
    assert fds["2"].startswith("pipe:")
    assert fds["1"] != fds["2"]
    assert fds[str(stage.lease_fd)] == os.path.realpath(stage.lock)


def test_a_lease_on_a_standard_number_reaches_the_carrier_all_the_same(tmp_path):
    """A dispatcher that was started with closed streams may hold the lease as 0."""
    stage = Stage(tmp_path, hook="none")

    def act():
        os.dup2(stage.lease_fd, 0)
        for number in (1, 2, stage.lease_fd):
            os.close(number)
        assert stage.run(lease_fd=0).exit == 1

    assert status_of(in_child(act)) == 0

    fds = stage.log("start")[0]["fds"]
    assert fds["0"] == os.devnull
    assert [os.path.realpath(stage.lock)] == [fds[n] for n in fds.keys() - {"0", "1", "2"}]


def test_a_carrier_leads_its_own_group_outside_our_session(tmp_path):
    """A Ctrl-C at our terminal reaches neither keeper nor carrier."""
    stage = Stage(tmp_path, hook="none")

    stage.run()

    [start] = stage.log("start")
    assert start["pid"] == start["pgid"]
    assert start["sid"] not in (os.getsid(0), start["pid"])
    assert os.getpid() == start["ancestors"][1]


def test_a_carrier_starts_with_untouched_signals(tmp_path):
    """What our caller ignores and what we block is not passed on."""
    stage = Stage(tmp_path, hook="none")

    def act():
        for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN)
        assert stage.run().exit == 1

    assert status_of(in_child(act)) == 0
    [start] = stage.log("start")
    assert [] == start["blocked"]
    assert [] == start["ignored"]


def _not_executable(folder):
    path = f"{folder}/plain"
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    return [path]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (lambda folder: [f"{folder}/missing"], "No such file"),
        (_not_executable, "Permission denied"),
        (lambda folder: [str(folder)], "Permission denied"),
        (lambda _: ["/bin/sh", "nul\0"], "null"),
        (lambda _: ["/bin/sh", "x" * (1 << 20)], "too long"),
    ],
)
def test_a_binary_that_cannot_be_started_is_a_spawn_error(tmp_path, argv, why):
    """The text names the program; there is no exit status and the permit is gone."""
    stage = Stage(tmp_path)
    stage.hook("true")

    run = stage.run(argv=argv(tmp_path))

    assert why in run.spawn_error
    assert (None, b"", b"") == (run.exit, run.stdout, run.stderr)
    assert not stage.has("permit")


def test_a_missing_folder_is_a_spawn_error(tmp_path):
    """The carrier never starts anywhere else."""
    stage = Stage(tmp_path)

    run = stage.run(cwd=f"{tmp_path}/gone")

    assert f"{tmp_path}/gone: No such file or directory" == run.spawn_error
    assert [] == stage.log("start")


def test_without_a_process_for_the_keeper_nothing_happens(tmp_path):
    """The permit is withdrawn, and our signals are as before."""
    stage = Stage(tmp_path)
    stage.hook("true")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def refuse():
        raise OSError(errno.EAGAIN, "too many processes")

    run = run_carrier(stage.order(), Clock(), fork=refuse)

    assert run.spawn_error == "no process for the keeper: too many processes"
    assert not stage.has("permit")
    assert before == signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("trouble", ["fork", "spawn"])
def test_a_round_that_cannot_be_started_is_withdrawn_as_a_whole(tmp_path, trouble):
    """No permit of any line stays out, and each folder tells why if a keeper came to be."""
    stage = Stage(tmp_path, lines=3)

    if trouble == "fork":
        run = run_carrier(stage.order(), Clock(), fork=fail(errno.EAGAIN))
    else:
        run = stage.run(argv=[f"{tmp_path}/missing"])

    assert run.spawn_error
    assert [[], [0, 1, 2]] == [stage.having("permit"), stage.having("withdrawn")]
    told = [None if trouble == "fork" else run] * 3
    assert told == [read_run(folder) for folder in stage.folders]


def test_a_killed_dispatcher_leaves_lease_carrier_and_a_whole_run(tmp_path):
    """The lease is held until the carrier ends, then it is free and run.json is there."""
    stage = Stage(tmp_path, hook="none", after_s=0.6)
    dispatcher = stage.dispatcher()
    os.close(stage.lease_fd)
    [start] = wait_for(lambda: stage.log("start"))

    os.kill(dispatcher, signal.SIGKILL)

    assert status_of(dispatcher) == -signal.SIGKILL
    assert runs(start["pid"])
    assert not stage.lease_is_free()
    wait_for(stage.lease_is_free)
    assert [start["pid"]] == [end["pid"] for end in stage.log("end")]
    assert read_run(stage.attempt_dir).exit == 1


@pytest.mark.parametrize("delay_ms", [0, 1, 2, 3, 5, 8, 15, 30])
def test_a_dispatcher_killed_at_any_moment_leaves_nothing_half(tmp_path, delay_ms):
    """Either nothing was started, or the keeper finishes by itself and says so."""
    stage = Stage(tmp_path, hook="none", after_s=0.05)
    dispatcher = stage.dispatcher()
    os.close(stage.lease_fd)
    until = time.monotonic() + delay_ms / 1000
    while time.monotonic() < until:
        pass

    os.kill(dispatcher, signal.SIGKILL)

    status_of(dispatcher)
    wait_for(stage.lease_is_free)
    assert len(stage.log("start")) == len(stage.log("end"))
    assert bool(stage.log("start")) == (read_run(stage.attempt_dir) is not None)


def _keeper_of(stage):
    [start] = wait_for(lambda: stage.log("start"))
    wait_for(lambda: stage.has("carrier"))
    return start["ppid"], start["pid"]


def test_a_killed_keeper_is_noticed_and_its_carrier_ended(tmp_path):
    """The run has no exit; carrier and strays are gone, even those that ignore TERM."""
    stray = {"s": 30, "setsid": True, "ignore_term": True}
    stage = Stage(tmp_path, hook="none", hang_s=30, ignore_term=True, stray=stray)
    stage.hook("true")
    dispatcher = in_child(lambda: _expect(stage.run(), exit=None, timed_out=False))
    keeper, carrier = _keeper_of(stage)
    [left] = wait_for(lambda: stage.log("stray"))

    os.kill(keeper, signal.SIGKILL)

    assert status_of(dispatcher) == 0
    assert [False, False] == [runs(carrier), runs(left["pid"])]
    assert not stage.has("permit")


def _expect(run, **found):
    assert run == replace(run, **found)


def test_a_keeper_killed_together_with_its_carrier_leaves_the_wrapper_its_time(tmp_path):
    """A wrapper that holds the permit finishes, though nobody above it is left."""
    stage = Stage(tmp_path)
    stage.hook(f"cd {stage.attempt_dir} && mv permit intent && sleep 0.5; : > receipt.json")
    dispatcher = stage.dispatcher()
    keeper, carrier = _keeper_of(stage)
    wait_for(lambda: stage.has("intent"))

    os.kill(keeper, signal.SIGKILL)
    os.kill(carrier, signal.SIGKILL)

    assert status_of(dispatcher) == 0
    assert stage.has("receipt.json")


@pytest.mark.parametrize("taken", [1, 2])
def test_a_killed_keepers_round_is_withdrawn_and_its_wrapper_waited_for(tmp_path, taken):
    """Whatever permits it has, it leaves their receipts; the others are withdrawn."""
    stage = Stage(tmp_path, lines=3)
    stage.hook(slow_taker(stage.folders[:taken], 0.5))
    dispatcher = stage.dispatcher()
    keeper, carrier = _keeper_of(stage)
    wait_for(lambda: stage.having("intent") == list(range(taken)))

    os.kill(keeper, signal.SIGKILL)
    os.kill(carrier, signal.SIGKILL)

    assert status_of(dispatcher) == 0
    assert list(range(taken)) == stage.having("receipt.json")
    assert list(range(taken, 3)) == stage.having("withdrawn")
    assert [] == stage.having("permit")


@pytest.mark.parametrize("stray", [None, {"s": 30, "setsid": True, "ignore_term": True}])
def test_a_killed_keepers_ear_is_left_alone(tmp_path, stray):
    """Its carrier and every stray are ended; who stays for a held line is not."""
    stage = Stage(tmp_path, stray=stray, before_s=0.2, after_s=30, ignore_term=bool(stray))
    with target_of(stage, accept="hold"):
        dispatcher = in_child(lambda: _expect(stage.run(env=env_of(stage)), exit=None))
        keeper, carrier = _keeper_of(stage)
        ear = the_ear_of(stage.attempt_dir)
        wait_for(lambda: stage.log("hooks"))

        os.kill(keeper, signal.SIGKILL)

        assert status_of(dispatcher) == 0
        assert not runs(carrier)
        assert [ear] == started_with(stage.attempt_dir)
        send_away(ear)


SLOW = (
    "import time, carrier.stay as s; w = s.withdraw_from_the_run;"
    " s.withdraw_from_the_run = lambda *g: (time.sleep(0.4), w(*g)); from carrier.wrapper"
)


def test_a_killed_keepers_ear_may_sign_in_late(tmp_path):
    """Its receipt is there a moment before its name: until then TERM does not end it."""
    stage = Stage(tmp_path)
    with target_of(stage, accept="hold", eof_after=0.5) as door:
        stage.hook(wrapper_command(sys.executable, ROOT).replace("from carrier.wrapper", SLOW))
        dispatcher = in_child(lambda: _expect(stage.run(env=env_of(stage)), exit=None))
        keeper, _ = _keeper_of(stage)
        wait_for(door.rows)

        os.kill(keeper, signal.SIGKILL)

        assert status_of(dispatcher) == 0
        ear = the_ear_of(stage.attempt_dir)
        assert [ear] == started_with(stage.attempt_dir)
        send_away(ear)


def test_a_keeper_killed_before_it_named_its_carrier_is_only_noticed(tmp_path):
    """Nothing is known, so nothing is signalled; the permit is gone all the same."""
    stage = Stage(tmp_path)
    stage.hook("true")

    def stillborn():
        pid = os.fork()
        if pid == 0:
            os._exit(9)
        return pid

    run = run_carrier(stage.order(), Clock(), fork=stillborn)

    assert (None, None, False) == (run.exit, run.spawn_error, run.interrupted)
    assert not stage.has("permit")


@pytest.mark.parametrize("named", ["", "x 1", "0 1", "-1 1", "1 1"])
def test_a_name_that_is_none_is_never_signalled(named):
    """Zero would be our own group, one everybody's parent."""
    with pytest.raises(ValueError, match=r"no carrier|invalid literal"):
        Orphans(named, Processes())


def test_a_number_that_somebody_else_has_by_now_is_never_signalled(tmp_path):
    """The start time on disk is not that of the process: it is left alone."""
    stage = Stage(tmp_path)
    bystander = in_child(lambda: time.sleep(30))
    with open(f"{stage.attempt_dir}/carrier", "w", encoding="ascii") as file:
        file.write(f"{bystander} 1")

    def stillborn():
        pid = os.fork()
        if pid == 0:
            os._exit(9)
        return pid

    run_carrier(stage.order(), Clock(), fork=stillborn)

    assert runs(bystander)
    os.kill(bystander, signal.SIGKILL)
    status_of(bystander)


def test_ctrl_c_ends_the_carrier_and_still_gives_the_run(tmp_path):
    """The keeper is told, everything is gone, and the run says interrupted."""
    stage = Stage(tmp_path, hook="none", hang_s=30)

    def act():
        run = stage.run()
        _expect(run, exit=143, interrupted=True, timed_out=False)

    dispatcher = in_child(act)
    _, carrier = _keeper_of(stage)

    os.kill(dispatcher, signal.SIGINT)

    assert status_of(dispatcher) == 0
    assert not runs(carrier)


def test_a_second_ctrl_c_does_not_leave_the_carrier_behind(tmp_path):
    """However often it comes, the keeper does its work to the end."""
    stage = Stage(tmp_path, hook="none", hang_s=30, ignore_term=True)
    dispatcher = in_child(lambda: _expect(stage.run(), exit=-9, interrupted=True))
    _, carrier = _keeper_of(stage)

    for _ in range(5):
        os.kill(dispatcher, signal.SIGINT)
        time.sleep(0.05)

    assert status_of(dispatcher) == 0
    assert not runs(carrier)


def test_the_run_of_an_attempt_that_is_not_over_is_none(tmp_path):
    """Absent, torn, foreign or unreadable: there is no run."""
    assert read_run(str(tmp_path)) is None
    for torn in (b"", b'{"exit":0', b"[]", b'{"exit":0}', b'{"surplus":1}', b"\xff"):
        (tmp_path / "run.json").write_bytes(torn)
        assert read_run(str(tmp_path)) is None


def test_a_run_survives_on_disk(tmp_path):
    """What the keeper left is read again, word by word."""
    stage = Stage(tmp_path, hook="none", stderr="e")

    run = stage.run()

    assert run == read_run(stage.attempt_dir)
    assert isinstance(run, Run)


def test_a_program_is_found_along_the_path_of_the_caller(tmp_path):
    """The first executable plain file wins; folders and plain files are passed over."""
    for folder in ("a", "b", "c", "d"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a" / "claude").mkdir()
    _not_executable(tmp_path / "b")
    os.rename(tmp_path / "b" / "plain", tmp_path / "b" / "claude")
    Stage(tmp_path / "c")
    Stage(tmp_path / "d")
    path = ":".join(["", ".", "relative", *(f"{tmp_path}/{f}" for f in "abcd")])

    assert f"{tmp_path}/c/claude" == find_binary("claude", path)


def test_a_path_is_its_own_answer(tmp_path, monkeypatch):
    """A name with a slash is not looked up; a relative one counts from the current folder."""
    stage = Stage(tmp_path)
    monkeypatch.chdir(tmp_path)

    assert stage.claude == find_binary(stage.claude, "")
    assert stage.claude == find_binary("./claude", "/usr/bin")
    assert find_binary(f"{tmp_path}/missing", "/usr/bin:/bin") is None
    assert find_binary("claude", "") is None
    assert find_binary("claude", ".:relative:") is None


def test_the_lease_of_the_dispatcher_stays_closed_to_its_other_children(tmp_path):
    """Only the keeper makes its copy inheritable; ours keeps close-on-exec."""
    stage = Stage(tmp_path, hook="none")

    stage.run()

    assert fcntl.fcntl(stage.lease_fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


class Leaping(Clock):
    """A clock on which every look is a minute later."""

    def __init__(self):
        self.now_s = 0.0

    def monotonic(self):
        """A minute later than at the last look."""
        self.now_s += 60.0
        return self.now_s


def a_child(act):
    """The pid of a child that only does *act*."""
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(0)
    return pid


def test_a_stopped_keeper_is_not_waited_for_for_ever(tmp_path):
    """Frozen by a debugger or a cgroup, it is ended once everything it may do must be over."""
    stopped = a_child(signal.pause)
    os.kill(stopped, signal.SIGSTOP)

    run = run_carrier(Stage(tmp_path, hook="none").order(), Leaping(), fork=lambda: stopped)

    assert (None, False) == (run.exit, run.timed_out)
    with pytest.raises(ProcessLookupError):
        os.kill(stopped, 0)


@pytest.mark.parametrize("watching", [watch, lambda _pid: None], ids=["watched", "asked"])
def test_a_child_is_reaped_when_it_ends(watching):
    """By a descriptor where the kernel has one, else by a look every few milliseconds."""
    pid = a_child(lambda: time.sleep(0.05))
    watched = watching(pid)

    assert ended_by(pid, time.monotonic() + 10, Clock(), watched)
    if watched is not None:
        os.close(watched)


def test_what_is_no_child_cannot_be_watched():
    """It may have been reaped already."""
    pid = a_child(lambda: None)
    os.waitpid(pid, 0)

    assert watch(pid) is None


def test_a_keeper_that_is_reaped_already_is_over(tmp_path):
    """A caller that ignores SIGCHLD leaves the reaping to the kernel: nothing to wait for."""
    stage = Stage(tmp_path, hook="none")
    gone = a_child(lambda: None)
    os.waitpid(gone, 0)

    run = run_carrier(stage.order(), Clock(), fork=lambda: gone)

    assert (None, None, False) == (run.exit, run.spawn_error, run.interrupted)
    assert [False, True] == [stage.has("permit"), stage.has("withdrawn")]


def test_a_bare_name_is_never_looked_for_in_the_postbox_folder(tmp_path):
    """What lies in the folder of all carriers must not become the carrier."""
    stage = Stage(tmp_path, hook="none")
    planted = os.path.join(stage.cwd, "claude")
    with open(planted, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    os.chmod(planted, 0o700)

    run = stage.run(argv=["claude", *stage.argv()[1:]])

    assert run.spawn_error == "claude is not on PATH"
    assert not os.path.exists(tmp_path / "ran")
