"""The kept lines: which state may become which, by whom, and inside its own bytes."""

from __future__ import annotations

import hashlib
import os
import random

import pytest

from dispatch import kept, outcome, spool
from dispatch.database import Database
from dispatch.errors import ClaimLost, KeyConflict
from dispatch.outcome import Outcome
from registry.ids import new_uuid
from registry.record import replace

KEY = "a0000000-0000-4000-8000-000000000001"
OWNER = "b0000000-0000-4000-8000-000000000001"
OTHER = "b0000000-0000-4000-8000-000000000002"
POSTBOX = "90000000-0000-4000-8000-000000000001"
NOW = 1_796_048_000.25
BORN = 7.25

SENT = Outcome(kept.SENT, kept.DONE)
DELIVERED = outcome.closed()
DOUBT = Outcome(kept.UNCERTAIN, kept.DOUBT)
REFUSED = Outcome(kept.DEAD, kept.REFUSED)
AGAIN = Outcome(kept.DEAD, kept.AGAIN)
WAITING = outcome.queued(status=kept.WAITING)


@pytest.fixture
def database(tmp_path):
    """An open database of one test."""
    opened = Database(str(tmp_path / "zdo.db"))
    yield opened
    opened.close()


def draft(body=b"tests are green", owner=OWNER, **changes):
    """A line that asks to be kept."""
    plain = {
        "key": KEY,
        "digest": hashlib.sha256(body).digest(),
        "body": body,
        "target": "fable",
        "owner": owner,
        "postbox": POSTBOX,
    }
    return spool.Draft(**(plain | changes))


def find(database):
    """The line as it stands."""
    with database.reading() as link:
        return kept.find(link, KEY)


def write(database, act, *given):
    """What the function *act* of the spool says, in a transaction of its own."""
    with database.writing() as link:
        return act(link, *given)


def accept(database, asked):
    """A kiss with *asked*."""
    return write(database, spool.accept, asked, NOW, BORN)


def enqueue(database, asked):
    """A kiss with *asked* that only keeps it."""
    return write(database, spool.enqueue, asked, NOW, BORN)


def claim(database, owner=OWNER):
    """The relay takes the line as it stands."""
    write(database, spool.claim, [find(database)], owner, POSTBOX, NOW)


# How a line comes into each state.


def settled(becomes):
    """A line that was claimed, and then settled so."""

    def make(database):
        accept(database, draft())
        assert write(database, spool.settle, KEY, OWNER, becomes, NOW)

    return make


def rested(becomes):
    """A queued line that nobody tried."""

    def make(database):
        enqueue(database, draft())
        assert write(database, spool.rest, KEY, becomes, NOW)

    return make


STATES = {
    "nothing": lambda _: None,
    "queued": lambda database: enqueue(database, draft()),
    "waiting": rested(WAITING),
    "claimed": lambda database: accept(database, draft()),
    "sent": settled(SENT),
    "uncertain": settled(DOUBT),
    "delivered": settled(DELIVERED),
    "dead": settled(AGAIN),
    "given up": rested(outcome.given_up()),
    "refused": settled(REFUSED),
    "damaged": rested(outcome.damaged()),
}
MADE = [name for name in STATES if name != "nothing"]
FREE = ("dead", "given up")  # provably never at the door, and nobody will try it
OPEN = ("claimed", "uncertain")


@pytest.fixture(params=STATES)
def state(request, database):
    """The name of a state, in which the line now is."""
    STATES[request.param](database)
    return request.param


def now_is(database):
    """State and status of the line; None when there is none."""
    line = find(database)
    return None if line is None else (line.state, line.status)


# Who may do what in which state: the rest of the table is "nothing changes".


def test_a_kiss_claims_what_is_new_or_provably_free(database, state):
    """Anything else is told as it stands; a claim of a dead owner is judged first."""
    before = find(database)
    number = 1 if before is None else before.next_attempt

    found = accept(database, draft(owner=OTHER))

    if state in ("nothing", *FREE):
        line = find(database)
        assert (number, kept.CLAIMED, OTHER) == (found, line.state, line.owner)
        assert number == line.attempts - kept.FIRST
    else:
        assert before == found == find(database)


def test_a_line_is_queued_when_it_is_new_or_provably_free(database, state):
    """None says that it waits for the relay now; else it is told as it stands."""
    before = find(database)

    found = enqueue(database, draft(owner=OTHER))

    if state in ("nothing", *FREE):
        assert found is None
        assert (kept.QUEUED, kept.FRESH) == now_is(database)
    else:
        assert before == found == find(database)


def test_the_relay_claims_only_what_is_queued(database, state):
    """All of its lines, or ClaimLost and none of them."""
    line = find(database)
    if line is None:
        return
    if state in ("queued", "waiting"):
        claim(database)
        found = find(database)
        assert (kept.CLAIMED, OWNER, POSTBOX) == (found.state, found.owner, found.postbox)
        assert (line.attempts + 1, line.tries + 1) == (found.attempts, found.tries)
    else:
        with pytest.raises(ClaimLost, match=KEY):
            claim(database)
        assert line == find(database)


@pytest.mark.parametrize("becomes", [SENT, DELIVERED, DOUBT, REFUSED, AGAIN, WAITING])
def test_the_owner_settles_its_own_claim_and_nothing_else(database, state, becomes):
    """A verdict that comes late, on a line that somebody has settled, changes nothing."""
    before = find(database)

    ours = write(database, spool.settle, KEY, OWNER, becomes, NOW)

    assert ours == (state == "claimed")
    if ours:
        assert (becomes.state, becomes.status) == now_is(database)
        assert (becomes.due_at, becomes.kept) == (find(database).due_at, find(database).kept)
    else:
        assert before == find(database)


def test_a_stranger_settles_nothing(database, state):
    """A second kiss with the key, refused for its own reasons, does not touch the first."""
    before = find(database)

    assert not write(database, spool.settle, KEY, OTHER, AGAIN, NOW)
    assert before == find(database), state


@pytest.mark.parametrize("becomes", [DOUBT, REFUSED, AGAIN, WAITING])
def test_a_later_look_settles_what_is_open_and_nothing_else(database, state, becomes):
    """An orphan, or a doubt; a delivery is never lowered and a dead letter never revived."""
    before = find(database)

    assert write(database, spool.settle_doubt, KEY, becomes, NOW) == (state in OPEN)
    if state in OPEN:
        assert (becomes.state, becomes.status) == now_is(database)
    else:
        assert before == find(database)


@pytest.mark.parametrize("becomes", [SENT, DELIVERED])
def test_a_delivery_lifts_everything_below_it(database, state, becomes):
    """Dead or queued again, once it is seen to be in, its key must not deliver once more."""
    before = find(database)

    lifted = write(database, spool.settle_doubt, KEY, becomes, NOW)

    assert lifted == (state not in ("nothing", "delivered"))
    if lifted:
        assert becomes.state == find(database).state
    else:
        assert before == find(database)


@pytest.mark.parametrize("becomes", [WAITING, outcome.given_up(), DOUBT])
def test_a_line_that_nobody_tried_rests_only_while_it_is_queued(database, state, becomes):
    """One that was claimed meanwhile is left alone."""
    before = find(database)
    queued = state in ("queued", "waiting")

    assert write(database, spool.rest, KEY, becomes, NOW) == queued
    if queued:
        assert (becomes.state, becomes.status) == now_is(database)
    else:
        assert before == find(database)


@pytest.mark.parametrize("name", ["uncertain", *FREE, "refused"])
def test_a_line_is_queued_again_with_all_its_patience(database, name):
    """Its place is its old one, its attempts go on counting, its tries begin anew."""
    STATES[name](database)
    before = find(database)

    write(database, spool.queue_again, before, 9.5)

    after = find(database)
    assert (kept.QUEUED, kept.FRESH, 1) == (after.state, after.status, after.kept)
    assert (before.id, before.attempts) == (after.id, after.attempts)
    assert (kept.FIRST, 9.5, 1.5) == (after.tries, after.born, after.due_at)


@pytest.mark.parametrize("name", ["queued", "waiting", "uncertain", *FREE, "refused"])
def test_a_line_is_given_up_by_whoever_has_just_read_it(database, name):
    """It is kept no more."""
    STATES[name](database)

    write(database, spool.give_up, find(database), REFUSED, NOW)

    assert (kept.DEAD, kept.REFUSED, 0) == (*now_is(database), find(database).kept)


# What was read is not what stands there any more.


def somebody_queues_and_claims(database):
    """Another zdo has queued the line again, and the relay is trying it."""
    write(database, spool.queue_again, find(database), BORN)
    claim(database, OTHER)


def somebody_tries_it_to_the_same_end(database):
    """As above, and it came to the same doubt: only the count of attempts tells."""
    somebody_queues_and_claims(database)
    write(database, spool.settle, KEY, OTHER, DOUBT, NOW)


@pytest.mark.parametrize(
    "meanwhile", [somebody_queues_and_claims, somebody_tries_it_to_the_same_end]
)
@pytest.mark.parametrize(
    "by_hand",
    [
        lambda link, line: spool.queue_again(link, line, BORN),
        lambda link, line: spool.give_up(link, line, REFUSED, NOW),
    ],
    ids=["queue again", "give up"],
)
def test_what_a_person_decided_on_an_old_look_is_lost(database, meanwhile, by_hand):
    """Queued again while a carrier runs it would be delivered twice."""
    settled(DOUBT)(database)
    seen = find(database)
    meanwhile(database)
    stands = find(database)

    with pytest.raises(ClaimLost, match=KEY):
        write(database, by_hand, seen)
    assert stands == find(database)


def test_a_claim_of_several_lines_is_of_all_or_of_none(database):
    """One was given up meanwhile: the others stay queued, and nothing of the transaction stays."""
    keys = [KEY[:-1] + str(number) for number in range(3)]
    for key in keys:
        enqueue(database, draft(key=key))
    with database.reading() as link:
        lines = [kept.find(link, key) for key in keys]
    write(database, spool.give_up, lines[2], AGAIN, NOW)

    with pytest.raises(ClaimLost, match=keys[2]):
        write(database, spool.claim, lines, OWNER, POSTBOX, NOW)

    with database.reading() as link:
        found = [kept.find(link, key) for key in keys]
    assert lines[:2] == found[:2]
    assert kept.DEAD == found[2].state


def test_a_line_that_was_tried_since_it_was_read_is_not_claimed(database):
    """It is queued as before, but its next attempt has another number and another folder."""
    enqueue(database, draft())
    seen = find(database)
    claim(database, OTHER)
    write(database, spool.settle, KEY, OTHER, WAITING, NOW)

    with pytest.raises(ClaimLost):
        write(database, spool.claim, [seen], OWNER, POSTBOX, NOW)
    assert kept.QUEUED == find(database).state


# Keys.


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(
    "changes", [{"body": b"x", "digest": b"x"}, {"target": "sonnet"}, {"digest": b"x"}]
)
@pytest.mark.parametrize("ask", [accept, enqueue])
def test_a_known_key_for_another_line_is_a_conflict(database, name, changes, ask):
    """By bytes or by target, in every state, and the line stays what it is."""
    STATES[name](database)
    before = find(database)

    with pytest.raises(KeyConflict, match="to fable"):
        ask(database, replace(draft(owner=OTHER), **changes))
    assert before == find(database)


def test_the_same_line_is_no_conflict(database):
    """Who asks, and from which postbox, does not make it another one."""
    accept(database, draft())

    spool.refuse_conflict(find(database), draft(owner=OTHER, postbox="", sender="else", idle=1))


@pytest.mark.parametrize("ask", [accept, enqueue])
def test_a_name_that_means_a_session_by_now_is_the_line_of_once(database, ask):
    """Kept while nobody bore it, asked for again under its key: the same command, no conflict."""
    enqueue(database, draft(target="name:fable", spelled="name:fable"))
    before = find(database)

    assert before == ask(database, draft(target=OTHER, spelled="name:fable"))
    with pytest.raises(KeyConflict):
        ask(database, draft(target=OTHER, spelled=OTHER))


@pytest.mark.parametrize("name", ["queued", "dead", "uncertain"])
def test_a_number_that_a_folder_has_is_used_by_no_row(database, name):
    """Nothing else of the line changes."""
    STATES[name](database)
    before = find(database)

    write(database, spool.skip_attempt, KEY)

    assert replace(before, attempts=before.attempts + 1) == find(database)


# What a new start gives a line.


def test_patience_begins_when_a_line_is_accepted(database):
    """Kept for the relay later, it has not waited since the relay was installed."""
    accept(database, draft())
    write(database, spool.settle, KEY, OWNER, outcome.queued(), NOW)

    assert (BORN, kept.FIRST, 1) == (
        find(database).born, find(database).tries, find(database).kept
    )  # fmt: skip


def test_a_dead_letter_that_is_tried_again_has_its_patience_before_it(database):
    """Given up after all its tries, then kissed again: it is as a new one, with its old number."""
    enqueue(database, draft())
    for _ in range(24):
        claim(database)
        write(database, spool.settle, KEY, OWNER, outcome.queued(), NOW)
    write(database, spool.rest, KEY, outcome.given_up(), NOW)
    assert (24, 1) == (find(database).tries - kept.FIRST, find(database).kept)

    assert 25 == write(database, spool.accept, draft(), NOW, 99.5)
    line = find(database)
    assert (kept.FIRST, 99.5, 0) == (line.tries, line.born, line.kept)


def test_a_line_that_a_queue_holds_stays_in_it(database):
    """A doubt about it, settled later, can be queued again by the relay itself."""
    enqueue(database, draft())
    claim(database)
    write(database, spool.settle, KEY, OWNER, DOUBT, NOW)

    assert 1 == find(database).kept


# Width.


def many(database, count):
    """So many queued lines, short ones, so that they fill their pages to the last bytes."""
    keys = [f"{KEY[:-4]}{number:04d}" for number in range(count)]
    with database.writing() as link:
        for number, key in enumerate(keys):
            asked = draft(b"x" * (number * 37 % 60 + 1), key=key)
            spool.enqueue(link, asked, NOW + number, BORN)
    return keys


def change(link, key, draw):
    """One change of the line *key*, drawn at random."""
    line = kept.find(link, key)
    at = NOW + draw.random() * 1e6 + 0.001
    becomes = draw.choice(
        [SENT, DELIVERED, DOUBT, REFUSED, AGAIN, WAITING, outcome.queued(at), outcome.given_up()]
    )
    if line.state == kept.QUEUED:
        if draw.random() < 0.7:
            spool.claim(link, [line], new_uuid(), new_uuid(), at)
        else:
            spool.rest(link, key, becomes, at)
    elif line.state == kept.CLAIMED:
        if draw.random() < 0.7:
            spool.settle(link, key, line.owner, becomes, at)
        else:
            spool.settle_doubt(link, key, becomes, at)
    elif draw.random() < 0.5:
        spool.queue_again(link, line, draw.random() + 1)
    else:
        asked = draft(line.body, key=key, owner=new_uuid(), postbox=new_uuid())
        spool.accept(link, asked, at, draw.random() + 1)
        spool.settle_doubt(link, key, becomes, at)


def pages(database):
    """The pages of the file, those that the index gave back among them, and its size."""
    with database.reading() as link:
        (count,) = link.execute("PRAGMA page_count").fetchone()
    return count, os.path.getsize(database.path)


def width(value):
    """How many bytes the record of a row takes for *value*, its serial type left out."""
    if isinstance(value, float):
        # SQLite keeps a whole number as one, and that is shorter.
        return 8 if value % 1 else width(int(value))
    if isinstance(value, int):
        return next(
            n for n in (0, 1, 2, 3, 4, 6, 8) if n and -(1 << 8 * n - 1) <= value < 1 << 8 * n - 1
        )
    return len(value)


def widths(database):
    """The width of each row, column by column."""
    with database.reading() as link:
        rows = link.execute("SELECT * FROM line ORDER BY id").fetchall()
    return [tuple(map(width, row)) for row in rows]


def test_thousands_of_changes_never_change_the_width_of_a_row(database):
    """On a full disk a row can be changed only inside its own bytes."""
    draw = random.Random(7)  # noqa: S311 - a test's dice
    keys = many(database, 500)
    before = pages(database), widths(database)

    for _ in range(50):
        with database.writing() as link:
            for key in draw.choices(keys, k=100):
                change(link, key, draw)

    assert before == (pages(database), widths(database))
    with database.reading() as link:
        lines = kept.select(link, "", ())
    assert all(line.is_whole for line in lines)
    assert set(kept.STATE_NAMES) == {line.state for line in lines}


@pytest.mark.parametrize("column", ["owner", "postbox", "status"])
def test_a_column_that_grew_would_have_shown(database, column):
    """The control: a few letters more in each row, and the file has more pages."""
    many(database, 500)
    before = pages(database)

    with database.writing() as link:
        link.execute(f"UPDATE line SET {column} = {column} || '1234567890'")  # noqa: S608

    assert before < pages(database)


def test_a_line_that_was_tried_a_hundred_times_is_settled_in_its_own_bytes(database):
    """Its number needs one byte more from the 28th on; a claim pays for that, a verdict never."""
    accept(database, draft())
    for _ in range(100):
        before = widths(database)
        write(database, spool.settle, KEY, OWNER, AGAIN, NOW)
        assert before == widths(database)
        accept(database, draft())
