"""What is over gives its bytes back, and its key is never new again."""

from __future__ import annotations

import pytest

from dispatch import kept, prune, spool
from dispatch.errors import KeyConflict
from dispatch.outcome import Outcome
from dispatch.verdict import TABLE
from registry.ids import new_uuid
from tests.fakes.envelopes import DELIVERY
from tests.fakes.household import BEGAN, LINE, Household, a_draft, accept, asked, key_of

DAY_S = prune.DAY_S


@pytest.fixture
def home(tmp_path):
    """A household of one test."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def over(home, key=DELIVERY, *, state=kept.DELIVERED, at=BEGAN):
    """A line that came to *state* at *at*."""
    owner = new_uuid()
    with home.opened() as database, database.writing() as link:
        spool.accept(link, a_draft(key=key, owner=owner), at, 1.5)
        status = kept.DONE if state in (kept.SENT, kept.DELIVERED) else kept.DOUBT
        assert spool.settle(link, key, owner, Outcome(state, status), at)


def pruned(home, at):
    """The lines as (state, bytes), after the prune of that day."""
    with home.opened() as database:
        prune.once_a_day(database, at)
        with database.reading() as link:
            return [(line.state, len(line.body)) for line in kept.select(link, "ORDER BY id", ())]


@pytest.mark.parametrize(("days", "left"), [(29.9, len(LINE)), (30.1, 0)])
def test_a_delivery_that_is_a_month_old_has_no_bytes_any_more(home, days, left):
    """Its row stays."""
    over(home)

    assert [(kept.DELIVERED, left)] == pruned(home, BEGAN + days * DAY_S)


@pytest.mark.parametrize("state", [kept.UNCERTAIN, kept.DEAD])
def test_what_a_person_may_still_want_keeps_its_bytes(home, state):
    """In doubt or dead: it may be queued again."""
    over(home, state=state)
    home.queued(key_of(2))

    assert [(state, len(LINE)), (kept.QUEUED, len(LINE))] == pruned(home, BEGAN + 400 * DAY_S)


@pytest.mark.parametrize(("days", "state"), [(4.9, kept.SENT), (5.1, kept.DELIVERED)])
def test_a_delivery_is_looked_at_for_five_days(home, days, state):
    """Then it is over as it is: no transcript shows it any more."""
    over(home, state=kept.SENT)

    assert [(state, len(LINE))] == pruned(home, BEGAN + days * DAY_S)


def test_a_pruned_key_never_delivers_again(home):
    """Its verdict and its digest stay: the same line is known, another one a conflict."""
    over(home)
    pruned(home, BEGAN + 31 * DAY_S)

    with home.opened() as database:
        assert kept.DELIVERED == accept(database, a_draft(), asked()).state
        with pytest.raises(KeyConflict):
            accept(database, a_draft(b"tests are red"), asked(verdict=TABLE["unknown"]))


def test_it_is_done_once_a_day(home):
    """Between, nothing is even written."""
    over(home, at=BEGAN - 29.5 * DAY_S)
    pruned(home, BEGAN)

    assert [(kept.DELIVERED, len(LINE))] == pruned(home, BEGAN + 0.9 * DAY_S)
    assert [(kept.DELIVERED, 0)] == pruned(home, BEGAN + 1.1 * DAY_S)


def test_a_clock_that_was_set_back_does_not_put_it_off(home):
    """The last time lies in the future: it is done now, and from now on once a day again."""
    over(home, at=BEGAN - 40 * DAY_S)
    with home.opened() as database, database.writing() as link:
        link.execute("UPDATE pulse SET pruned_at = ?", (BEGAN + 365 * DAY_S,))

    assert [(kept.DELIVERED, 0)] == pruned(home, BEGAN)
    with home.opened() as database, database.reading() as link:
        assert (BEGAN,) == link.execute("SELECT pruned_at FROM pulse").fetchone()


def test_no_day_stands_still_for_a_heap(home):
    """A bounded part in one commit; the rest is the next day's."""
    for number in range(1, 4):
        over(home, key_of(number))
    before, prune._MOST = prune._MOST, 2
    try:
        first = pruned(home, BEGAN + 31 * DAY_S)
        second = pruned(home, BEGAN + 33 * DAY_S)
    finally:
        prune._MOST = before

    assert [0, 0, len(LINE)] == [size for _, size in first]
    assert [0, 0, 0] == [size for _, size in second]
