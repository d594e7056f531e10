"""The keeper: deadlines, pipes, the permit, and everything that a carrier starts."""

from __future__ import annotations

import errno
import os
import resource
import signal
import time

import pytest

from carrier.family import descendants, signal_each, signal_group
from carrier.keeper import open_numbers, tell
from carrier.proof import EAR, Receipt, read_receipt
from carrier.run import read_run
from carrier.ward import STDERR_LIMIT, STDOUT_LIMIT, wrapper_time
from registry.processes import Processes
from tests.fakes.ears import (
    descriptors,
    ear_of,
    env_of,
    is_gone,
    send_away,
    started_with,
    target_of,
    the_ear_of,
)
from tests.fakes.runs import (
    Stage,
    die,
    fail,
    in_child,
    limited,
    runs,
    slow_taker,
    status_of,
    stumble,
    wait_for,
)

END = bytearray(
    b'{"exit": 0, "timed_out": false, "interrupted": false, "spawn_error": null, "wall_ms": 7}'
)
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


def test_at_the_deadline_a_round_is_divided_into_taken_and_withdrawn(tmp_path):
    """What the wrapper has it may finish, in the time of the lead; the rest it never gets."""
    stage = Stage(tmp_path, lines=4)
    stage.hook(slow_taker(stage.folders[:2], 1))

    run = stage.run(deadline_s=0.4)

    assert run.timed_out
    assert [0, 1] == stage.having("intent") == stage.having("receipt.json")
    assert [2, 3] == stage.having("withdrawn")


def test_a_wrapper_has_its_time_until_the_last_of_its_receipts(tmp_path):
    """In whatever order they come: one that is there does not stand for the others."""
    stage = Stage(tmp_path, lines=3)
    taken = "; ".join(f"mv {each}/permit {each}/intent" for each in stage.folders)
    lead, second, last = (f": > {each}/receipt.json" for each in stage.folders)
    stage.hook(f"trap '' TERM; {taken}; {last}; sleep 1; {lead}; sleep 1; {second}")
    began = time.monotonic()

    run = stage.run(deadline_s=0.3)

    assert time.monotonic() - began < 2 + ALLOWED_S
    assert run.timed_out
    assert [0, 1, 2] == stage.having("receipt.json")


def test_a_wrapper_that_leaves_out_a_receipt_has_no_more_than_its_time(tmp_path):
    """Counted once for all the lines; the doubts stay."""
    stage = Stage(tmp_path, lines=2, ignore_term=True)
    stage.hook(slow_taker(stage.folders, 60))
    began = time.monotonic()

    run = stage.run(deadline_s=0.2, wrapper_s=0.8)

    assert 0.8 < time.monotonic() - began < 0.8 + ALLOWED_S
    assert run.timed_out
    assert [[0, 1], []] == [stage.having("intent"), stage.having("receipt.json")]


@pytest.mark.parametrize("deadline_s", [0.15, 0.2, 0.25, 0.3])
def test_a_deadline_amid_the_taking_leaves_no_gap(tmp_path, deadline_s):
    """Of each target's lines the first are taken and the rest withdrawn, none is neither."""
    stage = Stage(tmp_path, lines=40)
    takers = [
        f"(for f in {' '.join(stage.folders[at::2])}; do mv $f/permit $f/intent 2> {os.devnull}"
        f" || break; : > $f/receipt.json; sleep 0.0{at}; done)"
        for at in (0, 1)
    ]
    stage.hook(f"trap '' TERM; {' & '.join(takers)}; wait")

    stage.run(deadline_s=deadline_s, wrapper_s=2.0)

    taken, withdrawn = stage.having("intent"), stage.having("withdrawn")
    assert sorted(taken + withdrawn) == list(range(40))
    for at in (0, 1):
        first = [number for number in taken if number % 2 == at]
        assert list(range(at, 40, 2))[: len(first)] == first


def everything_told(folders):
    """What each folder says of the run."""
    return [
        {name: _read(f"{folder}/{name}") for name in ("stdout", "stderr", "run.json")}
        for folder in folders
    ]


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


@pytest.mark.parametrize("stderr", ["warned\n", ""])
def test_every_folder_of_a_round_tells_the_whole_run(tmp_path, stderr):
    """By the same three files, of which only what is anything stands; one file for all."""
    stage = Stage(tmp_path, lines=3, hook="none", outcome="max-turns", stderr=stderr)

    run = stage.run()

    assert [run] * 3 == [read_run(folder) for folder in stage.folders]
    lead, *others = everything_told(stage.folders)
    assert [lead, lead] == others
    assert (stderr.encode() or None) == lead["stderr"]
    links = [os.stat(f"{folder}/run.json").st_nlink for folder in stage.folders]
    assert [3, 3, 3] == links
    assert [0] == stage.having("carrier")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EMLINK, errno.EXDEV, errno.ENOTSUP])
def test_where_links_are_refused_every_folder_has_files_of_its_own(tmp_path, number):
    """A file system without them, or with too many of them."""
    stage = Stage(tmp_path, lines=3, hook="none", stderr="warned\n")

    def act():
        stumble(1, fail(number), lasting=True, steps=("link",))
        stage.run()

    assert status_of(in_child(act)) == 0
    lead, *others = everything_told(stage.folders)
    assert [lead, lead] == others
    assert None not in lead.values()
    assert {1} == {os.stat(f"{folder}/stdout").st_nlink for folder in stage.folders}


@pytest.mark.parametrize("links", [True, False])
def test_killed_at_any_step_of_the_telling_no_folder_tells_half_a_run(tmp_path, links):
    """run.json is the last file in each: where it stands and is whole, so are the others."""
    told = {"stdout": bytearray(b"printed"), "stderr": bytearray(b"warned"), "run.json": END}
    for at in range(1, 60):
        folders = [f"{tmp_path}/{at}-{number}" for number in range(3)]
        for folder in folders:
            os.mkdir(folder)

        def act(at=at, folders=folders):
            if not links:
                stumble(1, fail(errno.EPERM), lasting=True, steps=("link",))
            stumble(at, die)
            assert all(
                tell(folder, told, folders[0] if folder != folders[0] else None)
                for folder in folders
            )

        over = status_of(in_child(act)) == 0
        for folder in folders:
            run = read_run(folder)
            assert run is None or (b"printed", b"warned") == (run.stdout, run.stderr)
        if over:
            break
    assert at > 10
    assert None not in [read_run(folder) for folder in folders]


def test_a_folder_that_is_gone_costs_the_others_nothing(tmp_path):
    """Each is told by itself."""
    stage = Stage(tmp_path, lines=4, hook="none")
    os.rename(stage.folders[1], f"{tmp_path}/elsewhere")
    os.mkdir(f"{stage.folders[2]}/run.json")

    run = stage.run()

    assert [run, None, None, run] == [read_run(folder) for folder in stage.folders]


def test_without_the_leads_folder_the_others_are_told_all_the_same(tmp_path):
    """The dispatcher knows nothing of the run, but whoever judges the lines later does."""
    stage = Stage(tmp_path, lines=3, hook="none")
    os.mkdir(f"{stage.folders[0]}/run.json")

    run = stage.run()

    assert (None, None) == (run.exit, run.spawn_error)
    _, second, third = (read_run(folder) for folder in stage.folders)
    assert (second, 1) == (third, second.exit)
    assert b"ECONNREFUSED" in second.stdout


def test_half_an_output_is_never_told_as_a_whole_one(tmp_path):
    """The disk took a part of it in the lead: no folder says that the run is known."""
    stage = Stage(tmp_path, lines=3, hook="none", flood_stdout=3 << 20)

    with limited(resource.RLIMIT_FSIZE, 2 << 20):
        run = stage.run()

    assert (None, None) == (run.exit, run.spawn_error)
    assert [None] * 3 == [read_run(folder) for folder in stage.folders]


def test_what_lies_in_the_place_of_an_output_is_replaced(tmp_path):
    """A link cannot be put over it, so it is written."""
    stage = Stage(tmp_path, lines=2, hook="none")
    with open(f"{stage.folders[1]}/stdout", "wb") as file:
        file.write(b"x" * 10_000)

    assert [stage.run()] * 2 == [read_run(folder) for folder in stage.folders]


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


@pytest.mark.parametrize("adopt", ["prctl", "no_such_function"])
def test_the_ear_of_a_held_line_is_left_alone(tmp_path, adopt):
    """The run ends at once, blocked and with its lease; one process stays, and keeps nothing."""
    stage = Stage(tmp_path)
    with target_of(stage, accept="hold") as door:
        run = stage.run(env=env_of(stage), adopt=adopt, deadline_s=30.0)

        ear = the_ear_of(stage.attempt_dir)
        assert (0, False) == (run.exit, run.timed_out)
        assert b"zdo wrote" in run.stdout
        assert [ear] == started_with(stage.attempt_dir)
        assert ear not in descendants(os.getpid())
        os.close(stage.lease_fd)
        assert stage.lease_is_free()
        assert {os.devnull, "socket"} == {*descriptors(ear).values()}

        door.kill()
        assert is_gone(ear)


@pytest.mark.parametrize("ignore_term", [False, True])
def test_a_stray_is_ended_beside_an_ear(tmp_path, ignore_term):
    """Within the graces, though somebody may stay."""
    stray = {"s": 60, "setsid": True, "double": True, "ignore_term": ignore_term}
    stage = Stage(tmp_path, stray=stray, before_s=0.3)
    with target_of(stage, accept="hold"):
        began = time.monotonic()

        run = stage.run(env=env_of(stage))

        ear = the_ear_of(stage.attempt_dir)
        assert 0 == run.exit
        assert time.monotonic() - began < ALLOWED_S + 2
        assert not runs(stage.log("stray")[0]["pid"])
        assert [ear] == started_with(stage.attempt_dir)
        send_away(ear)


@pytest.mark.parametrize(
    ("token", "spared"),
    [("cut -d' ' -f22 /proc/$!/stat", True), ("echo 1", False), ("echo", False)],
)
def test_who_signs_in_with_a_wrong_start_time_is_no_ear(tmp_path, token, spared):
    """A pid alone spares nobody, its number may be anybody's; the first case is the control."""
    stage = Stage(tmp_path, after_s=0.1)
    quiet = f"> {os.devnull} 2>&1 < {os.devnull}"
    ear = f"{stage.attempt_dir}/{EAR}"
    stage.hook(f'setsid sleep 60 {quiet} & printf "%s" "$! $({token})" > {ear}; exit 2')

    run = stage.run()

    with open(ear, encoding="ascii") as file:
        pid = int(file.read().split()[0])
    assert (0, spared) == (run.exit, runs(pid))
    if spared:
        send_away(pid)


def test_a_forged_name_of_a_stranger_changes_nothing(tmp_path):
    """He is not the carrier's: neither ended nor a reason to leave a stray."""
    stage = Stage(tmp_path, hook="none", stray={"s": 60, "setsid": True}, before_s=0.3)
    token = Processes().start_token(os.getppid())
    with open(f"{stage.attempt_dir}/{EAR}", "w", encoding="ascii") as file:
        file.write(f"{os.getppid()} {token}")

    stage.run()

    assert os.getppid() == ear_of(stage.attempt_dir)
    assert not runs(stage.log("stray")[0]["pid"])


def _parts_of(stage):
    """The wrapper of a stage's running carrier and its child, once the child is at the door."""
    [start] = wait_for(lambda: stage.log("start"))
    wait_for(lambda: stage.has("intent"))
    below = descendants(start["pid"])
    [child] = [pid for pid in below if not descendants(pid)]
    [wrapper] = [pid for pid in below if descendants(pid) == [child]]
    return wrapper, child


@pytest.mark.parametrize("accept", ["surface", "hold"])
def test_a_killed_wrapper_leaves_its_child_the_time_to_finish(tmp_path, accept):
    """The prompt is blocked by the shell; the child's receipt is waited for, and it may stay."""
    stage = Stage(tmp_path)
    with target_of(stage, accept=accept, eof_after=0.8) as door:
        dispatcher = in_child(lambda: _expect_exit(stage.run(env=env_of(stage)), 0))
        wrapper, child = _parts_of(stage)
        wait_for(door.rows)

        os.kill(wrapper, signal.SIGKILL)

        assert status_of(dispatcher) == 0
        receipt = read_receipt(stage.attempt_dir)
        assert isinstance(receipt, Receipt)
        assert (True, True) == (receipt.wrote, receipt.eof)
        assert b"blocked" in read_run(stage.attempt_dir).stdout
        assert ([child] if accept == "hold" else []) == started_with(stage.attempt_dir)
        if accept == "hold":
            send_away(child)


@pytest.mark.parametrize("whole", [False, True])
def test_a_killed_child_is_a_doubt_and_nobody_waits(tmp_path, whole):
    """It had the permit: the intent stays without a receipt, and the prompt is blocked."""
    stage = Stage(tmp_path)
    with target_of(stage, eof_after=None) as door:
        dispatcher = in_child(lambda: _expect_exit(stage.run(env=env_of(stage)), 0))
        wrapper, child = _parts_of(stage)
        wait_for(door.rows)
        began = time.monotonic()

        signal_each((wrapper, child) if whole else (child,), signal.SIGKILL)

        assert status_of(dispatcher) == 0
        assert time.monotonic() - began < ALLOWED_S
        assert [True, False] == [stage.has("intent"), stage.has("receipt.json")]
        assert b"blocked" in read_run(stage.attempt_dir).stdout
        assert [] == started_with(stage.attempt_dir)


def test_at_the_deadline_a_child_at_the_door_finishes(tmp_path):
    """Its receipt is there before the carrier is ended, and nothing of it is left."""
    stage = Stage(tmp_path)
    with target_of(stage, eof_after=1.0) as door:
        run = stage.run(env=env_of(stage), deadline_s=0.6)

        assert ["one line of text"] == door.lines()
        assert run.timed_out
        assert stage.has("receipt.json")
        assert [] == started_with(stage.attempt_dir)
