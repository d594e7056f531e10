"""Which rows of a database can be believed."""

from __future__ import annotations

import json

import pytest

from dispatch import kept, whole
from dispatch.senders import NO_CURSOR
from tests.fakes.spools import LIVES, a_line, a_reader, an_event, seal

KEY = "a0000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key", KEY),
        ("digest", bytes(32)),
        ("origin", "box"),
        ("station", "box"),
        ("target", "sonnet"),
        ("sender", "somebody"),
        ("given_key", ""),
        ("idle", 0),
        ("seal", bytes(16)),
        ("body", b"tests are red"),
        ("body", b""),
        ("key", None),
        ("digest", "text"),
        ("idle", 1.0),
        ("seal", None),
        ("body", "text"),
        ("state", None),
    ],
)
def test_a_line_of_which_anything_changed_is_not_whole(name, value):
    """Its bytes, to whom, from whom, under which key: one by one."""
    line = a_line(1)

    assert whole.is_whole(line)
    assert not whole.is_whole(line | {name: value})


@pytest.mark.parametrize("state", kept.STATE_NAMES)
def test_what_may_change_is_no_part_of_it(state):
    """A line is whole in every state."""
    changes = {"state": state, "attempts": 117, "due_at": 2.5, "owner": KEY, "kept": 0}

    assert whole.is_whole(a_line(1) | changes)


def test_only_a_delivered_line_may_have_given_its_bytes_back():
    """Pruning keeps digest and seal."""
    pruned = a_line(1) | {"body": b""}

    assert whole.is_whole(pruned | {"state": kept.DELIVERED})
    assert not whole.is_whole(pruned | {"state": kept.SENT})
    assert not whole.is_whole(pruned | {"state": kept.DEAD})
    assert not whole.is_whole(pruned | {"state": kept.DELIVERED, "seal": bytes(16)})


def test_a_text_that_is_sealed_again_is_still_not_the_digests():
    """Damage does not seal; but body and digest have to agree in any case."""
    line = a_line(1) | {"body": b"other"}

    assert not whole.is_whole(line | {"seal": seal(line)})


@pytest.mark.parametrize("life", LIVES)
def test_what_zdo_writes_is_not_odd(life):
    """Every state with its status."""
    state, status, _ = life

    assert () == whole.odd_columns(a_line(1, state=state, status=status))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", 14),
        ("state", "10"),
        ("status", "1.000.000"),
        ("status", "4.00x.000"),
        ("status", "4.0000.00"),
        ("status", "4.000"),
        ("status", ""),
        ("attempts", 99),
        ("attempts", 1 << 20),
        ("tries", -1),
        ("due_at", float("inf")),
        ("claimed_at", float("nan")),
        ("settled_at", 1),
        ("owner", "nobody"),
        ("postbox", KEY.upper().replace("A0", "B0")),
        ("kept", 2),
        ("born", None),
        ("created_at", "1.5"),
        ("sender", b"cron"),
    ],
)
def test_what_zdo_never_writes_is_odd(name, value):
    """A flipped byte that makes no state, no time, no id."""
    assert (name,) == whole.odd_columns(a_line(1) | {name: value})


def test_a_line_that_was_found_damaged_is_not_found_again():
    """It is dead, and says why."""
    line = a_line(1, state=kept.DEAD, status=kept.DAMAGED)

    assert whole.is_known_damage(line)
    assert not whole.is_known_damage(line | {"state": kept.QUEUED})
    assert not whole.is_known_damage(line | {"status": kept.REFUSED})


BEGUN = json.dumps({"nonce": "n", "attempt": 1, "result": {"delivery_id": KEY}})


@pytest.mark.parametrize(
    "event",
    [
        an_event(KEY, "judged", "surfaced"),
        an_event(KEY, "accepted", None),
        an_event(KEY, "accepted", None, body=BEGUN),
        an_event(KEY, "of a later zdo", None, body="{}"),
    ],
)
def test_an_entry_that_names_itself_twice_is_one(event):
    """Class and delivery stand in the columns and in the text."""
    assert whole.is_event(event)


@pytest.mark.parametrize(
    "changes",
    [
        {"class": "surfacee"},
        {"class": None},
        {"class": b"surfaced"},
        {"delivery": KEY.replace("1", "2")},
        {"at": float("inf")},
        {"at": 1},
        {"kind": None},
        {"kind": b"judged"},
        {"body": "{"},
        {"body": "[]"},
        {"body": '{"result": 1}'},
        {"body": None},
        {"body": "[" * 100_000},
    ],
)
def test_an_entry_that_contradicts_itself_is_none(changes):
    """Nor one whose text cannot be read."""
    assert not whole.is_event(an_event(KEY, "judged", "surfaced") | changes)


@pytest.mark.parametrize("life", LIVES)
def test_a_story_told_right_contradicts_nothing(life):
    """Refusals of somebody else's kiss with the key tell nothing of the line."""
    state, status, story = life
    line = a_line(1, state=state, status=status)

    assert not whole.contradicts(line, story)
    assert not whole.contradicts(line, (*story, ("refused", "key-conflict")))
    assert not whole.contradicts(line, ())


ACCEPTED, CLAIMED, QUEUED = ("accepted", None), ("claimed", None), ("queued", "queued")
REQUEUED = ("requeued", "queued")


@pytest.mark.parametrize(
    ("state", "status", "story", "contradicted"),
    [
        (kept.QUEUED, kept.FRESH, (ACCEPTED,), True),
        (kept.QUEUED, kept.AGAIN, (QUEUED, CLAIMED), True),
        (kept.QUEUED, kept.AGAIN, (QUEUED, CLAIMED, ("judged", "unknown")), True),
        (kept.QUEUED, kept.AGAIN, (QUEUED, CLAIMED, ("verified", "surfaced")), True),
        (kept.DEAD, kept.AGAIN, (ACCEPTED, ("judged", "door-refused")), True),
        (kept.DEAD, kept.WAITING, (ACCEPTED, ("judged", "surfaced")), True),
        (kept.DEAD, kept.OUT_OF_TIME, (ACCEPTED,), True),
        (kept.DEAD, kept.AGAIN, (ACCEPTED, ("judged", "of a later zdo")), False),
        (kept.DEAD, kept.REFUSED, (ACCEPTED,), False),
        (kept.QUEUED, kept.FRESH, (ACCEPTED, ("judged", "unknown"), REQUEUED), False),
        (kept.QUEUED, kept.FRESH, (ACCEPTED, ("judged", "unknown"), REQUEUED, CLAIMED), True),
        (kept.DEAD, kept.AGAIN, (QUEUED, ("dropped", "interrupted")), False),
        (kept.QUEUED, kept.WAITING, (QUEUED, ("deferred", "target-not-running")), False),
        (kept.DELIVERED, kept.DONE, (ACCEPTED, ("judged", "carrier-exit")), True),
        (kept.SENT, kept.DONE, (QUEUED,), True),
        (kept.DELIVERED, kept.DONE, (ACCEPTED, ("judged", "door-held")), True),
        (
            kept.DELIVERED,
            kept.DONE,
            (ACCEPTED, ("judged", "door-held"), ("verified", "not-surfaced")),
            False,
        ),
        (kept.DELIVERED, kept.DONE, (ACCEPTED, ("judged", "surfaced"), ACCEPTED), False),
        (kept.CLAIMED, kept.FRESH, (QUEUED,), False),
        (kept.UNCERTAIN, kept.DOUBT, (QUEUED,), False),
    ],
)
def test_a_line_that_would_go_again_or_counts_as_delivered_needs_the_journals_word(
    state, status, story, contradicted
):
    """Twice at the door, or silently lost: the two that must not be believed."""
    assert contradicted is whole.contradicts(a_line(1, state=state, status=status), story)


@pytest.mark.parametrize(
    ("rows", "is_one"),
    [
        ([{"id": 1, "at": 1.5, "watched": 1.5, "pruned_at": 1.5}], True),
        ([{"id": 2, "at": 1.5, "watched": 1.5, "pruned_at": 1.5}], False),
        ([{"id": 1, "at": 1.5, "watched": float("inf"), "pruned_at": 1.5}], False),
        ([{"id": 1, "at": None, "watched": 1.5, "pruned_at": 1.5}], False),
        ([], False),
    ],
)
def test_the_pulse_is_one_row(rows, is_one):
    """Without it no relay knows how long it has watched."""
    assert is_one is whole.is_pulse(rows)


def test_a_reader_is_one_by_its_types_and_its_session():
    """In a page of another table none is seen, and nobody is made up."""
    row = a_reader(1)

    assert whole.is_reader(row)
    assert whole.is_reader(row | {"session": "cron", "cursor": -5})
    for name, value in [
        ("id", "1"),
        ("session", b"cron"),
        ("session", ""),
        ("session", "anonymous"),
        ("session", row["session"].upper()),
        ("name", 1.5),
        ("registered_at", "kind"),
        ("deleted_at", None),
        ("cursor", None),
    ]:
        assert not whole.is_reader(row | {name: value})


def test_a_reader_beyond_the_journal_is_odd():
    """As one whose columns hold what zdo never writes there."""
    row = a_reader(7)

    assert () == whole.odd_of_reader(row, 7)
    assert ("cursor",) == whole.odd_of_reader(row, 6)
    assert () == whole.odd_of_reader(row | {"cursor": NO_CURSOR, "deleted_at": 2.5}, 0)
    assert ("name", "cursor") == whole.odd_of_reader(row | {"name": "\n", "cursor": 7}, 7)
