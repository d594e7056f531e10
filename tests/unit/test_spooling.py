"""The commands around the queue: each says what it did, in a sentence or as one object."""

from __future__ import annotations

import json
import sqlite3

import pytest

from dispatch import kept
from dispatch.cli import spooling
from dispatch.rig.rig import Rig
from tests.fakes.envelopes import DELIVERY
from tests.fakes.queues import Queue


@pytest.fixture
def queue(monkeypatch):
    """A queue that this process lives in, to a target that does not run."""
    with Rig() as rig:
        for name, value in rig.env.items():
            monkeypatch.setenv(name, value)
        yield Queue(rig)


def said(capsys):
    """The object that was printed."""
    return json.loads(capsys.readouterr().out)


def test_the_list_is_a_table_or_an_object(queue, capsys):
    """Nothing queued is an empty table."""
    assert spooling.listing(None, target=None, dead=False, as_object=False) == 0
    assert capsys.readouterr().out == "DELIVERY  TARGET  STATE  TRIES  BYTES  WHY\n"
    a, b = queue.put("a", "b")

    assert spooling.listing(None, target=None, dead=False, as_object=False) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert ["DELIVERY", "TARGET", "STATE", "TRIES", "BYTES", "WHY"] == head.split()
    assert [a, "fable", "queued", "0", "1", "queued"] == first.split()
    assert [b, "fable", "queued", "0", "1", "behind", a[:8]] == second.split()

    assert spooling.listing(None, target="fable", dead=False, as_object=True) == 0
    shown = said(capsys)
    assert (1, "spool", [a, b]) == (
        shown["v"], shown["command"], [line["delivery_id"] for line in shown["lines"]],
    )  # fmt: skip
    assert spooling.listing(None, target=None, dead=True, as_object=True) == 0
    assert [] == said(capsys)["lines"]


def test_giving_up_and_queueing_again_are_said(queue, capsys):
    """In a sentence, or with the line as the list would show it."""
    (delivery,) = queue.put("a")

    assert spooling.drop(delivery, None, as_object=False) == 0
    assert capsys.readouterr() == (f"given up: {delivery} to fable\n", "")
    assert spooling.requeue(delivery, None, looked=False, as_object=False) == 0
    assert capsys.readouterr() == (f"queued again: {delivery} to fable\n", "")

    assert spooling.drop(delivery, None, as_object=True) == 0
    shown = said(capsys)
    assert {"v": 1, "command": "spool", "class": None, "exit": 0, "sender": "anonymous"} == {
        name: value for name, value in shown.items() if name != "line"
    }
    assert ("dead", "given up by hand") == (shown["line"]["state"], shown["line"]["reason"])
    assert spooling.requeue(delivery, None, looked=False, as_object=True) == 0
    assert queue.listed() == [said(capsys)["line"]]


@pytest.mark.parametrize(
    ("state", "status", "name"),
    [
        (kept.CLAIMED, 75, "carrier-busy"),
        (kept.SENT, 64, "usage"),
        (kept.DELIVERED, 64, "usage"),
        (kept.UNCERTAIN, 3, "unknown"),
        (None, 67, "target-unknown"),
    ],
)
def test_a_line_that_cannot_be_queued_again_has_a_class(queue, capsys, state, status, name):
    """And an exit, in both forms; who has looked overrules only a doubt."""
    (delivery,) = queue.put("a")
    looked = state != kept.UNCERTAIN
    if state is None:
        delivery = DELIVERY
    else:
        queue.change("UPDATE line SET state = ?", state)

    assert status == spooling.requeue(delivery, None, looked=looked, as_object=False)
    assert capsys.readouterr().err.startswith(f"zdo: {name}: ")
    assert status == spooling.requeue(delivery, None, looked=looked, as_object=True)
    shown = said(capsys)
    assert ("spool", name) == (shown["command"], shown["class"])


@pytest.mark.parametrize(
    ("state", "status", "name"),
    [
        (kept.CLAIMED, 75, "carrier-busy"),
        (kept.DELIVERED, 64, "usage"),
        (None, 67, "target-unknown"),
    ],
)
def test_a_line_that_cannot_be_given_up_has_a_class(queue, capsys, state, status, name):
    """And an exit."""
    (delivery,) = queue.put("a")
    if state is None:
        delivery = "nope"
    else:
        queue.change("UPDATE line SET state = ?", state)

    assert status == spooling.drop(delivery, None, as_object=True)
    assert name == said(capsys)["class"]


def test_nothing_open_is_nothing_said(queue, capsys):
    """Lines that wait are not open: nobody tried them yet."""
    queue.put("a")

    assert spooling.verify_open(None, as_object=False) == 0
    assert ("", "") == capsys.readouterr()
    assert spooling.verify_open(None, as_object=True) == 0
    assert {"v": 1, "command": "verify", "sender": "anonymous", "results": []} == said(capsys)


def test_every_open_delivery_is_asked_for(queue, capsys):
    """A doubt stays 3; one that waits at its target is no failure; what surfaced is over."""
    door = queue.rig.door(accept="busy", surface_after=None)
    started = queue.kiss("a")
    door.change(accept="drop", eof_after=None)
    doubt = queue.kiss("b")

    assert spooling.verify_open(None, as_object=False) == 3
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{started.delivery_id} fable delivered-start, proof enqueued: ")
    assert first.endswith("the target has it waiting; no model turn since")
    assert second == f"{doubt.delivery_id} fable unknown, proof none: {doubt.reason}"

    queue.change("UPDATE line SET state = 20 WHERE key = ?", doubt.delivery_id)
    assert spooling.verify_open(None, as_object=True) == 0
    (shown,) = said(capsys)["results"]
    assert ("verify", "delivered-start", started.delivery_id) == (
        shown["command"], shown["class"], shown["delivery_id"],
    )  # fmt: skip


def test_a_story_that_is_lost_hides_no_other(queue, capsys):
    """What cannot be asked for is said, and is still open."""
    door = queue.rig.door(accept="drop", eof_after=None)
    lost = queue.kiss("a")
    door.change(accept="busy", eof_after=0.0, surface_after=None)
    other = queue.kiss("b")
    queue.change("DELETE FROM event WHERE delivery = ?", lost.delivery_id)

    assert spooling.verify_open(None, as_object=False) == 3
    first, second = capsys.readouterr().out.splitlines()

    assert first == (
        f"{lost.delivery_id} - unknown, proof none: no delivery '{lost.delivery_id}' is known"
    )
    assert second.startswith(f"{other.delivery_id} fable delivered-start, ")


def test_a_whole_spool_is_said(queue, capsys):
    """And one that is not there yet."""
    assert spooling.fsck(None, as_object=False) == 0
    assert capsys.readouterr() == (f"fsck: there is no {queue.rig.state}/zdo.db yet\n", "")
    queue.put("a", "b")

    assert spooling.fsck(None, as_object=False) == 0
    assert capsys.readouterr() == (
        f"fsck: {queue.rig.state}/zdo.db is whole; lines: 2, entries: 2\n", "",
    )  # fmt: skip
    assert spooling.fsck(None, as_object=True) == 0
    shown = said(capsys)
    assert (1, "fsck", None, 0, "healthy", None) == tuple(
        shown[name] for name in ("v", "command", "class", "exit", "state", "saved")
    )


def test_a_damaged_spool_is_replaced_and_said(queue, capsys):
    """73, with where the damaged file is now and what was saved; asked again, all is well."""
    a, b = queue.put("a", "b")
    queue.change("UPDATE line SET body = x'78' WHERE key = ?", a)

    assert spooling.fsck(None, as_object=True) == 73
    told = capsys.readouterr()
    shown = json.loads(told.out)

    assert ("spool-unwritable", 73, "damaged", [a]) == tuple(
        shown[name] for name in ("class", "exit", "state", "damaged_lines")
    )
    moved = shown["saved"]["moved_to"]
    assert (2, 1) == (shown["saved"]["lines"], shown["saved"]["dead"])
    assert told.err == (
        f"zdo: spool-unwritable: {queue.rig.state}/zdo.db was damaged; it is kept as {moved};"
        " what was saved and is in doubt: zdo spool list\n"
    )
    with sqlite3.connect(moved) as link:
        assert (2,) == link.execute("SELECT count(*) FROM line").fetchone()
    link.close()
    assert (spooling.fsck(None, as_object=False), ["dead", "queued"]) == (0, queue.states(a, b))
    capsys.readouterr()

    queue.change("UPDATE line SET body = x'79' WHERE key = ?", b)
    assert spooling.fsck(None, as_object=False) == 73
    assert f"damaged line: {b}" in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("as_object", [True, False])
def test_a_state_folder_that_cannot_be_used_is_73_everywhere(queue, capsys, as_object):
    """Each command names it in its one line."""
    with open(queue.rig.state, "wb"):
        pass
    commands = {
        "spool": lambda: spooling.listing(None, target=None, dead=False, as_object=as_object),
        "verify": lambda: spooling.verify_open(None, as_object=as_object),
    }
    for name, command in commands.items():
        assert command() == 73
        told = capsys.readouterr()
        assert told.err.startswith("zdo: spool-unwritable: ")
        assert not as_object or json.loads(told.out)["command"] == name


def test_a_file_that_is_not_ours_to_check_is_refused(queue, capsys):
    """`zdo fsck` of a newer zdo's file, or of a link, changes nothing."""
    queue.put("a")
    queue.change("CREATE TABLE later(x)")
    queue.change("PRAGMA user_version=99")

    assert spooling.fsck(None, as_object=True) == 73
    shown = said(capsys)
    assert ("fsck", "spool-unwritable") == (shown["command"], shown["class"])
    assert "newer zdo" in shown["reason"]
