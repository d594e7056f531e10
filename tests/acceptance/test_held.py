"""A line that its target holds: said at once, and what became of it is found out later."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carrier.late import read_late
from dispatch.rig.rig import P
from dispatch.rig.script import T
from tests.acceptance.saying import (
    CONFIG,
    OTHER,
    complained,
    delivered,
    journal,
    lease_is_held,
    passed,
    peer,
    queued,
    refused,
    spool,
    transcript_of,
    wait_for,
)
from tests.fakes.ears import descriptors, ear_of, is_gone, is_zombie, send_away, started_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.rig.door import FakeDoor
    from dispatch.rig.rig import Rig

TWO = f'{CONFIG}\n[targets.other]\nsession = "{OTHER}"\n'
# Long enough for a kiss on a busy machine, short enough for a test.
SOON = {"hold_after": 3.0}
CANARY = "c4n4ry-\u00e9-\u2028"

# What the target says later: what zdo makes of it, and its exit.
ANSWERS = {
    "denied": ("door-denied", 77),
    "expired": ("expired", 69),
    "delivered": ("surfaced", 0),
}


@pytest.fixture
def rig(own_rig: Rig) -> Iterator[Rig]:
    """A rig of the test's own with two targets; no process of it is left at the end."""
    own_rig.configure(TWO)
    yield own_rig
    for pid in started_with(own_rig.root):
        send_away(pid)
    own_rig.close_doors()
    wait_for(lambda: not started_with(own_rig.root), "the end of every process")


def held(rig: Rig, line: str = "one", to: str = "fable") -> tuple[str, int]:
    """The delivery of *line*, which its target holds, and the ear that stays for it."""
    said = rig.zdo("kiss", "--json", to, line)
    told = refused(rig, said, "door-held", 3)
    assert "c4n4ry" not in said.out + said.err
    ear = ear_of(folder_of(rig, told["delivery_id"]))
    assert ear is not None
    return told["delivery_id"], ear


def folder_of(rig: Rig, delivery: str) -> str:
    """The folder of the first attempt of *delivery*."""
    return f"{rig.state}/attempts/{delivery}.1"


def late(rig: Rig, delivery: str) -> list[str]:
    """What the ear heard of *delivery*."""
    return [notice.status for notice in read_late(folder_of(rig, delivery))]


def reply_sockets(door: FakeDoor) -> list[str]:
    """What stands beside the door."""
    return [name for name in os.listdir(door.socks) if name != os.path.basename(door.socket)]


def verified(rig: Rig, delivery: str, name: str, status: int) -> None:
    """`zdo verify` says *name* with *status*."""
    said = rig.zdo("verify", "--json", delivery)
    if status:
        complained(said, name, status)
    assert (name, status) == (said.json["class"], said.exit), said


def test_a_held_kiss_leaves_one_quiet_process_and_nothing_else(rig):
    """Carrier, keeper and lease are gone; the ear has its sockets, /dev/null, and no word."""
    door = rig.door(accept="hold")
    _, ear = held(rig, CANARY)

    assert [ear] == started_with(rig.root)
    assert not lease_is_held(rig)
    assert (ear, ear) == (os.getsid(ear), os.getpgid(ear))
    assert [f"{ear}.sock"] == reply_sockets(door)
    if sys.platform == "linux":
        open_ = descriptors(ear)
        assert [os.devnull] * 3 == [open_.pop(number) for number in range(3)]
        assert ["socket"] == [*open_.values()]
        shown = [Path(f"/proc/{ear}/{name}").read_bytes() for name in ("cmdline", "environ")]
        assert [b"c4n4ry" in each for each in shown] == [False, False]


def test_the_postbox_is_free_while_the_ear_stays(rig):
    """The next kiss through it goes its way, and a pass, and one more that is held."""
    rig.door(accept="hold")
    plain = rig.door(session_id=OTHER, name="other")
    _, first = held(rig)

    delivered(rig.zdo("kiss", "--json", "--lock-timeout", "0", "other", "two"))
    queued(rig, "other", "three")
    passed(rig.zdo("relay", "--json"), runs=1, delivered=1)
    _, second = held(rig, "four")

    assert ["two", "three"] == plain.lines()
    assert sorted([first, second]) == sorted(started_with(rig.root))


def test_a_relay_that_goes_on_keeps_no_postbox_by_a_held_line(rig):
    """Its folder stays as evidence while the relay lives; a kiss goes past both."""
    rig.door(accept="hold")
    rig.door(session_id=OTHER, name="other")
    (delivery,) = queued(rig, "fable", "one")
    relay = rig.start("relay", "--follow")
    try:
        wait_for(lambda: journal(rig, delivery)[-1] == "door-held", "the verdict")

        delivered(rig.zdo("kiss", "--json", "other", "two"))
    finally:
        relay.send_signal(signal.SIGINT)
        relay.communicate()


def test_a_held_kiss_ends_as_soon_as_one_without_an_ear(rig):
    """Both listen for the whole window; what stays behind costs the caller nothing."""
    rig.door(accept="hold")
    rig.door(session_id=OTHER, name="other", accept="drop")
    took: dict[str, list[float]] = {"fable": [], "other": []}
    for number in range(5):
        for target, its in took.items():
            began = time.monotonic()
            said = rig.zdo("kiss", "--json", target, f"{number}")
            its.append(time.monotonic() - began)
            assert ("door-held" if target == "fable" else "delivered-start") == said.json["class"]

    assert min(took["fable"]) < min(took["other"]) + 0.25, took
    assert 5 == len(started_with(rig.root))


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_targets_answer_is_what_verify_says(rig, answer):
    """Heard by the ear, which is gone then with its socket; nothing of the line is left."""
    door = rig.door(accept="hold", hold_then=answer, **SOON)
    delivery, ear = held(rig, CANARY)

    wait_for(lambda: late(rig, delivery), "the answer")

    assert ["held", answer] == late(rig, delivery)
    assert is_gone(ear)
    wait_for(lambda: not is_zombie(ear), "somebody who reaps it")
    assert [] == reply_sockets(door)
    verified(rig, delivery, *ANSWERS[answer])
    assert [] == os.listdir(f"{rig.state}/attempts")
    assert [True, True] == [each["hung_up"] for each in door.notices(2)]
    assert "c4n4ry" not in rig.zdo("show", "--json", delivery).out
    verified(rig, delivery, *ANSWERS[answer])


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_next_pass_finds_the_answer_by_itself(rig, answer):
    """A line of the queue: held and open; then settled, and told once to who must hear it."""
    door = rig.door(accept="hold", hold_then=answer, **SOON)
    (delivery,) = queued(rig, "fable", "one")
    said = rig.zdo("relay", "--json")
    passed(said, runs=1, open=1, **{"class": "door-held", "exit": 3})
    assert "uncertain" == spool(rig)[0]["state"]
    name, status = ANSWERS[answer]

    wait_for(lambda: late(rig, delivery), "the answer")

    news = {"class": name, "exit": status, "dead": 1} if status else {"class": None, "exit": 0}
    passed(rig.zdo("relay", "--json"), runs=0, regraded=1, **news)
    assert ["queued", None, "door-held", name] == journal(rig, delivery)
    assert [] == os.listdir(f"{rig.state}/attempts")
    passed(rig.zdo("relay", "--json"), runs=0, regraded=0, **{"class": None})
    wait_for(lambda: not started_with(rig.root), "the end of the ear")
    assert [] == reply_sockets(door)


def test_a_held_line_holds_those_behind_it_until_its_answer(rig):
    """The next line of that session waits, and goes when the first is out of the way."""
    door = rig.door(accept="hold", hold_then="denied", **SOON)
    first, second = queued(rig, "fable", "one", "two")
    passed(rig.zdo("relay", "--json"), runs=1, open=2)
    wait_for(lambda: late(rig, first) and late(rig, second), "the answers")

    passed(rig.zdo("relay", "--json"), runs=0, regraded=2, dead=2, **{"class": "door-denied"})

    door.change(accept="surface")
    queued(rig, "fable", "three")
    passed(rig.zdo("relay", "--json"), runs=1, delivered=1)
    assert ["one", "two", "three"] == door.lines()


def test_one_ear_hears_what_each_target_says_of_its_line(rig):
    """A round for two targets that hold: one process, two answers, a verdict each."""
    doors = [
        rig.door(accept="hold", hold_then="denied", **SOON),
        rig.door(accept="hold", hold_then="expired", session_id=OTHER, name="other", **SOON),
    ]
    (one,), (two,) = queued(rig, "fable", "one"), queued(rig, "other", "two")
    passed(rig.zdo("relay", "--json"), runs=1, open=2)

    [ear] = started_with(rig.root)
    wait_for(lambda: late(rig, one) and late(rig, two), "the answers")

    assert is_gone(ear)
    assert [[], []] == [reply_sockets(door) for door in doors]
    verified(rig, one, "door-denied", 77)
    verified(rig, two, "expired", 69)
    assert [] == os.listdir(f"{rig.state}/attempts")


def test_a_held_line_dies_with_its_target(rig):
    """Killed, it tells nobody; the ear goes, and the line is known to be lost."""
    door = rig.door(accept="hold")
    delivery, ear = held(rig)

    door.kill()

    assert is_gone(ear)
    assert [] == reply_sockets(door)
    assert [] == late(rig, delivery)
    verified(rig, delivery, "expired", 69)
    assert [] == os.listdir(f"{rig.state}/attempts")


def test_a_line_that_a_person_gives_up_is_not_listened_for(rig):
    """Its folder is gone, and the ear soon after; no answer makes the folder anew."""
    door = rig.door(accept="hold", hold_then="denied", hold_after=8.0)
    (delivery,) = queued(rig, "fable", "one")
    rig.zdo("relay", "--json")
    [ear] = started_with(rig.root)

    assert 0 == rig.zdo("spool", "drop", delivery).exit

    assert is_gone(ear)
    assert [] == reply_sockets(door)
    assert [] == os.listdir(f"{rig.state}/attempts")


def test_a_line_that_is_seen_in_the_target_is_not_listened_for(rig):
    """Approved while the ear was deaf: the transcript proves it, and the ear goes."""
    rig.door(accept="hold")
    delivery, ear = held(rig)
    transcript_of(rig, T).surface("one", peer(delivery))

    verified(rig, delivery, "surfaced", 0)

    assert is_gone(ear)
    assert [] == os.listdir(f"{rig.state}/attempts")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_without_its_ear_a_line_stays_held(rig, number):
    """Nobody heard the answer: it is not guessed, and the target's end settles it."""
    door = rig.door(accept="hold", hold_then="denied", **SOON)
    delivery, ear = held(rig)

    if number == signal.SIGTERM:
        send_away(ear)
    else:
        os.kill(ear, number)
        assert is_gone(ear)

    assert (number == signal.SIGKILL) == (reply_sockets(door) != [])
    # A target tells only whoever listens; two seconds are more than it still needs.
    wait_for(lambda: _is_over(door, SOON["hold_after"]), "the answer to nobody")
    verified(rig, delivery, "door-held", 3)
    door.kill()
    verified(rig, delivery, "expired", 69)


def _is_over(door: FakeDoor, seconds: float) -> bool:
    """Whether what *door* does so long after its one line was written is done."""
    (call,) = door.calls(1)
    return time.monotonic() > float(call["at"]) + seconds + 0.5


def test_on_a_full_disk_the_answer_is_lost_and_nothing_is_claimed(rig):
    """The ear ends without a word; the line stays held until its target is over."""
    door = rig.door(accept="hold", hold_then="denied", **SOON)
    delivery, ear = held(rig)
    # Whatever refuses the file: here something stands in its way.
    os.mkdir(f"{folder_of(rig, delivery)}/late.json.new")

    assert is_gone(ear)

    assert [] == reply_sockets(door)
    verified(rig, delivery, "door-held", 3)


def test_a_held_line_is_not_said_again_under_its_key(rig):
    """It may still be approved: the verdict stands, and its ear with it."""
    door = rig.door(accept="hold")
    first = rig.zdo("kiss", "--json", "--key", "k", "fable", "one")
    again = rig.zdo("kiss", "--json", "--key", "k", "fable", "one")

    assert [(3, "door-held")] * 2 == [(each.exit, each.json["class"]) for each in (first, again)]
    assert ["one"] == door.lines()
    assert 1 == len(started_with(rig.root))
    assert P == first.json["carrier"]["session_id"]
