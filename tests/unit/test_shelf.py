"""The kept lines in a person's hands: every state against every command."""

from __future__ import annotations

import json
import os
import threading

import pytest

from dispatch import kept, shelf
from dispatch.errors import DeliveryUnknown, LineInDoubt, LineUnderWay, NotOnShelf
from dispatch.rig.rig import Rig
from tests.fakes.envelopes import DELIVERY
from tests.fakes.queues import Queue
from tests.fakes.runs import wait_for

FIELDS = (
    "delivery_id", "key", "target", "sender", "state", "class", "reason", "attempts", "bytes",
    "created_at", "due_at", "held_by",
)  # fmt: skip


@pytest.fixture
def queue():
    """A queue to a target that does not run."""
    with Rig() as rig:
        yield Queue(rig)


def put_in(queue, delivery, state, status="0.000.000"):
    """Let the row of *delivery* be in *state*."""
    queue.change("UPDATE line SET state = ?, status = ? WHERE key = ?", state, status, delivery)


def requeue(queue, delivery, *, looked=False):
    """What queueing again came to."""
    with queue.database() as database:
        return shelf.requeue(database, queue.house(), delivery, looked=looked)


def drop(queue, delivery):
    """What giving up came to."""
    with queue.database() as database:
        return shelf.drop(database, queue.house(), delivery)


def test_the_list_has_every_line_in_its_order(queue):
    """With its size, its sender, and the line that it waits behind."""
    first, second = queue.put("a", "bb")
    (other,) = queue.put("ccc", to="name:later", key="build-1")
    shown = queue.listed()

    assert [first, second, other] == [each["delivery_id"] for each in shown]
    assert [FIELDS] * 3 == [tuple(each) for each in shown]
    assert [None, first, None] == [each["held_by"] for each in shown]
    assert [1, 2, 3] == [each["bytes"] for each in shown]
    assert [first, second, "build-1"] == [each["key"] for each in shown]
    assert ["queued"] * 3 == [each["class"] for each in shown]
    assert shown[0]["created_at"].endswith("Z")
    assert shown == json.loads(json.dumps(shown))


def test_the_list_can_be_of_one_target_or_of_the_dead(queue):
    """And of both."""
    a, b = queue.put("a", "b")
    (c,) = queue.put("c", to="name:later")
    put_in(queue, b, kept.DEAD, kept.REFUSED)

    def ids(**asked):
        return [each["delivery_id"] for each in queue.listed(**asked)]

    assert [a, b] == ids(target="fable")
    assert [b] == ids(dead=True)
    assert [b] == ids(target="fable", dead=True)
    assert [] == ids(target="name:later", dead=True)
    assert [c] == ids(target="name:later")


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (kept.QUEUED, "queued"),
        (kept.CLAIMED, "claimed"),
        (kept.SENT, None),
        (kept.UNCERTAIN, "uncertain"),
        (kept.DELIVERED, None),
        (kept.DEAD, "dead"),
    ],
)
def test_what_is_over_is_not_on_the_shelf(queue, state, shown):
    """Everything else is, under the name of its state."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, state)

    assert [shown] * bool(shown) == [each["state"] for each in queue.listed()]


def test_a_kiss_in_doubt_is_on_the_shelf_too(queue):
    """No queue holds it, but it holds its target's queue back; a failed kiss does not."""
    queue.rig.door(accept="drop", eof_after=None)
    doubt = queue.kiss("a")
    queue.rig.install_claude(outcome="empty-failed", hook="none")
    queue.kiss("b")
    (behind,) = queue.put("c")

    first, second = queue.listed()

    assert (doubt.delivery_id, "uncertain", "unknown") == (
        first["delivery_id"], first["state"], first["class"],
    )  # fmt: skip
    assert (behind, doubt.delivery_id) == (second["delivery_id"], second["held_by"])


def test_a_line_that_waits_for_its_next_try_says_when(queue):
    """Null when it may go at once."""
    queue.rig.door()
    queue.rig.install_claude(outcome="empty-failed", hook="none")
    queue.put("a")
    assert queue.listed()[0]["due_at"] is None
    queue.relay()

    (shown,) = queue.listed()
    assert (True, 1, "carrier-exit") == (
        shown["due_at"] > shown["created_at"], shown["attempts"], shown["class"],
    )  # fmt: skip


@pytest.mark.parametrize("body", ["no JSON", "[]", "{}", '{"result": null}'])
def test_an_entry_that_is_damaged_hides_no_line(queue, body):
    """Why is not known then; the line is."""
    (delivery,) = queue.put("a")
    queue.change("UPDATE event SET body = ?", body)

    assert [(delivery, None)] == [(e["delivery_id"], e["reason"]) for e in queue.listed()]


QUEUED = [(kept.QUEUED, kept.FRESH), (kept.QUEUED, kept.AGAIN), (kept.QUEUED, kept.WAITING)]
DEAD = [(kept.DEAD, kept.AGAIN), (kept.DEAD, kept.OUT_OF_TIME), (kept.DEAD, kept.REFUSED)]
OVER = [(kept.SENT, kept.DONE), (kept.DELIVERED, kept.DONE)]


@pytest.mark.parametrize(("state", "status"), DEAD)
def test_a_dead_line_is_queued_again_with_all_its_patience(queue, state, status):
    """In its old place, due at once; the journal says who did it."""
    a, b = queue.put("a", "b")
    put_in(queue, a, state, status)
    queue.change("UPDATE line SET tries = 124, attempts = 124, kept = 0, born = 1 WHERE key = ?", a)
    queue.relay()

    assert "queued" == requeue(queue, a).verdict.name

    line = queue.line(a)
    assert (kept.QUEUED, kept.FRESH, 100, 124, 1) == (
        line.state, line.status, line.tries, line.attempts, line.kept,
    )  # fmt: skip
    assert line.born > 1
    shown = queue.listed()[0]
    assert (a, "queued again by hand") == (shown["delivery_id"], shown["reason"])
    queue.rig.door()
    assert [a, b] == [each.delivery_id for each in queue.relay().results]


@pytest.mark.parametrize(("state", "status"), QUEUED)
def test_a_queued_line_is_queued_already(queue, state, status):
    """Asked for twice, it is done once; its patience goes on."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, state, status)
    before = queue.line(delivery)

    assert "queued" == requeue(queue, delivery).verdict.name
    assert before == queue.line(delivery)


def test_a_doubt_is_queued_again_only_by_somebody_who_looked(queue):
    """Who has not is told how to; then the old attempt's folder, and the line in it, is gone."""
    door = queue.rig.door(accept="drop", eof_after=None)
    (delivery,) = queue.put("a")
    queue.relay()
    folder = f"{queue.rig.state}/attempts/{delivery}.1"
    assert os.path.exists(f"{folder}/intent")

    with pytest.raises(LineInDoubt, match=f"zdo spool requeue {delivery} --i-have-looked"):
        requeue(queue, delivery)
    assert ["uncertain"] == queue.states(delivery)

    requeue(queue, delivery, looked=True)
    assert not os.path.exists(folder)
    door.change(accept="surface", eof_after=0.0)
    queue.later(31)
    assert (1, 2) == (queue.relay().delivered, queue.line(delivery).attempts - kept.FIRST)


@pytest.mark.parametrize("act", [requeue, drop])
@pytest.mark.parametrize(("state", "status"), OVER)
def test_what_is_delivered_is_nobodys_to_change(queue, act, state, status):
    """It would go twice, or be called given up."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, state, status)

    with pytest.raises(NotOnShelf, match="is delivered"):
        act(queue, delivery)
    assert state == queue.line(delivery).state


@pytest.mark.parametrize("act", [requeue, drop])
def test_what_is_being_tried_is_left_to_who_tries_it(queue, act):
    """Nobody knows yet whether it is in."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, kept.CLAIMED)

    with pytest.raises(LineUnderWay):
        act(queue, delivery)
    assert kept.CLAIMED == queue.line(delivery).state


def test_a_damaged_line_cannot_be_queued_again(queue):
    """Its bytes are not what was accepted; it can only be given up."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, kept.DEAD, kept.DAMAGED)

    with pytest.raises(NotOnShelf, match="is damaged"):
        requeue(queue, delivery)
    drop(queue, delivery)
    assert [] == queue.listed()


@pytest.mark.parametrize(("state", "status"), QUEUED + DEAD)
def test_a_line_that_never_reached_its_door_can_be_given_up(queue, state, status):
    """It is listed no more and holds nobody back; the journal has who did it."""
    a, b = queue.put("a", "b")
    put_in(queue, a, state, status)

    result = drop(queue, a)

    assert ("given up by hand", True) == (result.reason, result.verdict.exit != 0)
    assert [(b, None)] == [(each["delivery_id"], each["held_by"]) for each in queue.listed()]
    queue.rig.door()
    assert 1 == queue.relay().delivered


def test_a_doubt_that_is_given_up_stays_a_doubt_for_its_key(queue):
    """The lines behind it go; the same key does not deliver again, for it may be in."""
    door = queue.rig.door(accept="drop", eof_after=None)
    queue.put("a", key="build-1")
    queue.relay()
    (first,) = queue.listed()
    door.change(accept="surface", eof_after=0.0)
    (behind,) = queue.put("b")

    assert "unknown" == drop(queue, first["delivery_id"]).verdict.name

    assert ([], ["dead"]) == (
        os.listdir(f"{queue.rig.state}/attempts"), queue.states(first["delivery_id"]),
    )  # fmt: skip
    assert (1, ["delivered"]) == (queue.relay().delivered, queue.states(behind))
    assert "unknown" == queue.kiss("a", key="build-1").verdict.name
    assert "unknown" == queue.kiss("a", key="build-1", queue=True).verdict.name
    assert 1 == door.lines().count("a")


def test_a_given_up_line_can_be_asked_for_by_its_key(queue):
    """It never reached its door: the same key delivers it, other bytes are still a conflict."""
    (delivery,) = queue.put("a", key="build-1")
    drop(queue, delivery)
    queue.rig.door()

    assert "key-conflict" == queue.kiss("b", key="build-1").verdict.name
    assert "delivered-start" == queue.kiss("a", key="build-1").verdict.name


@pytest.mark.parametrize("act", [lambda q, d: requeue(q, d, looked=True), drop])
def test_what_is_found_out_meanwhile_counts(queue, act):
    """While a person waits for his turn the line is seen to be in: nothing may queue it again."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, kept.UNCERTAIN, kept.DOUBT)
    found = []

    def decide():
        try:
            act(queue, delivery)
        except NotOnShelf as error:
            found.append(str(error))

    with queue.database() as database, database.writing() as link:
        person = threading.Thread(target=decide)
        person.start()
        wait_for(lambda: len(os.listdir("/proc/self/task")) > 1)
        link.execute("UPDATE line SET state = 20")
    person.join()

    assert [f"delivery {delivery} is delivered"] == found
    assert ["delivered"] == queue.states(delivery)


@pytest.mark.parametrize("act", [requeue, drop])
@pytest.mark.parametrize("delivery", [DELIVERY, "", "../x", "\udcff", "nope"])
def test_an_unknown_delivery_is_said(queue, act, delivery):
    """Whatever somebody typed; it is only ever compared."""
    queue.put("a")

    with pytest.raises(DeliveryUnknown):
        act(queue, delivery)


@pytest.mark.parametrize("spelt", [str.upper, lambda key: f"{{{key}}}", lambda key: f" {key} "])
def test_a_delivery_is_found_in_any_spelling(queue, spelt):
    """As everywhere."""
    (delivery,) = queue.put("a")

    assert delivery == drop(queue, spelt(delivery)).delivery_id


@pytest.mark.parametrize("how", ["DELETE FROM event", "UPDATE event SET body = 'no JSON'"])
@pytest.mark.parametrize("act", ["requeue", "drop"])
def test_a_line_whose_story_is_lost_can_still_be_decided(queue, how, act):
    """What a damaged journal left in doubt holds its target back until a person decides."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, kept.UNCERTAIN, kept.DOUBT)
    queue.change(how)

    result = requeue(queue, delivery, looked=True) if act == "requeue" else drop(queue, delivery)

    assert (delivery, "fable", 1) == (result.delivery_id, result.target.id, result.line.bytes)
    assert [{"requeue": "queued", "drop": "dead"}[act]] == queue.states(delivery)


def test_giving_a_doubt_up_does_not_wash_it(queue):
    """A line that may be in stays one that only somebody who looked may queue again."""
    (delivery,) = queue.put("a")
    put_in(queue, delivery, kept.UNCERTAIN, kept.DOUBT)
    drop(queue, delivery)

    with pytest.raises(LineInDoubt):
        requeue(queue, delivery)

    assert ["dead"] == queue.states(delivery)
    requeue(queue, delivery, looked=True)
    assert ["queued"] == queue.states(delivery)


def test_a_refused_kiss_with_its_key_says_nothing_about_a_line(queue):
    """Other bytes under the key are that kiss's affair: the line waits as it waited."""
    (delivery,) = queue.put("a", key="k1")
    assert "key-conflict" == queue.kiss("b", key="k1", queue=True).verdict.name

    (shown,) = queue.listed()
    assert (delivery, "queued", None) == (shown["delivery_id"], shown["class"], shown["reason"])
    dropped = drop(queue, delivery)
    assert ("interrupted", "fable") == (dropped.verdict.name, dropped.target.id)


def test_a_line_at_its_door_waits_behind_nobody(queue):
    """Only what is queued is held back; two held lines are each their target's to answer."""
    first, second, third = queue.put("a", "b", "c")
    put_in(queue, first, kept.UNCERTAIN, kept.DOUBT)
    put_in(queue, second, kept.UNCERTAIN, kept.DOUBT)

    assert [None, None, first] == [each["held_by"] for each in queue.listed()]
    assert third == queue.listed()[-1]["delivery_id"]


def test_somebody_who_looked_in_vain_is_told_what_the_transcript_shows(queue):
    """The line is in, though the person did not see it: delivered, and it goes no second time."""
    door = queue.rig.door(accept="hold", hold_then="delivered", hold_after=0.5)
    (delivery,) = queue.put("a")
    queue.relay()
    assert ["uncertain"] == queue.states(delivery)
    wait_for(lambda: any(row.get("origin") for row in door.rows()))

    with pytest.raises(NotOnShelf, match="delivered"):
        requeue(queue, delivery, looked=True)

    assert ["delivered"] == queue.states(delivery)


@pytest.mark.parametrize("target", ["\udcff", "two\nlines"])
def test_the_list_of_a_target_that_cannot_be_spelled_is_empty(queue, target):
    """Nothing was ever kept under such a word."""
    queue.put("a")

    assert [] == queue.listed(target=target)
