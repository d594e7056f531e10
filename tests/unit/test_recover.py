"""What the dead left is judged, what is open is asked for again, and no line stops another."""

from __future__ import annotations

import contextlib
import os

import pytest

from carrier.late import leave_late
from carrier.proof import INTENT, issue, take
from dispatch import keep, kept, outcome, post, recover, verify
from registry.clock import Clock
from registry.home import open_state
from registry.locks import take_lease
from tests.fakes.envelopes import DELIVERY, P, a_receipt, an_envelope
from tests.fakes.evidence import BINDING, NONCE, OTHER, StoppedClock, an_evidence, told
from tests.fakes.household import BEGAN, Household, asked, key_of

BOX = "90000000-0000-4000-8000-000000000001"


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    open_state(household.house().places)
    yield household
    household.registry.close()


def dead(home, number=1, *, taken=False, long_ago=True):
    """A line of the relay's that was claimed; the relay died, and its folder stands."""
    key = key_of(number)
    home.queued(key, b"line %d" % number)
    home.taken(key)
    folder = home.folder(key=key)
    os.mkdir(folder, 0o700)
    issue(folder, an_envelope(delivery_id=key, msg_id=key, claude_dir=home.claude_dir))
    if taken:
        take(folder)
        os.utime(f"{folder}/{INTENT}", (1, 1) if long_ago else (BEGAN, BEGAN))
    return key


@contextlib.contextmanager
def lease(home, postbox=P):
    """The lease on *postbox*."""
    held = take_lease(home.house().places.locks, postbox, timeout_s=0, clock=Clock())
    with contextlib.closing(held):
        yield held


def recovered(home, **changes):
    """The tally of a pass that judges all that is claimed."""
    with home.opened() as database:
        station = home.station(database, **changes)
        recover.judge_all_claimed(station)
    return station.tally


def regraded(home, **changes):
    """The tally of a pass that looks at everything open."""
    with home.opened() as database:
        station = home.station(database, **changes)
        recover.regrade(station)
    return station.tally


# Orphans.


def test_nothing_claimed_is_nothing_to_judge(home):
    """What waits is left alone."""
    home.queued()

    assert ([], 0) == (recovered(home).results, recovered(home).recovered)
    assert "queued" == home.state_of()


def test_every_line_of_a_dead_relay_has_its_verdict(home):
    """Untouched: queued again.  Taken: in doubt, or surfaced by its transcript."""
    keys = [dead(home, 1), dead(home, 2, taken=True), dead(home, 3, taken=True)]
    home.transcript().surface(keys[2])

    tally = recovered(home)

    assert ["queued", "uncertain", "delivered"] == [home.state_of(key) for key in keys]
    assert (3, 1, 1, 1) == (tally.recovered, tally.deferred, tally.open, tally.delivered)
    assert "unknown" == tally.verdict.name
    assert [f"{keys[1]}.1"] == os.listdir(f"{home.state}/attempts")


def test_a_line_that_had_its_last_try_is_counted_as_dead(home):
    """It died in this pass: its class is the pass's."""
    dead(home)
    home.alter("UPDATE line SET tries = 124")

    tally = recovered(home)

    assert (1, 0, "carrier-exit") == (tally.dead, tally.deferred, tally.verdict.name)


def test_lines_under_way_are_left_alone(home):
    """Somebody has the lease: a carrier runs."""
    key = dead(home)
    with lease(home):
        tally = recovered(home)

    assert (0, "claimed") == (tally.recovered, home.state_of(key))


def test_a_leased_postbox_does_not_keep_others_from_their_verdict(home):
    """Each has its own lease."""
    key, other = dead(home, 1), dead(home, 2)
    home.alter("UPDATE line SET postbox = ? WHERE key = ?", OTHER, other)
    with lease(home, OTHER):
        recovered(home)

    assert ["queued", "claimed"] == [home.state_of(each) for each in (key, other)]


def test_a_line_of_another_postbox_is_not_judged_under_ours(home):
    """Its carrier may be running there."""
    key, other = dead(home, 1), dead(home, 2)
    home.alter("UPDATE line SET postbox = ? WHERE key = ?", BOX, other)
    with lease(home) as held, home.opened() as database:
        station = home.station(database)
        recover.judge_claimed(station, held)

    assert 1 == station.tally.recovered
    assert ["queued", "claimed"] == [home.state_of(each) for each in (key, other)]


def test_a_line_whose_wrapper_may_be_at_the_door_is_not_recovered_yet(home):
    """The next pass comes."""
    key = dead(home, taken=True, long_ago=False)
    clock = StoppedClock()
    clock.at = BEGAN + 5

    assert 0 == recovered(home, clock=clock).recovered
    assert "claimed" == home.state_of(key)
    clock.at = BEGAN + 60
    assert 1 == recovered(home, clock=clock).recovered


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        ("DELETE FROM event WHERE delivery = ?", "unknown"),
        ("UPDATE event SET body = '{\"attempt\": 1}' WHERE delivery = ?", "journal-unwritable"),
    ],
    ids=["lost", "unreadable"],
)
def test_a_line_whose_story_is_lost_stops_no_other(home, damage, name):
    """It is told of in every pass, and stays claimed; the rest is judged."""
    keys = [dead(home, number) for number in (1, 2)]
    home.alter(damage, keys[0])

    tally = recovered(home)

    assert (1, name) == (tally.recovered, tally.verdict.name)
    assert ["claimed", "queued"] == [home.state_of(key) for key in keys]


# Open deliveries.


def opened(home, number=1, **changes):
    """A relay's delivery that is open, its target alive; its folder stands."""
    key = key_of(number)
    home.queued(key, b"line %d" % number)
    home.taken(key)
    folder = home.folder(key=key)
    os.mkdir(folder, 0o700)
    with home.opened() as database:
        line = database_line(database, key)
        receipt = a_receipt(**({"pid": os.getpid(), "msg_id": key} | changes))
        settle_relayed(home, database, line, receipt)
    return key


def database_line(database, key):
    """The row of *key*."""
    with database.reading() as link:
        return kept.find(link, key)


def settle_relayed(home, database, line, receipt):
    """The verdict that a relay keeps of *receipt*."""
    evidence = an_evidence(receipt=receipt)
    result = asked(delivery_id=line.key, key=line.key, attempt=1)
    result = post.conclude(result, evidence, BINDING, NONCE)
    patience = verify.patience(database, home.house(), BEGAN)
    becomes = outcome.of_kept(result, line, 1, patience)
    settled = keep.Settled(result, post.evidence_facts(evidence), becomes)
    keep.settle(database, home.house(), [settled], line.owner, BEGAN + 1)


def test_a_pass_without_news_changes_nothing(home):
    """What is sent or held stays it."""
    keys = [opened(home, 1), opened(home, 2, notices=told("held"))]

    tally = regraded(home)

    assert (0, [], None) == (tally.regraded, tally.results, tally.trouble)
    assert ["sent", "uncertain"] == [home.state_of(key) for key in keys]


def test_what_is_seen_to_be_in_is_over(home):
    """A sent line that surfaces was delivered before: it is graded, and not counted again."""
    key = opened(home)
    home.transcript().surface(key)

    tally = regraded(home)

    assert (1, 0, []) == (tally.regraded, tally.delivered, tally.results)
    assert "delivered" == home.state_of(key)
    assert 0 == regraded(home).regraded


@pytest.mark.parametrize(
    ("late", "ends", "counts", "name"),
    [
        ("denied", "dead", (0, 0, 1), "door-denied"),
        ("expired", "dead", (0, 0, 1), "expired"),
        ("dropped", "queued", (0, 1, 0), "queued"),
    ],
)
def test_what_became_of_a_held_line_is_found_out_and_counted(home, late, ends, counts, name):
    """Delivered, put off, dead; a dead one gives the pass its class."""
    key = opened(home, notices=told("held"))
    leave_late(home.folder(key=key), told(late))

    tally = regraded(home)

    assert (1, ends) == (tally.regraded, home.state_of(key))
    assert counts == (tally.delivered, tally.deferred, tally.dead)
    assert [name] == [result.verdict.name for result in tally.results]
    assert (name if ends == "dead" else "queued") == tally.verdict.name


def test_a_line_of_a_kiss_that_was_dropped_late_is_dead(home):
    """Nobody tries it any more: it is not put off, and the pass says so."""
    home.judged(receipt=a_receipt(pid=os.getpid(), notices=told("held")))
    os.mkdir(home.folder(), 0o700)
    leave_late(home.folder(), told("dropped"))

    tally = regraded(home)

    assert (1, 0, "door-dropped") == (tally.dead, tally.deferred, tally.verdict.name)
    assert "dead" == home.state_of()


def test_a_held_line_that_is_let_through_is_delivered(home):
    """It was open before; now it counts."""
    key = opened(home, notices=told("held"))
    home.transcript().surface(key)

    tally = regraded(home)

    assert (1, 1, "delivered") == (tally.regraded, tally.delivered, home.state_of(key))


def test_a_sent_line_whose_target_ended_is_closed(home):
    """It came to nothing more: its class is said once, and its row is over."""
    key = opened(home, pid=home.registry.ended())

    tally = regraded(home)

    assert (1, 1, "not-surfaced") == (tally.regraded, tally.open, tally.verdict.name)
    assert "delivered" == home.state_of(key)
    assert 0 == regraded(home).regraded


class Slow(StoppedClock):
    """A clock on which each look takes four seconds."""

    def monotonic(self):
        """The time, later each time."""
        self.at += 4.0
        return self.at


def looked_at(home, draw):
    """Which of the lines surfaced in one slow pass."""
    regraded(home, clock=Slow(), draw=lambda: draw)
    return {n for n in range(1, 7) if home.state_of(key_of(n)) == "delivered"}


def test_a_pass_looks_for_ten_seconds_and_the_next_one_goes_on_elsewhere(home):
    """Six lines, two looks a pass: where it begins is drawn, and it goes round."""
    transcript = home.transcript()
    for number in range(1, 7):
        transcript.surface(opened(home, number))

    assert {4, 5} == looked_at(home, 0.5)
    assert {1, 4, 5, 6} == looked_at(home, 0.9)


def test_nothing_open_is_nothing_to_ask_for(home):
    """Whatever is drawn."""
    assert 0 == regraded(home, draw=lambda: 0.999).regraded


def test_an_open_line_whose_story_is_lost_stops_no_other(home):
    """A salvaged file may have its row alone; it is told of, and the others are asked for."""
    lost, key = opened(home, 1), opened(home, 2)
    home.transcript().surface(key)
    home.alter("DELETE FROM event WHERE delivery = ?", lost)

    tally = regraded(home)

    assert (1, "delivered", "unknown") == (
        tally.regraded, home.state_of(key), tally.verdict.name
    )  # fmt: skip


def test_an_open_line_without_a_verdict_is_judged(home):
    """Its journal lost the end: the folder and the transcript tell, under the lease."""
    key = dead(home, taken=True)
    home.alter("UPDATE line SET state = 13")
    home.transcript().surface(key)

    assert 0 == regraded(home).regraded
    assert "delivered" == home.state_of(key)
    assert DELIVERY == key
