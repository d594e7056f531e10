"""The keeper: deadlines, pipes, the permit, and everything that a carrier starts."""

from __future__ import annotations

import os
import signal
import time

import pytest

from carrier.family import descendants, signal_each, signal_group
from carrier.keeper import open_numbers
from carrier.ward import STDERR_LIMIT, STDOUT_LIMIT, wrapper_time
from tests.fakes.runs import Stage, in_child, runs, status_of, wait_for

# 5 s after the deadline nothing may be left.
ALLOWED_S = 5.0


def test_a_carrier_that_ignores_term_is_gone_with_every_descendant(tmp_path):
    """Also one that left the session and ignores TERM itself."""
    stray = {"s": 60, "setsid": True, "ignore_term": True}
    stage = Stage(tmp_path, hook="none", ignore_term=True, hang_s=60, stray=stray)
    began = time.monotonic()

    run = stage.run(deadline_s=0.5)

    assert time.monotonic() - began < 0.5 + ALLOWED_S
    assert (True, -signal.SIGKILL) == (run.timed_out, run.exit)
    assert [False, False] == [
        runs(stage.log("start")[0]["pid"]),
        runs(stage.log("stray")[0]["pid"]),
    ]


@pytest.mark.parametrize("stray", [{"setsid": True}, {"setsid": True, "double": True}, {}])
@pytest.mark.parametrize("ignore_term", [False, True])
def test_what_a_finished_carrier_leaves_behind_is_gone(tmp_path, stray, ignore_term):
    """In its group, in a session of its own, or a daemon; with and without TERM."""
    stray = stray | {"s": 60, "ignore_term": ignore_term}
    # A real carrier's first child comes far later than the keeper is ready to adopt it.
    stage = Stage(tmp_path, hook="none", stray=stray, before_s=0.3, after_s=0.1)

    run = stage.run()

    assert (1, False) == (run.exit, run.timed_out)
    assert not runs(stage.log("stray")[0]["pid"])
    os.close(stage.lease_fd)
    assert stage.lease_is_free()


def test_where_orphans_cannot_be_adopted_the_group_is_ended(tmp_path):
    """The most that the platform allows: who left the group escapes."""
    stage = Stage(tmp_path, hook="none", stray={"s": 60, "ignore_term": True}, after_s=0.1)

    stage.run(adopt="no_such_function")

    assert not runs(stage.log("stray")[0]["pid"])


def test_a_grandchild_that_holds_stdout_does_not_hang_the_run(tmp_path):
    """The end of the carrier counts, not the end of its pipe."""
    stray = {"s": 60, "setsid": True, "holds_stdout": True}
    stage = Stage(tmp_path, hook="none", stray=stray)

    run = stage.run(adopt="no_such_function")

    [left] = stage.log("stray")
    assert (1, True) == (run.exit, runs(left["pid"]))
    assert b"ECONNREFUSED" in run.stdout
    os.kill(left["pid"], signal.SIGKILL)


def test_full_pipes_never_block_a_carrier(tmp_path):
    """Megabytes on both streams: the first 4 MiB and the last 64 KiB are kept."""
    stage = Stage(tmp_path, hook="none", flood_stdout=6 << 20, flood_stderr=3 << 20, stderr="END")

    run = stage.run()

    assert run.exit == 1
    assert b"o" * STDOUT_LIMIT == run.stdout
    assert STDERR_LIMIT == len(run.stderr)
    assert run.stderr.endswith(b"eEND")


def test_a_slow_writer_is_ended_at_the_deadline(tmp_path):
    """One byte at a time does not move the deadline; what came is kept."""
    stage = Stage(tmp_path, hook="none", trickle_s=0.05)

    run = stage.run(deadline_s=0.6)

    assert (True, 143) == (run.timed_out, run.exit)
    assert run.stdout.startswith(b"{")
    assert len(run.stdout) < 40


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_carrier_killed_by_a_signal_has_its_number(tmp_path, number):
    """Negative, as subprocess says it."""
    stage = Stage(tmp_path, hook="none", kill=[int(number), "before"])

    assert -number == stage.run().exit


def _wrapper(stage, seconds, receipt="receipt.json"):
    """A wrapper in shell: takes the permit, works for *seconds*, leaves a receipt."""
    taken = f"cd {stage.attempt_dir} && mv permit intent && touch intent"
    return f"trap '' TERM; {taken}; sleep {seconds}; : > {receipt}"


def test_a_wrapper_that_holds_the_permit_at_the_deadline_finishes(tmp_path):
    """The carrier is only ended when the receipt is there (INTERFACE 7 g)."""
    stage = Stage(tmp_path)
    stage.hook(_wrapper(stage, 1))

    run = stage.run(deadline_s=0.4)

    assert run.timed_out
    assert stage.has("receipt.json")


def test_a_carrier_may_end_by_itself_while_its_wrapper_has_its_time(tmp_path):
    """Then nothing is left to end, and the wrapper still finishes."""
    stage = Stage(tmp_path, after_s=0.4)
    stage.hook(f"({_wrapper(stage, 1)}) > {os.devnull} 2>&1 & exit 2")

    run = stage.run(deadline_s=0.3)

    assert (True, 0) == (run.timed_out, run.exit)
    assert stage.has("receipt.json")


def test_a_wrapper_never_has_more_than_its_own_time(tmp_path):
    """With the permit and without an end: it is gone, and the doubt stays."""
    stage = Stage(tmp_path, ignore_term=True)
    stage.hook(_wrapper(stage, 60))
    began = time.monotonic()

    run = stage.run(deadline_s=0.2, wrapper_s=0.8)

    assert 0.8 < time.monotonic() - began < 0.8 + ALLOWED_S
    assert run.timed_out
    assert [True, False] == [stage.has("intent"), stage.has("receipt.json")]


def test_a_wrapper_without_the_permit_gets_no_time(tmp_path):
    """At the deadline the permit is withdrawn, and the wrapper goes with its carrier."""
    stage = Stage(tmp_path)
    stage.hook(f"sleep 60; mv {stage.attempt_dir}/permit {stage.attempt_dir}/intent")
    began = time.monotonic()

    run = stage.run(deadline_s=0.3)

    assert time.monotonic() - began < ALLOWED_S
    assert run.timed_out
    assert [False, False] == [stage.has("permit"), stage.has("intent")]


def test_a_killed_carrier_leaves_its_wrapper_the_time_to_finish(tmp_path):
    """SIGKILL of the carrier alone: the hook lives on (CONTRACT b) and is waited for."""
    stage = Stage(tmp_path)
    stage.hook(_wrapper(stage, 0.6))
    dispatcher = in_child(lambda: _expect_exit(stage.run(), -signal.SIGKILL))
    [start] = wait_for(lambda: stage.log("start"))
    wait_for(lambda: stage.has("intent"))

    os.kill(start["pid"], signal.SIGKILL)

    assert status_of(dispatcher) == 0
    assert stage.has("receipt.json")


def _expect_exit(run, status):
    assert status == run.exit


def test_a_wrapper_that_died_with_the_permit_is_not_waited_for(tmp_path):
    """Nobody is left who could leave a receipt."""
    stage = Stage(tmp_path, outcome="success", after_s=0.1)
    stage.hook(f"mv {stage.attempt_dir}/permit {stage.attempt_dir}/intent")
    began = time.monotonic()

    run = stage.run(wrapper_s=10.0)

    assert time.monotonic() - began < ALLOWED_S
    assert (0, True) == (run.exit, stage.has("intent"))


def test_term_to_the_keeper_makes_the_deadline_now(tmp_path):
    """The run says interrupted, not timed out."""
    stage = Stage(tmp_path, hook="none", hang_s=60)
    dispatcher = in_child(lambda: _expect_interrupted(stage.run()))
    [start] = wait_for(lambda: stage.log("start"))

    os.kill(start["ppid"], signal.SIGTERM)

    assert status_of(dispatcher) == 0


def _expect_interrupted(run):
    assert (True, False) == (run.interrupted, run.timed_out)


def test_other_signals_do_not_move_the_keeper(tmp_path):
    """SIGINT and SIGHUP are somebody else's affair."""
    stage = Stage(tmp_path, hook="none", after_s=0.3)
    dispatcher = in_child(lambda: _expect_exit(stage.run(), 1))
    [start] = wait_for(lambda: stage.log("start"))

    os.kill(start["ppid"], signal.SIGINT)
    os.kill(start["ppid"], signal.SIGHUP)

    assert status_of(dispatcher) == 0


def test_a_folder_that_takes_no_file_costs_the_run_but_not_the_end(tmp_path):
    """Without run.json the dispatcher knows nothing of the exit, and says nothing."""
    stage = Stage(tmp_path, hook="none")
    os.rename(stage.attempt_dir, stage.attempt_dir + ".gone")

    run = stage.run()

    assert (None, None) == (run.exit, run.spawn_error)
    assert len(stage.log("end")) == 1


@pytest.mark.parametrize(
    ("age", "left"), [(0.0, 10.0), (4.0, 6.0), (10.0, 0.0), (99.0, 0.0), (-99.0, 10.0)]
)
def test_a_wrapper_has_its_time_from_the_intent_on(tmp_path, age, left):
    """Whatever the clock does meanwhile, between nothing and all of it."""
    (tmp_path / "intent").touch()
    os.utime(tmp_path / "intent", (1000.0, 1000.0))

    assert left == wrapper_time(str(tmp_path), 10.0, 1000.0 + age)


def test_without_an_intent_to_look_at_a_wrapper_has_all_of_its_time(tmp_path):
    """An unreadable folder is no reason to cut it short."""
    assert wrapper_time(f"{tmp_path}/gone", 10.0, 0.0) == 10.0


def test_descendants_are_found_across_sessions(tmp_path):
    """Child and grandchild, in whatever session."""
    stage = Stage(tmp_path, hook="none", hang_s=30, stray={"s": 30, "setsid": True})
    dispatcher = stage.dispatcher()
    [start] = wait_for(lambda: stage.log("start"))
    [stray] = wait_for(lambda: stage.log("stray"))

    found = descendants(dispatcher)

    assert {start["ppid"], start["pid"], stray["pid"]} == set(found)
    assert [] == descendants(stray["pid"])
    os.kill(start["ppid"], signal.SIGTERM)
    assert status_of(dispatcher) == 0


def test_without_proc_no_descendant_is_known(tmp_path):
    """The group is all that can be ended there."""
    assert [] == descendants(os.getppid(), f"{tmp_path}/none")


def test_a_signal_to_nobody_is_no_error():
    """It ended meanwhile, and that is all."""
    gone = in_child(lambda: None)
    status_of(gone)

    signal_each([gone], signal.SIGTERM)

    assert not signal_group(gone, signal.SIGTERM)


def test_without_a_list_of_descriptors_the_likely_ones_are_closed(tmp_path):
    """Closing what is not open is free."""
    assert {0, 1, 2} <= set(open_numbers("/dev/fd"))
    assert range(1024) == open_numbers(f"{tmp_path}/none")
