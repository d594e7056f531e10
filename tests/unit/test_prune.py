"""What is over gives its bytes back, and its key is never new again."""

from __future__ import annotations

import os

import pytest

from carrier.layout import PASSING
from dispatch import kept, prune, spool
from dispatch.errors import KeyConflict
from dispatch.outcome import Outcome
from dispatch.verdict import TABLE
from registry.errors import StateUnsafe
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
        prune.once_a_day(database, f"{home.state}/attempts", at)
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


# Folders that nobody needs: a line lies in each.


def folder(home, name, *, at=BEGAN):
    """An attempt's folder, last changed at *at*."""
    path = f"{home.state}/attempts/{name}"
    os.mkdir(path, 0o700)
    with open(f"{path}/intent", "wb") as file:
        file.write(LINE)
    os.utime(path, (at, at))
    return path


@pytest.mark.parametrize(
    ("state", "stays"),
    [
        (kept.SENT, False),
        (kept.DELIVERED, False),
        (kept.DEAD, False),
        (kept.UNCERTAIN, True),
        (None, True),
    ],
)
def test_what_a_killed_process_left_of_a_line_that_is_over_goes(home, state, stays):
    """The folder of an open line is evidence; that of an unknown one is for a person to see."""
    if state is None:
        home.queued(key_of(2))
    else:
        over(home, state=state)
    path = folder(home, f"{DELIVERY}.1")

    pruned(home, BEGAN + 1.1 * DAY_S)

    assert stays == os.path.exists(path)


@pytest.mark.parametrize(("name", "stays"), [("permit", False), ("withdrawn", False), ("x", True)])
def test_what_a_kiss_laid_out_and_never_claimed_goes_where_that_is_proven(home, name, stays):
    """Without a key nobody will ever come back for it; an emptied folder proves nothing."""
    home.database().close()
    path = folder(home, f"{key_of(9)}.1")
    os.rename(f"{path}/intent", f"{path}/{name}")
    os.utime(path, (BEGAN, BEGAN))

    pruned(home, BEGAN + 1.1 * DAY_S)

    assert stays == os.path.exists(path)


def test_a_line_under_way_keeps_its_folder(home):
    """Its dispatcher may be dead for days; whoever judges it needs it."""
    home.queued()
    home.taken()
    path = folder(home, f"{DELIVERY}.1")

    pruned(home, BEGAN + 9 * DAY_S)

    assert os.path.exists(path)


@pytest.mark.parametrize("name", [f".0123456789ab.{PASSING}", f"{DELIVERY}.1.0123.{PASSING}"])
def test_what_was_on_its_way_when_somebody_was_killed_goes(home, name):
    """Nobody knows it by that name."""
    over(home, state=kept.UNCERTAIN)
    path = folder(home, name)

    pruned(home, BEGAN + 1.1 * DAY_S)

    assert not os.path.exists(path)


@pytest.mark.parametrize("name", [f"{DELIVERY}.2", f".0123456789ab.{PASSING}"])
@pytest.mark.parametrize("age", [0.9 * DAY_S, 0.0, -400 * DAY_S])
def test_what_is_of_today_stays(home, name, age):
    """Its dispatcher may be at work; and what a clock that was set back dates in the future."""
    over(home, state=kept.DEAD)
    path = folder(home, name, at=BEGAN + 2 * DAY_S - age)

    pruned(home, BEGAN + 2 * DAY_S)

    assert os.path.exists(path)


class Passing:
    """The system, in which one folder goes between its listing and the look at it."""

    lstat = staticmethod(os.lstat)

    @staticmethod
    def listdir(path):
        """One more than there is."""
        return [f"{key_of(5)}.1", *os.listdir(path)]


def test_a_folder_that_goes_by_itself_is_no_trouble(home):
    """Kisses come and go meanwhile, and the pass goes on."""
    over(home)
    path = folder(home, f"{DELIVERY}.1")
    before, prune.os = prune.os, Passing
    try:
        pruned(home, BEGAN + 2 * DAY_S)
    finally:
        prune.os = before

    assert not os.path.exists(path)


def test_a_folder_of_attempts_that_cannot_be_read_is_told(home):
    """Nothing is swept, and nothing is pruned unseen."""
    with home.opened() as database, pytest.raises(StateUnsafe, match="No such file"):
        prune.once_a_day(database, f"{home.state}/gone", BEGAN)
