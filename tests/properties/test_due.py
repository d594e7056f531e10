"""Order, pace and patience under every clock: it may jump by a second or by years."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch import due, kept, outcome, pace, pulse, spool
from dispatch.database import Database
from dispatch.outcome import SCHEDULE, Patience
from dispatch.verdict import TABLE
from registry.ids import new_uuid
from registry.targets import Target
from tests.fakes.envelopes import P, T
from tests.fakes.evidence import a_config, a_listing, a_row
from tests.fakes.household import asked, key_of
from tests.fakes.scenes import a_scene

BEGAN = 1_796_048_000.25
YEAR_S = 365 * 86_400.0
CONFIG = a_config(Target("fable", "session", T, None))
ROWS = a_listing(a_row())

SECONDS = st.sampled_from([0.0, 1.0, 10.0, 31.0, 60.0, 299.5, 900.0, 3600.0, 86_400.0])
# ±1 day, ±1 year, an hour of DST, 1970, 2038.
JUMPS = st.sampled_from(
    [-1.0, 1.0, -3600.0, 3600.0, -86_400.0, 86_400.0, -YEAR_S, YEAR_S, 60.0 - BEGAN, 2**31 - BEGAN]
)
STEPS = st.lists(
    st.tuples(st.just("passes"), SECONDS) | st.tuples(st.just("jumps"), JUMPS), max_size=25
)


class Queue:
    """A spool on a clock that somebody sets; *true* time only passes."""

    def __init__(self, folder):
        self.database = Database(f"{folder}/zdo.db")
        with self.database.reading() as link:
            link.execute("PRAGMA synchronous=OFF")  # nobody cuts the power here
        self.true, self.offset, self.jumps = 0.0, BEGAN, 0

    @property
    def now(self):
        """What the clock says."""
        return self.true + self.offset

    def step(self, kind, seconds):
        """Time passes, or the clock is set."""
        if kind == "passes":
            self.true += seconds
        else:
            self.offset += seconds
            self.jumps += 1

    def put(self, number, text):
        """One more line waits."""
        body = text.encode()
        digest = hashlib.sha256(body).digest()
        draft = spool.Draft(key_of(number), digest, body, "fable", "o", P)
        with self.database.writing() as link:
            spool.enqueue(link, draft, self.now, pulse.watched(link))

    def beat(self):
        """A relay notes that it watches."""
        with self.database.writing() as link:
            if pulse.is_due(link, self.now):
                pulse.beat(link, self.now)

    def ready(self):
        """The lines that may go now."""
        with self.database.reading() as link:
            return [each.line for each in due.plan(link, a_scene(CONFIG, ROWS), self.now).ready]

    def carry(self, lines, name, draw=0.999):
        """A run with *lines* that came to the class *name*; in two commits, as a relay's."""
        owner = new_uuid()
        with self.database.writing() as link:
            spool.claim(link, lines, owner, P, self.now)
            pace.note(link, T, lines, self.now)
        result = asked(verdict=TABLE[name])
        with self.database.writing() as link:
            patience = Patience(self.now, draw, pulse.watched(link))
            for line in lines:
                tries = line.tries + 1 - kept.FIRST
                becomes = outcome.of_kept(result, line, tries, patience)
                spool.settle(link, line.key, owner, becomes, self.now)

    def lines(self):
        """All of them."""
        with self.database.reading() as link:
            return kept.select(link, "ORDER BY id", ())


@contextlib.contextmanager
def a_queue():
    """A queue of its own, closed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        queue = Queue(folder)
        try:
            yield queue
        finally:
            queue.database.close()


@settings(max_examples=60, deadline=None)
@given(STEPS, st.floats(0, 0.999))
def test_no_jump_keeps_a_line_longer_than_the_longest_wait_nor_gives_it_up_early(steps, draw):
    """P10: always failing, it is tried until its tries or its true time are over, and no longer."""
    with a_queue() as queue:
        queue.put(1, "tests are green")
        tried = 0
        for kind, seconds in steps:
            queue.step(kind, seconds)
            queue.beat()
            if lines := queue.ready():
                queue.carry(lines, "carrier-exit", draw)
                tried += 1
            (line,) = queue.lines()
            assert tried == line.tries - kept.FIRST
            if line.state == kept.DEAD:
                # Each jump, and each silence, counts as one step of the relay's own time.
                watched = queue.true + (queue.jumps + 1) * pulse.LONGEST_STEP_S
                assert tried >= SCHEDULE.tries or watched >= SCHEDULE.lifetime_s
                return
        queue.step("passes", max(SCHEDULE.longest_s, pace.SAME_TEXT_S) + 0.5)
        assert ["tests are green"] == [line.body.decode() for line in queue.ready()]


TEXTS = st.lists(st.sampled_from("abcdefghij"), max_size=3)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.integers(0, 70), TEXTS)
def test_the_pace_is_kept_and_the_order_too_between_any_two_jumps(steps, count, again):
    """30 in a minute, no text twice in 31 s, each after all before it; and all go in the end."""
    with a_queue() as queue:
        texts = [*again, *(f"line {number}" for number in range(count)), *again]
        for number, text in enumerate(texts):
            queue.put(number, text)
        gone = []  # (jumps so far, true time, text)
        ends = [*steps, *([("passes", 61.0)] * (len(texts) // 30 + 8))]
        for kind, seconds in ends:
            queue.step(kind, seconds)
            lines = queue.ready()
            if lines:
                queue.carry(lines, "delivered-start")
            gone += [(queue.jumps, queue.true, line.body.decode()) for line in lines]

    assert texts == [text for _, _, text in gone]
    for jumps, at, text in gone:
        same_clock = [each for each in gone if each[0] == jumps]
        assert sum(at - 60 < when <= at for _, when, _ in same_clock) <= 30
        assert 1 == sum(at - 31 < when <= at and said == text for _, when, said in same_clock)
