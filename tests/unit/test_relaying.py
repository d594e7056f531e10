"""`zdo relay` as a command: what it says, when it wakes, how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import sys
import threading

import pytest

from dispatch.cli import relaying
from dispatch.cli.commands import Usage
from dispatch.due import Halt, Plan
from dispatch.relay import alone
from dispatch.rig.rig import Rig
from dispatch.tally import Tally
from tests.acceptance.saying import shell_claude
from tests.fakes.evidence import OTHER, StoppedClock
from tests.fakes.household import asked
from tests.fakes.queues import CONFIG, Queue

HEEDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# A signal for the dispatcher: the parent of the keeper, whose child we are.
SIGNALLER = """\
#!/bin/sh
kill -%s $(cut -d' ' -f4 /proc/$PPID/stat)
sleep %d
sh -c "$ZDO_CARRIER_WRAPPER" </dev/null >/dev/null
printf '{"type":"result","session_id":"%%s"}\\n' "$ZDO_CARRIER_SESSION"
"""


@pytest.fixture
def queue(monkeypatch):
    """A queue that this process lives in, to a target that does not run."""
    with Rig() as rig:
        for name, value in rig.env.items():
            monkeypatch.setenv(name, value)
        yield Queue(rig)


@pytest.fixture(autouse=True)
def _handlers():
    """Signals are heeded after a test as before it."""
    before = {number: signal.getsignal(number) for number in HEEDED}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def one_pass(*, as_object=False, seconds=50.0):
    """The status of one pass."""
    return relaying.relay(None, follow=False, seconds=seconds, as_object=as_object)


def ends_at(number, act=lambda: None):
    """A clock that acts at each sleep and ends us by SIGTERM at the sleep *number*."""
    clock = StoppedClock()

    def at_sleep():
        act()
        if clock.slept == number:
            os.kill(os.getpid(), signal.SIGTERM)

    clock._at_sleep = at_sleep
    return clock


def follow(queue, clock, *, as_object=False):
    """The status of a following relay that lives by *clock*."""
    return relaying._follow(queue.house(clock=clock), 50.0, as_object=as_object)


# -- one pass


def test_a_pass_is_one_line(queue, capsys):
    """Also when there was nothing to do."""
    assert one_pass() == 0
    assert capsys.readouterr() == ("relay: nothing to do\n", "")
    queue.put("a", "b")
    queue.rig.door()

    assert one_pass() == 0
    assert capsys.readouterr() == ("relay: 2 delivered in 1 carrier run\n", "")


def test_a_pass_is_one_object(queue, capsys):
    """With the object of each line that it settled."""
    (delivery,) = queue.put("a")
    queue.rig.door()

    assert one_pass(as_object=True) == 0
    told = capsys.readouterr()
    shown = json.loads(told.out)

    assert (1, "relay", None, 0, 1, 1, 0) == tuple(
        shown[name] for name in ("v", "command", "class", "exit", "runs", "delivered", "left")
    )
    (line,) = shown["lines"]
    assert ("relay", "delivered-start", delivery) == (
        line["command"], line["class"], line["delivery_id"],
    )  # fmt: skip
    assert told.err == ""


def test_the_time_reaches_the_pass(queue, capsys):
    """`--for 0` starts nothing."""
    queue.put("a")
    queue.rig.door()

    assert one_pass(seconds=0.0) == 0
    assert capsys.readouterr().out == "relay: 1 waiting\n"


def test_a_time_that_is_none_is_usage():
    """No pass could ever be over by it."""
    with pytest.raises(Usage, match="--for"):
        one_pass(seconds=float("nan"))


def test_a_relay_from_inside_a_carrier_is_refused(queue, capsys, monkeypatch):
    """K16: it would be many kisses."""
    monkeypatch.setenv("ZDO_CARRIER_DOOR_TARGET", "fable")
    queue.put("a")

    assert one_pass() == 2
    told = capsys.readouterr()
    assert (told.out, True) == ("relay: nothing done\n", told.err.startswith("zdo: nested-kiss: "))


def test_another_relay_at_work_is_no_failure(queue, capsys):
    """It is said, with 0 and the same fields as ever."""
    with alone(queue.house()):
        assert one_pass() == 0
        assert capsys.readouterr() == ("relay: another relay is at work here\n", "")
        assert one_pass(as_object=True) == 0
    shown = json.loads(capsys.readouterr().out)

    assert tuple(Tally().as_json()) == tuple(shown)
    assert "another relay is at work here" == shown["reason"]


def test_what_a_person_must_see_is_on_stderr(queue, capsys):
    """Class, delivery, reason, what to do; the summary stays on stdout."""
    queue.rig.door(accept="drop", eof_after=None)
    (delivery,) = queue.put("a")

    assert one_pass() == 3
    told = capsys.readouterr()

    assert told.out == "relay: 1 open, 1 in doubt in 1 carrier run\n"
    assert told.err.startswith(f"zdo: unknown: delivery {delivery} to fable: the door did not")
    assert told.err.endswith(f"; do not repeat; ask the transcript: zdo verify {delivery}\n")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("break_it", "name", "status"),
    [
        (lambda rig: open(rig.state, "wb").close(), "spool-unwritable", 73),
        (lambda rig: rig.configure("[nonsense]\n"), "config-invalid", 78),
        (lambda rig: rig.configure("[station"), "config-invalid", 78),
    ],
)
def test_a_pass_that_cannot_begin_says_why(queue, capsys, break_it, name, status):
    """And does not claim that there was nothing to do."""
    break_it(queue.rig)

    assert one_pass() == status
    told = capsys.readouterr()
    assert (told.out, True) == ("relay: nothing done\n", told.err.startswith(f"zdo: {name}: "))
    assert one_pass(as_object=True) == status
    shown = json.loads(capsys.readouterr().out)
    assert (name, status, tuple(Tally().as_json())) == (shown["class"], shown["exit"], tuple(shown))


def test_ctrl_c_while_a_carrier_runs_is_130(queue, capsys):
    """The carrier is ended, its lines wait again, no other run is started."""
    queue.rig.door()
    shell_claude(queue.rig, SIGNALLER % ("INT", 30))
    deliveries = queue.put("a", "b")

    assert one_pass() == 130
    told = capsys.readouterr()

    assert told.out == "relay: 2 put off, 2 waiting in 1 carrier run\n"
    assert told.err.startswith("zdo: interrupted: stopped by Ctrl-C; the door was not touched; ")
    assert ["queued"] * 2 == queue.states(*deliveries)


def test_ctrl_c_elsewhere_keeps_the_count(queue):
    """What was done before stays told."""
    queue.rig.door()
    queue.put("a")
    tally = Tally()

    def told(so_far):
        if so_far.delivered:
            raise KeyboardInterrupt

    assert relaying._pass(queue.house(), 50.0, tally, told) is None
    assert (1, "interrupted", 130) == (tally.delivered, tally.verdict.name, tally.verdict.exit)


# -- staying


def test_a_follower_ends_with_0_when_it_is_told_to(queue, capsys):
    """SIGTERM, SIGINT and SIGHUP alike; a pass that did nothing is not said."""
    for number in HEEDED:
        clock = StoppedClock(lambda number=number: os.kill(os.getpid(), number))
        assert follow(queue, clock) == 0
        assert clock.slept == 1
    assert capsys.readouterr() == ("", "")


def test_a_signal_that_is_ignored_stays_ignored(queue):
    """As nohup and `&` wish it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    follow(queue, ends_at(1))

    assert signal.SIG_IGN == signal.getsignal(signal.SIGHUP)
    assert callable(signal.getsignal(signal.SIGINT))


def test_a_follower_looks_no_oftener_than_once_a_second(queue):
    """And has a whole pass only every 10 s, as long as nothing changes."""
    passes = []
    clock = queue.clock = ends_at(60)
    queue.relay()
    house = queue.house(clock=clock, draw=lambda: passes.append(clock.at) or 0.5)

    began = clock.at
    assert relaying._follow(house, 50.0, as_object=False) == 0

    assert 60 == clock.at - began
    assert [0, 10, 20, 30, 40, 50] == [round(at - began) for at in passes]


def test_a_follower_wakes_on_a_new_line(queue, capsys):
    """At the next look; what it did is said, once."""
    clock = ends_at(5, lambda: clock.slept == 2 and queue.put("a"))

    assert follow(queue, clock) == 0
    assert capsys.readouterr().out == "relay: 1 put off, 1 waiting\n"
    assert (5, 1) == (clock.slept, len(queue.listed()))


def test_a_follower_speaks_json_too(queue, capsys):
    """One object for each pass that did something."""
    queue.put("a")

    assert follow(queue, ends_at(1), as_object=True) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert (1, 1) == (json.loads(line)["deferred"], json.loads(line)["left"])


def test_a_follower_that_cannot_go_on_says_why(queue, capsys):
    """A configuration that went bad: its class and exit, not silence."""
    clock = queue.clock = ends_at(99, lambda: queue.rig.configure("[nonsense]\n"))
    queue.put("a")
    queue.relay()

    assert follow(queue, clock) == 78
    told = capsys.readouterr()
    assert (10, "relay: nothing done\n") == (clock.slept, told.out)
    assert told.err.startswith("zdo: config-invalid: ")


def test_a_follower_is_alone_too(queue, capsys):
    """With another at work it says so and ends."""
    with alone(queue.house()):
        assert relaying.relay(None, follow=True, seconds=50.0, as_object=False) == 0
    assert capsys.readouterr().out == "relay: another relay is at work here\n"


def test_a_follower_that_is_ended_finishes_the_run_and_starts_no_other(queue, capsys):
    """SIGTERM while a carrier runs: that one's lines are delivered, the next postbox waits."""
    queue.rig.configure(CONFIG)
    doors = queue.rig.door(), queue.rig.door(name="other", session_id=OTHER)
    shell_claude(queue.rig, SIGNALLER % ("TERM", 0))
    queue.put("a")
    queue.put("b", to="other")

    assert relaying.relay(None, follow=True, seconds=50.0, as_object=False) == 0

    assert capsys.readouterr() == ("relay: 1 delivered, 1 waiting in 1 carrier run\n", "")
    assert [["a"], []] == [door.lines() for door in doors]


@pytest.mark.parametrize(
    ("due_in", "sleeps"), [(None, 10), (3.2, 4), (-5.0, 1), (0.0, 1), (600.0, 10)]
)
def test_it_is_time_when_a_line_is_due(queue, due_in, sleeps):
    """Or after 10 s, for a target may have appeared."""
    clock = StoppedClock()
    (delivery,) = queue.put("a")
    due_at = None if due_in is None else clock.at + due_in
    plan = Plan((), (Halt(queue.line(delivery), asked(), due_at),))
    house = queue.house(clock=clock)

    relaying._wait(house, relaying._stamp(house), plan, [])

    assert sleeps == clock.slept


def test_it_is_time_when_the_spool_changes(queue):
    """Also when it is made for the first time, or goes."""
    clock = StoppedClock(lambda: clock.slept == 2 and queue.put("a"))
    house = queue.house(clock=clock)
    assert relaying._stamp(house) is None

    relaying._wait(house, None, Plan((), ()), [])
    assert 2 == clock.slept


def test_somebody_who_ends_it_is_not_kept_waiting(queue):
    """Not even for one look."""
    clock = StoppedClock()
    relaying._wait(queue.house(clock=clock), None, Plan((), ()), [signal.SIGTERM])

    assert 0 == clock.slept


# -- the bar


@contextlib.contextmanager
def terminal():
    """A terminal as stderr; what is read from the file that it yields is on its screen."""
    ours, theirs = pty.openpty()
    stderr = sys.stderr
    with open(ours, "rb", buffering=0) as screen, open(theirs, "w", encoding="utf-8") as tty:
        sys.stderr = tty
        try:
            yield screen
        finally:
            sys.stderr = stderr


def test_a_terminal_has_a_bar(queue, monkeypatch):
    """Drawn without a thread: a keeper is forked while it stands there."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("TTY_COMPATIBLE", "TTY_INTERACTIVE", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    tally = Tally()
    tally.results, tally.left = [asked()], 2
    with terminal() as screen, relaying._bar() as told:
        assert 1 == threading.active_count()
        told(tally)
        shown = ""
        while "1 of 3" not in shown:
            assert select.select([screen], [], [], 5)[0], shown
            shown += os.read(screen.fileno(), 4096).decode()

    assert "None" not in shown
    assert queue.listed() == []


def test_a_pipe_has_none(capsys):
    """Nothing but the summary is said there."""
    with relaying._bar() as told:
        told(Tally())

    assert ("", "") == capsys.readouterr()
