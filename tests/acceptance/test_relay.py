"""`zdo relay`: one pass or one after another, alone, bounded, and honest about what it left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from shutil import which

import pexpect
import pytest

from dispatch.rig.rig import P
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    OTHER,
    RELAY_FIELDS,
    at_gate,
    complained,
    lease,
    lease_is_held,
    open_gate,
    opened,
    passed,
    queued,
    shell_claude,
    spool,
    wait_for,
    waits,
)
from tests.fakes.queues import Q, Queue

TWO = f'{CONFIG}\n[targets.other]\nsession = "{OTHER}"\ncarrier_session = "{Q}"\n'


def pass_of(rig, *words, **how):
    """The object that one pass of the relay printed."""
    return passed(rig.zdo("relay", "--json", *words), **how)


# -- one pass


def test_one_pass_delivers_all_that_is_due(own_rig):
    """Two postboxes, one run each; then there is nothing to do."""
    own_rig.configure(TWO)
    doors = own_rig.door(), own_rig.door(name="other", session_id=OTHER)
    queued(own_rig, "fable", "one", "two")
    queued(own_rig, "other", "three")

    said = own_rig.zdo("relay")

    assert (0, "relay: 3 delivered in 2 carrier runs\n", "") == (said.exit, said.out, said.err)
    assert [["one", "two"], ["three"]] == [door.lines() for door in doors]
    again = own_rig.zdo("relay")
    assert (0, "relay: nothing to do\n", "") == (again.exit, again.out, again.err)


def test_a_relay_without_a_queue_makes_none_of_it_up(own_rig):
    """The very first command on a machine may be the relay's."""
    pass_of(own_rig, runs=0, left=0, **{"class": None})


def test_the_time_bounds_the_pass(own_rig):
    """No carrier is started after it; what is left waits for the next pass."""
    own_rig.configure(TWO)
    own_rig.door()
    own_rig.door(name="other", session_id=OTHER)
    own_rig.install_claude(before_s=1.6)
    queued(own_rig, "fable", "one")
    queued(own_rig, "other", "two")

    pass_of(own_rig, "--for", "0", runs=0, left=2)
    pass_of(own_rig, "--for", "1.5", runs=1, delivered=1, left=1)
    pass_of(own_rig, runs=1, delivered=1, left=0)


@pytest.mark.parametrize("word", ["-1", "soon", "nan"])
def test_a_time_that_is_none_is_usage(own_rig, word):
    """64, and nothing is made or started."""
    complained(own_rig.zdo("relay", "--for", word), "usage", 64)
    assert not os.path.exists(own_rig.state)


VERDICTS = {
    "unknown": (3, {"accept": "drop", "eof_after": None}, "open"),
    "door-held": (3, {"accept": "hold"}, "open"),
    "door-refused": (77, {"accept": "refuse"}, "dead"),
    "door-denied": (77, {"accept": "hold", "hold_then": "denied", "hold_after": 0.0}, "dead"),
    "expired": (69, {"accept": "hold", "hold_then": "expired", "hold_after": 0.0}, "dead"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_what_a_person_must_see_is_the_exit(own_rig, name):
    """A line that died or is in doubt: its class's exit, one line on stderr that names it."""
    status, script, count = VERDICTS[name]
    own_rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 0.5"))
    own_rig.door(**script)
    (delivery,) = queued(own_rig, "fable", "one")

    said = own_rig.zdo("relay", "--json")

    complained(said, name, status)
    told = passed(said, **{"class": name, count: 1})
    assert delivery in said.err
    assert [(delivery, name)] == [(each["delivery_id"], each["class"]) for each in told["lines"]]
    pass_of(own_rig, runs=0)


def test_a_line_that_waits_for_its_next_try_is_no_failure(own_rig):
    """A carrier that failed: 0, put off, and tried again when its time has come."""
    own_rig.door()
    own_rig.install_claude(hook="none", outcome="api-529")
    (delivery,) = queued(own_rig, "fable", "one")

    told = pass_of(own_rig, deferred=1, left=1, exit=0)
    assert ["wrapper-not-run"] == [each["class"] for each in told["lines"]]
    pass_of(own_rig, runs=0, left=1)
    own_rig.let_time_pass()
    own_rig.install_claude()

    told = pass_of(own_rig, delivered=1)
    assert (2, delivery) == (told["lines"][0]["attempt"], told["lines"][0]["delivery_id"])


def test_a_claude_that_is_missing_is_named(own_rig):
    """69 `carrier-spawn`: it stops every line alike, and nobody else would say it."""
    own_rig.door()
    os.unlink(own_rig.claude)
    queued(own_rig, "fable", "one")

    said = own_rig.zdo("relay", "--json")

    complained(said, "carrier-spawn", 69)
    passed(said, deferred=1, left=1)
    assert "claude" in said.err


def test_one_postbox_in_trouble_stops_no_other(own_rig):
    """Leased, driven by somebody, or with a carrier that hangs: the other target is served."""
    own_rig.configure(TWO.replace("timeout_s = 20", "timeout_s = 1"))
    own_rig.door()
    other = own_rig.door(name="other", session_id=OTHER)
    queued(own_rig, "fable", "one")

    queued(own_rig, "other", "leased")
    with lease(own_rig):
        pass_of(own_rig, delivered=1, left=1)
    queued(own_rig, "other", "driven")
    driver = own_rig.door(name="postbox", session_id=P)
    passed(own_rig.zdo("relay", "--json"), delivered=1, left=1, **{"class": "carrier-live"})
    driver.__exit__()
    own_rig._doors.remove(driver)
    own_rig.install_claude(before_s=30)
    (hung,) = (line["delivery_id"] for line in spool(own_rig))
    assert ["carrier-timeout"] == [e["class"] for e in pass_of(own_rig, runs=1)["lines"]]
    own_rig.install_claude()
    queued(own_rig, "other", "beside")
    pass_of(own_rig, delivered=1, left=1)

    assert ["leased", "driven", "beside"] == other.lines()
    assert [hung] == [line["delivery_id"] for line in spool(own_rig)]


def test_a_postbox_in_use_is_waited_for(own_rig):
    """A kiss through it is over soon; its lines need not wait for the next pass."""
    own_rig.door()
    queued(own_rig, "fable", "one")
    with lease(own_rig):
        relay = own_rig.start("relay", "--json")
        wait_for(lambda: waits(relay), "its turn")
        assert 1 == len(spool(own_rig))
    out, _ = relay.communicate(timeout=30)

    assert (0, 1, 0) == (relay.returncode, json.loads(out)["delivered"], json.loads(out)["left"])


def test_the_object_is_the_same_whatever_happened(own_rig):
    """Nothing to do, delivered, another at work, broken, interrupted: the same fields."""
    own_rig.door()
    shapes = [tuple(own_rig.zdo("relay", "--json").json)]
    queued(own_rig, "fable", "one")
    shapes.append(tuple(own_rig.zdo("relay", "--json").json))
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "two")
    first = own_rig.start("relay", "--json")
    at_gate(own_rig, "before")
    shapes.append(tuple(own_rig.zdo("relay", "--json").json))
    first.send_signal(signal.SIGINT)
    shapes.append(tuple(json.loads(first.communicate(timeout=30)[0])))
    own_rig.configure("[station")
    shapes.append(tuple(own_rig.zdo("relay", "--json").json))

    assert [RELAY_FIELDS] * 5 == shapes
    assert 130 == first.returncode


# -- alone


def test_a_second_relay_says_so_and_is_no_failure(own_rig):
    """Cron starts one every minute, whatever the last one does."""
    own_rig.door()
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "one")
    first = own_rig.start("relay", "--json")
    at_gate(own_rig, "before")

    second, third = own_rig.zdo("relay"), own_rig.zdo("relay", "--follow", "--json")

    assert (0, "relay: another relay is at work here\n", "") == (
        second.exit,
        second.out,
        second.err,
    )
    passed(third, runs=0, left=0, reason="another relay is at work here", **{"class": None})
    for gate in ("before", "after"):
        open_gate(own_rig, gate)
    out, _ = first.communicate(timeout=30)
    assert (0, 1) == (first.returncode, json.loads(out)["delivered"])


def test_a_killed_relay_frees_its_lock_and_not_its_lease(own_rig):
    """The next pass is not shut out; the line under way is judged when its carrier is over."""
    door = own_rig.door()
    shell_claude(own_rig, GATED)
    (delivery,) = queued(own_rig, "fable", "one")
    first = own_rig.start("relay")
    at_gate(own_rig, "before")
    first.kill()
    first.communicate()

    assert lease_is_held(own_rig)
    pass_of(own_rig, recovered=0, runs=0)
    assert ["claimed"] == [line["state"] for line in spool(own_rig)]
    for gate in ("before", "after"):
        open_gate(own_rig, gate)
    wait_for(lambda: not lease_is_held(own_rig), "the end of the run")

    told = pass_of(own_rig, recovered=1, delivered=1, runs=0)
    assert (["one"], [delivery]) == (
        door.lines(), [each["delivery_id"] for each in told["lines"]],
    )  # fmt: skip


def test_a_relay_killed_before_the_door_lets_its_line_go_again(own_rig):
    """The permit is withdrawn: provably untouched, so the same pass carries it."""
    door = own_rig.door()
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "one", "two")
    relay = own_rig.start("relay", start_new_session=True)
    carrier = at_gate(own_rig, "before")
    relay.kill()
    relay.communicate()
    os.kill(carrier, signal.SIGKILL)
    wait_for(lambda: not lease_is_held(own_rig), "the end of the run")
    own_rig.install_claude()
    own_rig.let_time_pass()

    told = pass_of(own_rig, recovered=2)
    if told["left"]:  # their back-off had not come
        own_rig.let_time_pass()
        pass_of(own_rig, delivered=2)
    assert ["one", "two"] == door.lines()


# -- Ctrl-C


def test_ctrl_c_before_the_door_puts_the_lines_back(own_rig):
    """130; nothing was touched, so they go with the next pass."""
    door = own_rig.door()
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "one", "two")
    relay = own_rig.start("relay")
    at_gate(own_rig, "before")

    relay.send_signal(signal.SIGINT)
    out, err = relay.communicate(timeout=30)

    assert 130 == relay.returncode
    assert "relay: 2 put off, 2 waiting in 1 carrier run\n" == out
    assert re.fullmatch(r"zdo: interrupted: [^\n]+; [^\n]+\n", err)
    assert [] == door.calls()
    own_rig.install_claude()
    own_rig.let_time_pass()
    pass_of(own_rig, delivered=2)


def test_ctrl_c_behind_the_door_is_told_as_it_is(own_rig):
    """The lines are in and seen: `surfaced`, and none goes a second time."""
    door = own_rig.door()
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "one", "two")
    relay = own_rig.start("relay", "--json")
    at_gate(own_rig, "before")
    open_gate(own_rig, "before")
    at_gate(own_rig, "after")

    relay.send_signal(signal.SIGINT)
    told = json.loads(relay.communicate(timeout=30)[0])

    assert (["surfaced"] * 2, 2) == ([each["class"] for each in told["lines"]], told["delivered"])
    own_rig.let_time_pass()
    pass_of(own_rig, runs=0)
    assert ["one", "two"] == door.lines()


def test_ctrl_c_while_nothing_is_under_way_is_130(own_rig):
    """Waiting for a postbox in use: one line, and the line waits."""
    own_rig.door()
    queued(own_rig, "fable", "one")
    with lease(own_rig):
        relay = own_rig.start("relay")
        wait_for(lambda: waits(relay), "its turn")
        relay.send_signal(signal.SIGINT)
        out, err = relay.communicate(timeout=30)

    assert (130, 1) == (relay.returncode, err.count("\n")), err
    assert err.startswith("zdo: interrupted: ")
    assert out.startswith("relay: ")
    pass_of(own_rig, delivered=1)


def opens(pid, name):
    """Whether *pid* has something called *name* open."""
    return any(path.endswith(f"/{name}") for path in opened(pid))


# -- the receiver's pace


def test_forty_five_lines_go_as_the_receiver_takes_them(own_rig):
    """30, then the rest: none is dropped, all are in order, one sender address a run."""
    door = own_rig.door(limits=True)
    lines = [f"line {number:02d}" for number in range(45)]
    with_lines(own_rig, "fable", lines)

    first = pass_of(own_rig, delivered=30, left=15, runs=1)
    pass_of(own_rig, delivered=0, runs=0, left=15)
    own_rig.let_time_pass()
    pass_of(own_rig, delivered=15, left=0, runs=1)

    assert lines == door.lines()
    assert ({"surfaced"}, []) == (
        {each["proof"] for each in first["lines"]}, door.notices(),
    )  # fmt: skip
    assert [1, 1] == [len({f["from"] for f in call["frames"][1:]}) for call in door.calls(2)]


def with_lines(rig, target, lines):
    """Queue *lines*, faster than by so many commands."""
    return Queue(rig).put(*lines, to=target)


def test_two_equal_texts_are_spaced(own_rig):
    """So that the second is not taken for a duplicate; nothing passes it."""
    door = own_rig.door(limits=True)
    queued(own_rig, "fable", "ping", "ping", "after")

    pass_of(own_rig, delivered=1, left=2)
    pass_of(own_rig, runs=0, left=2)
    own_rig.let_time_pass()
    pass_of(own_rig, delivered=2, left=0)

    assert ["ping", "ping", "after"] == door.lines()
    assert [] == door.notices()


def test_a_drop_notice_puts_exactly_the_dropped_lines_back(own_rig):
    """Three of five were taken: they are in, the other two go later, in their order."""
    own_rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 1"))
    # As if others had filled its inbox.
    door = own_rig.door(limits=True, burst=3, sum_after=0.3)
    lines = [f"line {number}" for number in range(5)]
    ids = with_lines(own_rig, "fable", lines)

    told = pass_of(own_rig, delivered=3, deferred=2, left=2, exit=0)

    classes = [each["class"] for each in told["lines"]]
    assert ["delivered-start"] * 3 + ["door-dropped"] * 2 == classes
    assert ids[3:] == [line["delivery_id"] for line in spool(own_rig)]
    pass_of(own_rig, runs=0, left=2)
    own_rig.let_time_pass()
    pass_of(own_rig, delivered=2, left=0)
    surfaced = [row for row in door.rows() if row.get("origin", {}).get("kind") == "peer"]
    assert ids == [row["origin"]["msg_id"] for row in surfaced]


# -- staying


@pytest.fixture
def follower(own_rig):
    """A relay that follows, started by the test; it is gone afterwards."""
    started = []

    def start(*words, **how):
        started.append(own_rig.start("relay", "--follow", *words, **how))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def is_following(rig, process):
    """Whether *process* has had its first pass and looks around now."""
    return opens(process.pid, "relay.lock") and os.path.exists(f"{rig.state}/zdo.db")


def ended(process):
    """What a follower said when it was told to end."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_a_follower_wakes_on_a_new_line(own_rig, follower):
    """Within two seconds and a carrier run; then it ends with 0 when it is told to."""
    door = own_rig.door()
    process = follower()
    wait_for(lambda: is_following(own_rig, process), "the first pass")
    time.sleep(0.5)
    queued(own_rig, "fable", "one")
    kept_at = time.monotonic()

    assert door.calls(1)[0]["frame_at"] - kept_at < 3
    wait_for(lambda: not spool(own_rig), "the verdict")
    assert (0, "relay: 1 delivered in 1 carrier run\n", "") == ended(process)


def test_a_follower_speaks_one_object_a_pass(own_rig, follower):
    """Only of passes that did something."""
    own_rig.door()
    queued(own_rig, "fable", "one", "two")
    process = follower("--json")
    wait_for(lambda: not spool(own_rig), "the lines")

    status, out, err = ended(process)

    assert (0, "", 1) == (status, err, out.count("\n"))
    assert 2 == json.loads(out)["delivered"]


def test_a_follower_notices_a_target_that_appears(own_rig, follower):
    """Nothing tells it but a look around, every ten seconds."""
    queued(own_rig, "fable", "one")
    process = follower()
    wait_for(lambda: spool(own_rig)[0]["class"] == "target-not-running", "the first pass")
    door = own_rig.door()
    until = time.monotonic() + 14
    while not door.lines():
        assert time.monotonic() < until, "it did not notice"
        time.sleep(0.1)

    assert 0 == ended(process)[0]


def test_a_follower_that_is_ended_finishes_its_run(own_rig, follower):
    """SIGTERM at the door: the line is delivered and told; the next postbox is not begun."""
    own_rig.configure(TWO)
    doors = own_rig.door(), own_rig.door(name="other", session_id=OTHER)
    shell_claude(own_rig, GATED)
    queued(own_rig, "fable", "one")
    queued(own_rig, "other", "two")
    process = follower()
    at_gate(own_rig, "before")

    process.send_signal(signal.SIGTERM)
    for gate in ("before", "after"):
        open_gate(own_rig, gate)
    out, err = process.communicate(timeout=30)

    assert (0, "", "relay: 1 delivered, 1 waiting in 1 carrier run\n") == (
        process.returncode, err, out,
    )  # fmt: skip
    assert [["one"], []] == [door.lines() for door in doors]


def test_nohup_keeps_a_follower_alive(own_rig, follower):
    """SIGHUP that was ignored at its start ends nothing."""

    def ignore():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = follower(preexec_fn=ignore)
    wait_for(lambda: is_following(own_rig, process), "the first pass")
    process.send_signal(signal.SIGHUP)
    door = own_rig.door()
    queued(own_rig, "fable", "one")

    wait_for(door.lines, "the line")
    wait_for(lambda: not spool(own_rig), "the verdict")
    assert 0 == ended(process)[0]


STRACE = which("strace")
LOOKS = 4  # as many as the test waits for
CALLS = "trace=stat,newfstatat,statx,lstat,open,openat,openat2,poll,ppoll,select,pselect6"


@pytest.mark.skipif(STRACE is None, reason="no strace here; tests/unit/test_relaying.py counts too")
def test_a_follower_looks_once_a_second(own_rig):
    """By its system calls: one look at the database's file a second, and not one pass more."""
    own_rig.zdo("relay")
    log = f"{own_rig.root}/strace"
    words = [STRACE, "-f", "-ttt", "-e", CALLS, "-o", log]
    relay = own_rig.command("relay", "--follow")
    process = subprocess.Popen([*words, *relay], env=own_rig.env)
    try:
        wait_for(lambda: followers_of(process), "the first pass")
        (pid,) = followers_of(process)
        wait_for(lambda: len(steady(looks(own_rig, log))) > LOOKS, "so many looks", within=60)
        os.kill(pid, signal.SIGTERM)
        assert 0 == process.wait(20)
    finally:
        for child in children_of(process):
            os.kill(child, signal.SIGKILL)
        process.wait(20)

    seen = looks(own_rig, log)
    per_second = Counter(int(at) for at, _ in steady(seen))
    assert {1, 2} >= set(per_second.values()), seen
    assert max(b - a for (a, _), (b, _) in itertools.pairwise(steady(seen))) < 2
    calls = [at for at, _ in every_call(log) if at > seen[0][0] + 1.5]
    assert len(calls) <= 3 * (max(calls) - min(calls) + 1), len(calls)


def steady(seen):
    """The looks of *seen* after the first pass; the tenth second brings another."""
    return [each for each in seen if 1.5 < each[0] - seen[0][0] < 9]


def followers_of(strace):
    """The children of *strace* that have the relay's lock; it also tries out some of its own."""
    found = []
    for pid in children_of(strace):
        with contextlib.suppress(OSError):
            found += [pid] * opens(pid, "relay.lock")
    return found


def children_of(process):
    """The pids of the children of *process*; none once it has ended."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        return [int(pid) for pid in children.read_text(encoding="ascii").split()]
    return []


def every_call(log):
    """When each traced call was made, and what it was."""
    for line in Path(log).read_text(encoding="utf-8").splitlines():
        found = re.match(r"\d+ +(\d+\.\d+) (\w+\(.*)", line)  # a short pid is padded
        if found:
            yield float(found[1]), found[2]


def looks(rig, log):
    """The calls that looked at the database's file."""
    name = f'"{rig.state}/zdo.db"'
    return [(at, call) for at, call in every_call(log) if name in call and "stat" in call]


# -- the bar


def test_a_terminal_has_a_bar_and_the_summary(own_rig):
    """On stderr, gone at the end; the summary is on stdout as ever."""
    own_rig.door()
    queued(own_rig, "fable", "one", "two")
    command = own_rig.command("relay")
    seen = pexpect.spawn(
        command[0], command[1:], env=own_rig.env | {"TERM": "xterm"}, encoding="utf-8", timeout=20
    )
    seen.expect(pexpect.EOF)
    seen.close()

    assert 0 == seen.exitstatus
    assert "2 of 2" in seen.before
    assert seen.before.rstrip().endswith("relay: 2 delivered in 1 carrier run")


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_can_do_nothing_is_no_trouble(own_rig, term):
    """TERM unset or dumb: the summary, and no traceback."""
    own_rig.door()
    queued(own_rig, "fable", "one")
    command = own_rig.command("relay")
    env = own_rig.env | ({"TERM": term} if term else {})
    seen = pexpect.spawn(command[0], command[1:], env=env, encoding="utf-8", timeout=20)
    seen.expect(pexpect.EOF)
    seen.close()

    assert (0, False) == (seen.exitstatus, "Traceback" in seen.before)
    assert "relay: 1 delivered in 1 carrier run" in seen.before


def test_a_pipe_has_the_summary_alone(own_rig):
    """Not one byte on stderr, and no control character."""
    own_rig.door()
    queued(own_rig, "fable", "one")

    said = own_rig.zdo("relay", env={"TERM": "xterm", "FORCE_COLOR": "1"})

    assert ("relay: 1 delivered in 1 carrier run\n", "") == (said.out, said.err)


def test_a_reader_that_left_and_a_full_disk_change_no_delivery(own_rig):
    """`| head -0` is no failure, /dev/full is 74; what was delivered stays delivered."""
    door = own_rig.door()
    for number, (after, status) in enumerate([("| true", 0), (">/dev/full", 74)]):
        queued(own_rig, "fable", f"line {number}")
        script = f'set -o pipefail 2>/dev/null; "$@" {after}'
        ran = subprocess.run(
            ["/bin/bash", "-c", script, "sh", *own_rig.command("relay")],
            env=own_rig.env, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert (status, False) == (ran.returncode, "Traceback" in ran.stderr), ran
    assert ["line 0", "line 1"] == door.lines()
    assert [] == spool(own_rig)
