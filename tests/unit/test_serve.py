"""One postbox, one run, many lines; and what is wrong with one postbox stays there."""

from __future__ import annotations

import os

import pytest

from dispatch import shelf
from dispatch.kept import FIRST
from dispatch.rig.registry import FakeRegistry
from dispatch.rig.rig import Rig
from dispatch.verify import verify
from tests.acceptance.saying import lease
from tests.fakes.envelopes import P
from tests.fakes.evidence import OTHER
from tests.fakes.queues import CONFIG, Queue


@pytest.fixture
def queue():
    """A queue with two targets that run, each with a postbox of its own."""
    with Rig() as rig:
        rig.configure(CONFIG)
        queue = Queue(rig)
        queue.fable, queue.other = rig.door(), rig.door(name="other", session_id=OTHER)
        yield queue


def both(queue):
    """The deliveries of one line to each target."""
    return (*queue.put("a"), *queue.put("b", to="other"))


def test_all_lines_of_a_postbox_go_in_one_run(queue):
    """In their order, with one knock, each with a verdict of its own; no folder is left."""
    deliveries = queue.put(*(f"line {n}" for n in range(10)))

    tally = queue.relay()

    assert (10, 1) == (tally.delivered, tally.runs)
    assert [f"line {n}" for n in range(10)] == queue.fable.lines()
    assert deliveries == [each.delivery_id for each in tally.results]
    assert [] == os.listdir(f"{queue.rig.state}/attempts")
    (run,) = queue.rig.runs()
    assert f"zdo knock {deliveries[0]}" == run["argv"][-1]


def test_a_leased_postbox_stops_no_other(queue):
    """The other one is served first; then the leased one is waited for, as the time allows."""
    a, b = both(queue)
    with lease(queue.rig):
        tally = queue.relay(seconds=2)

    assert (1, 1, None) == (tally.delivered, tally.left, tally.trouble)
    assert ["queued", "delivered"] == queue.states(a, b)
    assert 1 == queue.relay().delivered


def test_a_postbox_that_runs_stops_no_other(queue):
    """Somebody drives it: that is said as carrier-live, the rest is delivered."""
    a, b = both(queue)
    stranger = FakeRegistry(f"{queue.rig.root}/else")
    stranger.sessions = f"{queue.rig.claude_dir}/sessions"
    stranger.add(sessionId=P, name="postbox")

    tally = queue.relay()
    stranger.close()

    assert (1, 1, "carrier-live", 2) == (
        tally.delivered, tally.left, tally.verdict.name, tally.verdict.exit,
    )  # fmt: skip
    assert ["queued", "delivered"] == queue.states(a, b)


def test_a_carrier_that_hangs_stops_no_other(queue):
    """It is ended at its deadline; its line waits for its next try, the other is delivered."""
    queue.rig.configure(CONFIG.replace("timeout_s = 20", "timeout_s = 1"))
    queue.rig.install_claude(before_s=30)
    (a,) = queue.put("a")
    first = queue.relay()
    queue.rig.install_claude()
    (b,) = queue.put("b", to="other")

    second = queue.relay()

    assert ("carrier-timeout", 1, None) == (
        first.results[0].verdict.name, first.deferred, first.trouble,
    )  # fmt: skip
    assert (["queued", "delivered"], 1, 1) == (queue.states(a, b), second.delivered, second.left)


def test_an_odd_lock_file_stops_no_other(queue):
    """It is told as what it is, and nothing goes through that postbox."""
    a, b = both(queue)
    os.symlink("/nowhere", f"{queue.rig.state}/locks/{P}.lock")

    tally = queue.relay()

    assert ("spool-unwritable", 1) == (tally.verdict.name, tally.delivered)
    assert ["queued", "delivered"] == queue.states(a, b)


def test_a_claude_that_is_not_there_is_named(queue):
    """It stops every line alike, so the pass says it; the lines wait."""
    os.unlink(queue.rig.claude)
    a, b = both(queue)

    tally = queue.relay()

    assert ("carrier-spawn", 69, 2) == (tally.verdict.name, tally.verdict.exit, tally.deferred)
    assert "claude" in tally.trouble[1]
    assert ["queued"] * 2 == queue.states(a, b)


def test_a_line_that_fails_waits_with_growing_patience(queue):
    """Full jitter: half of 5 s, of 10 s, of 20 s with a draw of a half; not before."""
    queue.rig.install_claude(hook="none", outcome="empty-failed")
    (delivery,) = queue.put("a")
    waits = []
    for _ in range(3):
        assert 1 == queue.relay().deferred
        line = queue.line(delivery)
        waits.append(line.due_at - queue.clock.now())
        assert 0 == queue.relay().runs
        # What never got to its door is no duplicate, so the back-off is all of the wait.
        queue.later(waits[-1] + 0.1)

    assert [2.5, 5.0, 10.0] == pytest.approx(waits, abs=0.5)
    assert (FIRST + 3, FIRST + 3) == (line.attempts, line.tries)


@pytest.mark.parametrize(
    ("script", "behaviour", "gone"),
    [
        ({}, {}, 1),
        ({"accept": "dropped"}, {}, 1),
        ({}, {"hook": "none", "outcome": "empty-failed"}, 0),
        ({}, {"hook": "none"}, 0),
    ],
)
def test_only_what_got_to_a_door_fills_its_minute(queue, script, behaviour, gone):
    """Delivered or dropped there; not a line whose carrier failed before it."""
    queue.rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 1"))
    queue.fable.change(**script)
    queue.rig.install_claude(**behaviour)
    queue.put("a")
    queue.relay()

    with queue.database() as database, database.reading() as link:
        assert (gone,) == link.execute("SELECT count(*) FROM sent").fetchone()


def test_after_24_tries_a_line_is_a_dead_letter(queue):
    """With the class of its last try, its exit, and its reason kept."""
    queue.rig.install_claude(hook="none", outcome="empty-failed")
    (delivery,) = queue.put("a")
    queue.change("UPDATE line SET tries = 122")
    assert (0, 1) == (queue.relay().dead, queue.listed()[0]["attempts"])
    queue.later(900)

    tally = queue.relay()

    assert (1, "carrier-exit", 76) == (tally.dead, tally.verdict.name, tally.verdict.exit)
    (shown,) = queue.listed(dead=True)
    assert (delivery, "dead", "carrier-exit", 2) == (
        shown["delivery_id"], shown["state"], shown["class"], shown["attempts"],
    )  # fmt: skip
    assert shown["reason"] is not None


@pytest.mark.parametrize(
    ("script", "name", "status", "state"),
    [
        ({"accept": "refuse"}, "door-refused", 77, "dead"),
        ({"accept": "hold", "hold_then": "denied", "hold_after": 0.0}, "door-denied", 77, "dead"),
        ({"accept": "hold"}, "door-held", 3, "uncertain"),
        ({"accept": "drop", "eof_after": None}, "unknown", 3, "uncertain"),
    ],
)
def test_a_verdict_that_a_person_must_see_is_the_exit(queue, script, name, status, state):
    """Refused and denied lines are dead, held and unknown ones in doubt; the exit says it."""
    queue.rig.configure(CONFIG.replace("settle_s = 0.05", "settle_s = 1"))
    queue.fable.change(**script)
    a, b = both(queue)

    tally = queue.relay()

    assert (name, status) == (tally.verdict.name, tally.verdict.exit)
    assert [state, "delivered"] == queue.states(a, b)
    assert tally.trouble[1].startswith(f"delivery {a} to fable: ")


def test_a_doubt_holds_back_the_lines_behind_it(queue):
    """And no other target's."""
    queue.fable.change(accept="drop", eof_after=None)
    a, b = both(queue)
    queue.relay()
    (behind,) = queue.put("c")
    queue.fable.change(accept="surface", eof_after=0.0)

    tally = queue.relay()

    assert (0, 1) == (tally.runs, tally.left)
    assert ["uncertain", "delivered", "queued"] == queue.states(a, b, behind)


def test_a_folder_that_the_journal_does_not_know_is_a_doubt(queue):
    """Of the same or of a later attempt; the other lines are delivered in the same pass."""
    a, c = queue.put("a", "c")
    (b,) = queue.put("b", to="other")
    for delivery, number in ((a, 1), (b, 7)):
        folder = f"{queue.rig.state}/attempts/{delivery}.{number}"
        os.mkdir(folder, 0o700)
        with open(f"{folder}/intent", "wb"):
            pass

    tally = queue.relay()

    assert (2, "unknown", 3) == (tally.open, tally.verdict.name, tally.verdict.exit)
    assert ["uncertain", "uncertain", "queued"] == queue.states(a, b, c)
    assert "left from an attempt that the journal does not know" in tally.trouble[1]
    assert "unknown" == verify(a, queue.house()).verdict.name
    with queue.database() as database:
        for delivery in (a, b):
            shelf.requeue(database, queue.house(), delivery, looked=True)
    assert (3, ["delivered"] * 3) == (queue.relay().delivered, queue.states(a, b, c))


def test_a_line_that_is_not_what_was_accepted_goes_nowhere(queue):
    """A flipped letter in a row: dead as damaged, told, and the rest is delivered."""
    a, b = queue.put("a", "b")
    queue.change("UPDATE line SET body = x'78' WHERE key = ?", a)

    tally = queue.relay()

    assert (1, 1, "spool-unwritable", 73) == (
        tally.dead, tally.delivered, tally.verdict.name, tally.verdict.exit,
    )  # fmt: skip
    assert "damaged; zdo fsck" in tally.trouble[1]
    assert ["dead", "delivered"] == queue.states(a, b)
    assert ["b"] == queue.fable.lines()


def test_a_line_that_somebody_else_took_is_left(queue):
    """ClaimLost: nothing is started for it, nothing is left of its folder, the pass goes on."""
    a, b = both(queue)
    queue.change(
        "CREATE TRIGGER thief BEFORE UPDATE OF owner ON line WHEN old.target = 'fable'"
        " AND new.state = 11 BEGIN SELECT raise(IGNORE); END"
    )

    tally = queue.relay()

    assert (1, 1, None) == (tally.delivered, tally.runs, tally.trouble)
    assert ["queued", "delivered"] == queue.states(a, b)
    assert [] == os.listdir(f"{queue.rig.state}/attempts")
