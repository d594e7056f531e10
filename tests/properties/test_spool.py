"""Lines under every order of kisses, passes, looks, hands and crashes.

Kiss and relay are the real ones; only the carrier run is not: it does at the door what
the example says, and the evidence that it leaves is real.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from carrier import attempt as attempts
from carrier.late import leave_late
from carrier.proof import INTENT, leave_receipt, take
from carrier.report import parse_report
from dispatch import kept, outcome, post, rounds, shelf
from dispatch.errand import Order
from dispatch.errors import DispatchError, LineInDoubt
from dispatch.kiss import kiss
from dispatch.relay import relay
from dispatch.tally import Tally
from dispatch.verdict import OPEN, QUEUE
from dispatch.verify import verify
from registry.processes import Processes
from registry.record import replace
from tests.fakes.envelopes import P, receipt_for
from tests.fakes.evidence import StoppedClock, a_run, told
from tests.fakes.household import Household, key_of

KEYS = tuple(key_of(number) for number in range(1, 4))
SAID = b'{"type":"result","session_id":"%s","num_turns":0}' % P.encode()

# What happens at the door, for each line of a run in turn.
NOTHING = "nothing"  # the wrapper never came: the permit stands
GONE = "gone"  # it took the permit, and wrote nothing
SILENT = "silent"  # it took the permit and died: perhaps written
HELD, DROPPED, WRITTEN, SURFACED = "held", "dropped", "written", "surfaced"
AT_THE_DOOR = st.sampled_from(
    [WRITTEN, SILENT, HELD, NOTHING, GONE, DROPPED, SURFACED, SILENT, HELD, WRITTEN]
)
NOT_IN = (GONE, DROPPED, "denied")  # provably, whatever comes

CRASHES = st.sampled_from([None] * 6 + ["laid out", "claimed", "ran", "ran, no end"])


class Crash(BaseException):
    """The dispatcher is killed here."""


class Mortal(Processes):
    """A machine on which processes end when the example says so."""

    def __init__(self):
        super().__init__()
        self.ended = set()

    def start_token(self, pid):
        """As it is, but for the ended."""
        return None if pid in self.ended else super().start_token(pid)


class Take:
    """One permit that was taken, and what is true of its line since."""

    def __init__(self, number, what, pid):
        self.number, self.what, self.pid = number, what, pid
        self.looked = False  # a person has said that it did not arrive

    @property
    def is_resolved(self):
        """Whether the line is known not to be in by this one."""
        return self.what in NOT_IN or self.looked


class World(RuleBasedStateMachine):
    """Several processes, a target, a person; the model knows what went through the door."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Household(Path(self.folder.name))
        self.processes, self.clock = Mortal(), StoppedClock()
        self.transcript = self.home.transcript()
        self.takes = {key: [] for key in KEYS}
        self.in_for_good = set()  # keys that were seen delivered
        self.accepted = set()  # keys whose line was acknowledged
        self.plan, self.crash = [], None
        self.start_target()
        self.real = rounds.attempt, post.lay_out
        rounds.attempt, post.lay_out = self.carry, self.lay_out

    def teardown(self):
        """Leave nothing behind."""
        rounds.attempt, post.lay_out = self.real
        self.home.registry.close()
        self.folder.cleanup()

    # The world.

    def start_target(self):
        """The target runs, as a process of its own."""
        self.pid = self.home.registry.sleeper()
        self.home.runs(pid=self.pid)

    def house(self):
        """The ports of every process."""
        return self.home.house(clock=self.clock, processes=self.processes)

    def lay_out(self, order, letters):
        """As ever; and then the dispatcher may be killed."""
        self.real[1](order, letters)
        self.crash_at("laid out")

    def crash_at(self, place):
        """Killed here, if the example says so."""
        if self.crash == place:
            self.crash = None
            raise Crash

    def carry(self, order, envelopes, _):
        """The evidence of a carrier run that did what the example says."""
        self.crash_at("claimed")
        run, stopped = a_run(stdout=SAID), False
        for folder, envelope in zip(order.folders, envelopes, strict=True):
            what = NOTHING if stopped else self.plan.pop(0) if self.plan else WRITTEN
            # What comes behind a line that did not get in does not go in this run.
            stopped = what in (NOTHING, GONE, SILENT)
            self.at_the_door(folder, envelope, what, len(order.folders) > 1)
        if self.crash != "ran, no end":
            Path(f"{order.lead}/run.json").write_text(
                '{"exit": 0, "timed_out": false, "spawn_error": null, "wall_ms": 1,'
                ' "interrupted": false}',
                encoding="ascii",
            )
            Path(f"{order.lead}/stdout").write_bytes(SAID)
        self.crash_at("ran")
        self.crash_at("ran, no end")
        return attempts._gather(envelopes, run, order.folders, parse_report(SAID))

    def at_the_door(self, folder, envelope, what, in_a_round):
        """One line's turn."""
        if what == NOTHING:
            return
        key = envelope.delivery_id
        assert all(each.is_resolved for each in self.takes[key]), "it may be in already"
        if in_a_round:
            self.check_order(key)
        assert take(folder) == envelope
        os.utime(f"{folder}/{INTENT}", (self.clock.at, self.clock.at))
        self.takes[key].append(Take(envelope.attempt, what, self.pid))
        if what == SILENT:
            return
        leave_receipt(
            folder,
            receipt_for(
                envelope,
                pid=self.pid,
                transcript=self.transcript.path,
                offset=self.transcript.size,
                wrote=what != GONE,
                eof=what != GONE,
                found="target-not-running" if what == GONE else None,
                notices=told(what) if what in (HELD, DROPPED) else (),
            ),
        )
        if what == SURFACED:
            self.transcript.surface(key)

    def check_order(self, key):
        """Nothing that came before it still waits to go."""
        own = self.home.line(key)
        for other in KEYS:
            line = self.home.line(other)
            if line is not None and line.id < own.id:
                assert line.state not in (kept.QUEUED, kept.UNCERTAIN), "it was overtaken"

    def act(self, what, plan=(), crash=None):
        """What came of *what*, done by a process that the example may kill."""
        self.plan, self.crash = list(plan), crash
        try:
            with contextlib.suppress(Crash):
                return what()
            return None
        finally:
            self.plan, self.crash = [], None

    # What processes do.

    @initialize()
    def some_lines_wait(self):
        """A queue, and not only a spool."""
        for key in KEYS[:2]:
            self.kiss(key, {"queue": True}, [], None)

    @rule(
        key=st.sampled_from(KEYS),
        way=st.sampled_from([{}, {"queue": True}, {"or_queue": True}]),
        plan=st.lists(AT_THE_DOOR, min_size=1, max_size=1),
        crash=CRASHES,
    )
    def kiss(self, key, way, plan, crash):
        """Somebody says a line, or says it again."""
        order = Order("fable", f"line {key}".encode, "me", key=key, lock_timeout_s=0, **way)
        result = self.act(lambda: kiss(order, self.house()), plan, crash)
        if result is None:
            return
        if result.verdict.exit == 0:
            self.accepted.add(key)
        if result.verdict.fate == QUEUE and result.verdict.name != "queued":
            self.is_safe(key)

    @rule(plan=st.lists(AT_THE_DOOR, min_size=1, max_size=3), crash=CRASHES)
    def relay(self, plan, crash):
        """A pass over what is due."""
        self.act(lambda: relay(self.house(), 1000.0, Tally(), lambda _: None), plan, crash)

    @rule(key=st.sampled_from(KEYS))
    def look(self, key):
        """Somebody asks what became of a line."""
        with contextlib.suppress(DispatchError):
            result = verify(key, self.house())
            if result.verdict.fate == QUEUE and result.verdict.name != "queued":
                self.is_safe(key)

    @rule(key=st.sampled_from(KEYS), looked=st.booleans())
    def requeue(self, key, looked):
        """A person wants the line to be tried again."""
        before = self.home.line(key)
        try:
            with self.home.opened() as database:
                shelf.requeue(database, self.house(), key, looked=looked)
        except LineInDoubt:
            assert not looked
            return
        except DispatchError:
            return
        if before.state == kept.UNCERTAIN:
            assert looked
        for each in self.takes[key]:
            # Refused or in doubt: whoever queues it again answers for it.
            each.looked = True

    @rule(key=st.sampled_from(KEYS))
    def drop(self, key):
        """A person gives the line up."""
        with contextlib.suppress(DispatchError), self.home.opened() as database:
            shelf.drop(database, self.house(), key)

    # What the world does.

    @rule(seconds=st.sampled_from([1.0, 20.0, 60.0, 1000.0, 90_000.0, -3600.0, 3e7, -3e7]))
    def time_passes(self, seconds):
        """Or the clock is set."""
        self.clock.at += seconds

    @rule(restart=st.booleans())
    def target_ends(self, restart):
        """What it held, and what it had not taken in, goes with it."""
        self.processes.ended.add(self.pid)
        if restart:
            self.start_target()

    def pending(self):
        """Every take whose target lives and has not answered."""
        return [
            (key, each)
            for key in KEYS
            for each in self.takes[key]
            if each.pid not in self.processes.ended and each.what in (SILENT, HELD, WRITTEN)
        ]

    @precondition(lambda self: self.pending())
    @rule(data=st.data())
    def surfaces(self, data):
        """The model's input holds the line now."""
        key, each = data.draw(st.sampled_from(self.pending()))
        each.what = SURFACED
        self.transcript.surface(key)

    @precondition(lambda self: any(each.what == HELD for _, each in self.pending()))
    @rule(data=st.data(), what=st.sampled_from(["denied", DROPPED]))
    def is_answered(self, data, what):
        """A held line is turned away."""
        held = [(key, each) for key, each in self.pending() if each.what == HELD]
        key, each = data.draw(st.sampled_from(held))
        each.what = what
        with contextlib.suppress(OSError):
            leave_late(self.home.folder(each.number, key), told(HELD, what))

    # What must hold.

    def is_safe(self, key):
        """Nobody has it, and nothing is still on its way there."""
        assert all(each.is_resolved for each in self.takes[key]), "it may be in"

    @invariant()
    def a_line_that_may_be_tried_is_not_in(self):
        """Queued, or free for its key: no unresolved attempt is at the door or was."""
        for key in KEYS:
            line = self.home.line(key)
            if line is not None and (line.state == kept.QUEUED or line.may_be_tried):
                self.is_safe(key)

    @invariant()
    def at_most_one_attempt_of_a_line_is_open(self):
        """One permit whose outcome is not known, at a time."""
        for key in KEYS:
            assert sum(not each.is_resolved for each in self.takes[key]) <= 1

    @invariant()
    def a_delivery_stays_one(self):
        """It goes nowhere from there, and least of all back into the queue."""
        for key in KEYS:
            line = self.home.line(key)
            delivered = line is not None and line.state in (kept.SENT, kept.DELIVERED)
            assert delivered or key not in self.in_for_good
            if delivered:
                self.in_for_good.add(key)

    @invariant()
    def an_acknowledged_line_is_kept_as_it_was(self):
        """Whatever is killed: its row is there, and its bytes are what was said."""
        for key in self.accepted:
            line = self.home.line(key)
            assert line is not None
            assert line.is_whole or line.body == b""

    @invariant()
    def a_claimed_line_has_its_folder(self):
        """So that whoever comes next can judge it."""
        for key in KEYS:
            line = self.home.line(key)
            if line is not None and line.state == kept.CLAIMED:
                assert os.path.isdir(self.home.folder(line.attempts - kept.FIRST, key))


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)


def test_a_blind_retry_would_be_caught():
    """The control: where a doubt may be tried again, the machine finds the second attempt."""
    careful = outcome.of

    def blind(result):
        becomes = careful(result)
        return (
            replace(becomes, state=kept.DEAD, status=kept.AGAIN)
            if result.verdict.fate == OPEN
            else becomes
        )

    outcome.of = blind
    few = settings(TestWorld.settings, phases=[Phase.generate], max_examples=50, database=None)
    try:
        with pytest.raises(AssertionError, match="it may be in"):
            run_state_machine_as_test(World, settings=few)
    finally:
        outcome.of = careful
