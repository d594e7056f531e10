"""One pass: what is due is carried, what waits is noted, and the pass has an end."""

from __future__ import annotations

import os
import signal

import pytest

from dispatch import relay as relaying
from dispatch.errors import DatabaseUnusable
from dispatch.relay import RelayBusy, alone
from dispatch.rig.rig import Rig
from dispatch.rig.script import T
from dispatch.tally import Tally
from registry.errors import StateUnsafe
from tests.fakes.evidence import OTHER
from tests.fakes.queues import CONFIG, DAY_S, Queue
from tests.fakes.runs import in_child, status_of


@pytest.fixture
def queue():
    """An empty queue with two targets, each with a postbox of its own."""
    with Rig() as rig:
        rig.configure(CONFIG)
        yield Queue(rig)


def journal(queue, delivery):
    """Kind and class of every entry about *delivery*."""
    with queue.database() as database, database.reading() as link:
        asked = "SELECT kind, class FROM event WHERE delivery = ? ORDER BY id"
        return link.execute(asked, (delivery,)).fetchall()


def test_a_pass_carries_everything_that_is_due(queue):
    """Two targets, two postboxes, three lines: all delivered, one run for each postbox."""
    one, other = queue.rig.door(), queue.rig.door(name="other", session_id=OTHER)
    first = queue.put("a", "b")
    second = queue.put("c", to="other")

    tally = queue.relay()

    assert (3, 2, 0, None) == (tally.delivered, tally.runs, tally.left, tally.trouble)
    assert (["a", "b"], ["c"]) == (one.lines(), other.lines())
    assert ["delivered"] * 3 == queue.states(*first, *second)


def test_a_pass_over_nothing_does_nothing(queue):
    """Not even a write: an idle machine's disk stays asleep."""
    queue.relay()
    queue.relay()
    before = os.stat(f"{queue.rig.state}/zdo.db")

    tally = queue.relay()

    after = os.stat(f"{queue.rig.state}/zdo.db")
    assert ("relay: nothing to do", 0) == (tally.line(), tally.verdict.exit)
    assert before.st_mtime_ns == after.st_mtime_ns


def test_a_target_that_does_not_run_is_noted_once(queue):
    """The first pass says why the line waits, later ones write nothing about it."""
    (delivery,) = queue.put("a")

    first, second = queue.relay(), queue.relay()

    assert (1, 1, None) == (first.deferred, first.left, first.trouble)
    assert (0, 1, []) == (second.deferred, second.left, second.results)
    assert [("queued", "queued"), ("deferred", "target-not-running")] == journal(queue, delivery)


def test_a_target_that_appears_is_served_whatever_its_back_off_says(queue):
    """INTERFACE 7, queue: by the very next pass."""
    queue.put("a")
    queue.relay()
    door = queue.rig.door()

    assert (1, ["a"]) == (queue.relay().delivered, door.lines())


def test_a_pass_that_finds_the_same_counts_the_time_it_watched(queue):
    """A minute of watching is written down, and a jump of a year counts as a quarter of an hour."""
    queue.put("a")
    watched = []
    for step in (0, 60, 365 * DAY_S):
        queue.later(step)
        queue.relay()
        with queue.database() as database, database.reading() as link:
            watched.append(link.execute("SELECT watched FROM pulse").fetchone()[0])

    assert 60 == pytest.approx(watched[1] - watched[0], abs=5)
    assert 900 == pytest.approx(watched[2] - watched[1])


def test_five_watched_days_are_a_lines_patience(queue):
    """Then it is a dead letter, told by the pass, with its reason; those behind it follow."""
    deliveries = queue.put("a", "b", "c")
    queue.relay()
    # The first pass of all has counted a quarter of an hour.
    queue.change("UPDATE pulse SET watched = watched + 431050")
    assert 0 == queue.relay().dead
    queue.later(61)

    tally = queue.relay()

    assert (3, 0, 69) == (tally.dead, tally.left, tally.verdict.exit)
    assert ["dead"] * 3 == queue.states(*deliveries)
    assert tally.trouble[1].startswith(f"delivery {deliveries[0]} to fable: given up after 5 days")
    assert ("judged", "target-not-running") == journal(queue, deliveries[2])[-1]
    assert deliveries == [each["delivery_id"] for each in queue.listed(dead=True)]


def test_a_clock_that_jumps_expires_nothing(queue):
    """P10: forward by a year and back again, the line waits as it did."""
    (delivery,) = queue.put("a")
    for step in (365 * DAY_S, -730 * DAY_S, 365 * DAY_S):
        queue.later(step)
        assert 0 == queue.relay().dead

    assert ["queued"] == queue.states(delivery)
    queue.rig.door()
    assert 1 == queue.relay().delivered


def test_no_carrier_is_started_when_the_time_is_over(queue):
    """`--for 0` judges and looks, and carries nothing."""
    door = queue.rig.door()
    queue.put("a")

    tally = queue.relay(seconds=0)

    assert (0, 1, []) == (tally.runs, tally.left, door.calls())


def test_what_is_left_is_counted_at_the_end(queue):
    """A pass whose time was over after its first run does not count that run's lines as waiting."""
    queue.rig.install_claude(before_s=1.1)
    queue.rig.door()
    queue.rig.door(name="other", session_id=OTHER)
    queue.put("a")
    queue.put("b", to="other")

    tally = queue.relay(seconds=1.0)

    assert (1, 1, 1) == (tally.delivered, tally.runs, tally.left)


def test_a_pass_that_is_asked_to_end_starts_no_other_run(queue):
    """The run under way is finished; the next postbox waits for the next pass."""
    queue.rig.door()
    queue.rig.door(name="other", session_id=OTHER)
    queue.put("a")
    queue.put("b", to="other")
    tally = Tally()

    def told(so_far):
        if so_far.runs:
            so_far.end()

    with alone(queue.house()):
        relaying.relay(queue.house(), 50.0, tally, told)

    assert (1, 1, 1, None) == (tally.runs, tally.delivered, tally.left, tally.trouble)


def test_lines_that_were_tried_least_go_first(queue):
    """A postbox whose carriers hang does not stand before the others in every pass."""
    queue.rig.door()
    queue.rig.door(name="other", session_id=OTHER)
    queue.put("a")
    queue.put("b", to="other")
    queue.change("UPDATE line SET tries = 103, status = '4.000.000' WHERE target = 'fable'")

    tally = queue.relay()

    assert ["other", "fable"] == [each.target.id for each in tally.results]


def test_a_pass_that_breaks_off_keeps_its_count(queue, tmp_path):
    """What was delivered before the database went is told."""
    queue.rig.door()
    queue.rig.door(name="other", session_id=OTHER)
    queue.put("a")
    queue.put("b", to="other")
    tally, path = Tally(), f"{queue.rig.state}/zdo.db"

    def told(so_far):
        if so_far.delivered:
            os.rename(path, tmp_path / "gone")

    with alone(queue.house()), pytest.raises(DatabaseUnusable):
        relaying.relay(queue.house(), 50.0, tally, told)

    assert 1 == tally.delivered


def test_only_one_relay_is_at_work(queue):
    """The second is told, and a killed one leaves nothing behind that has to be broken."""
    with alone(queue.house()), pytest.raises(RelayBusy), alone(queue.house()):
        pass
    assert 0o600 == os.stat(queue.house().places.relay_lock).st_mode & 0o777

    def die():
        with alone(queue.house()):
            os.kill(os.getpid(), signal.SIGKILL)

    assert -signal.SIGKILL == status_of(in_child(die))
    with alone(queue.house()):
        pass


@pytest.mark.parametrize("what", ["symlink", "folder"])
def test_a_lock_that_is_none_is_refused(queue, what):
    """Nobody else's file is touched, and the sentence names it."""
    queue.put("a")
    path = queue.house().places.relay_lock
    victim = f"{queue.rig.root}/victim"
    if what == "folder":
        os.mkdir(path)
    else:
        os.symlink(victim, path)

    with pytest.raises(StateUnsafe, match=path), alone(queue.house()):
        pass

    assert not os.path.exists(victim)


def test_a_network_file_system_is_refused(queue, tmp_path):
    """Two hosts with one queue would carry every line twice."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / {queue.rig.root} rw - nfs4 nas:/home rw\n", encoding="ascii")
    here = alone(queue.house(), str(mounts))

    with pytest.raises(StateUnsafe, match=r"network file system \(nfs4\)"), here:
        pass


def test_a_passed_month_is_pruned_by_the_way(queue):
    """The bytes of what was delivered go, the key stays."""
    queue.rig.door()
    (delivery,) = queue.put("a")
    queue.relay()
    queue.later(31 * DAY_S)

    queue.relay()

    assert (b"", "delivered") == (queue.line(delivery).body, *queue.states(delivery))


def test_no_line_has_two_turns_in_one_pass(queue):
    """However short its back-off: it waits for the next pass, and holds back what is behind it."""
    door = queue.rig.door()
    queue.rig.install_claude(outcome="empty-failed", hook="none")
    first, second = queue.put("a", "b")
    hasty = Queue(queue.rig, draw=0.0)

    tally = hasty.relay()

    assert (1, 2, 2) == (tally.runs, tally.deferred, tally.left)
    assert ([], ["queued"] * 2) == (door.lines(), queue.states(first, second))
    assert [1, 1] == [queue.line(each).attempts - 100 for each in (first, second)]


def test_what_only_a_person_can_mend_is_told_in_every_pass(queue):
    """A configuration that became wrong is no absence: time does not mend it."""
    queue.rig.door()
    (delivery,) = queue.put("a")
    queue.rig.configure(f'[station]\ncarrier_session = "{T}"\n[targets.fable]\nsession = "{T}"\n')

    first, second = queue.relay(), queue.relay()

    assert [2, 2] == [tally.verdict.exit for tally in (first, second)]
    assert "carrier-misbound" == second.verdict.name
    assert [("queued", "queued"), ("deferred", "carrier-misbound")] == journal(queue, delivery)


def test_another_reason_to_wait_is_noted_too(queue):
    """The list says why a line waits now, not why it began to."""
    (delivery,) = queue.put("a", to="name:late")
    queue.relay()
    for session in (T, OTHER):
        queue.rig.door(name="late", session_id=session)

    queue.relay()
    queue.relay()

    noted = [name for kind, name in journal(queue, delivery) if kind == "deferred"]
    assert ["target-unknown", "target-ambiguous"] == noted


def test_a_doubt_that_holds_a_queue_back_is_in_every_summary(queue):
    """The pass that made it says so by its exit; later ones still count it."""
    queue.rig.door(accept="hold")
    queue.put("a", "b")

    first, second = queue.relay(), queue.relay()

    assert (3, 0) == (first.verdict.exit, second.verdict.exit)
    assert 2 == second.doubtful
    assert "2 in doubt" in second.line()
