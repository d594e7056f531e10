"""The journal read once: from a moment on, and nobody who writes waits for it."""

from __future__ import annotations

import contextlib
import gc
import json
import sqlite3

import pytest

from dispatch.database import Database
from dispatch.report.gather import CHUNK, DOUBTED, gather
from tests.fakes.envelopes import T
from tests.fakes.household import BEGAN, Household, key_of


@pytest.fixture
def home(tmp_path):
    """A house with an empty database."""
    made = Household(tmp_path)
    made.database().close()
    return made


def put(home, *entries):
    """Write *entries* (number, at after BEGAN, kind, class, more of the result) to the journal."""
    link = sqlite3.connect(f"{home.state}/zdo.db")
    rows = []
    for number, at, kind, name, *more in entries:
        told = {"target": {"id": "fable", "session_id": T}, "proof": "none"} | dict(*more)
        body = json.dumps({"class": name, "result": told, "evidence": {}})
        rows.append((key_of(number), BEGAN + at, kind, name, body))
    link.executemany("INSERT INTO event(delivery, at, kind, class, body) VALUES(?,?,?,?,?)", rows)
    link.commit()
    link.close()


def gathered(home, since=None, target=None):
    """The figures of *home*."""
    with home.opened() as database:
        return gather(database, None if since is None else BEGAN + since, target)


def done(number, at=0.0):
    """A delivery that surfaced a second after it began."""
    return (
        (number, at, "accepted", None),
        (number, at + 1, "judged", "delivered-start", {"proof": "surfaced"}),
    )


def test_an_empty_journal(home):
    """Nothing is nothing."""
    assert (0, 0) == (gathered(home).entries, gathered(home, since=0).deliveries)


def test_all_of_it(home):
    """More than one look takes is read whole, and once."""
    put(home, *(each for number in range(CHUNK) for each in done(number, number)))
    found = gathered(home)

    assert (2 * CHUNK, CHUNK, CHUNK) == (found.entries, found.deliveries, found.fates["surfaced"])


def test_only_what_began_since(home):
    """A delivery that began earlier is left out, whatever became of it since."""
    put(home, (1, 0, "accepted", None), *done(2, 50), (1, 99, "judged", "door-held"))

    assert 2 == gathered(home).deliveries
    assert (2, 1, 0) == (
        gathered(home, since=10).entries,
        gathered(home, since=10).deliveries,
        gathered(home, since=10).fates["held"],
    )
    assert 0 == gathered(home, since=1000).deliveries


def test_what_a_first_look_has_a_second_one_adds_to(home):
    """A delivery whose entries lie in two looks is one."""
    put(home, (0, -9, "refused", "usage"), (1, 0, "accepted", None))
    put(home, *(each for n in range(2, CHUNK // 2 + 2) for each in done(n, 1)))
    put(home, (1, 50, "judged", "delivered-start", {"proof": "surfaced"}))
    found = gathered(home, since=-1)

    assert (CHUNK // 2 + 1, CHUNK // 2 + 1) == (found.deliveries, found.fates["surfaced"])
    assert 50.0 == found.surfaced.most_s


def test_a_clock_that_was_set_back_hides_nothing(home):
    """What was written under an early clock in between ends no search, and is not counted."""
    put(home, *done(1, -500), *done(2, 100), *done(3, -400), *done(4, 101))

    assert 2 == gathered(home, since=50).deliveries


def test_a_clock_that_was_wrong_for_hundreds_of_entries_ends_no_search(home):
    """Behind them the search goes on."""
    half = DOUBTED // 2
    put(home, *done(1, 10))
    put(home, *(((n, -900, "refused", "usage")) for n in range(2, half)))
    put(home, *(((n, 20, "refused", "usage")) for n in range(half, half + 600)))

    assert 601 == gathered(home, since=0).deliveries


def test_the_search_ends(home):
    """Far behind the last entry that is young enough nothing is looked for."""
    put(home, *done(1, 900), *(each for n in range(2, DOUBTED) for each in done(n, -n)))

    assert 0 == gathered(home, since=500).deliveries


def test_for_one_target(home):
    """By its address, or by its session."""
    put(home, *done(1), (2, 0, "refused", "usage", {"target": {"id": "api"}}))

    assert 1 == gathered(home, target="fable").deliveries
    assert 1 == gathered(home, target=T).deliveries
    assert 1 == gathered(home, target="api").deliveries
    assert 0 == gathered(home, target="nobody").deliveries


def test_what_waits_the_spool_knows(home):
    """A queued line is one, after a try that failed too."""
    home.queued(key_of(7))
    put(home, (7, 5, "claimed", None), (7, 6, "judged", "carrier-exit"))

    assert 1 == gathered(home).fates["waiting"]


def test_a_damaged_body_costs_only_its_facts(home):
    """The entry counts; the others are whole."""
    put(home, *done(1))
    home.alter("INSERT INTO event(delivery, at, kind, class, body) VALUES('x', 1.5, 'judged',"
               " 'door-held', '{\"result\": ')")  # fmt: skip

    assert (2, 1) == (gathered(home).deliveries, gathered(home).fates["held"])


def test_half_a_character_in_an_address_is_no_damage(home):
    """A shell can hand over what no text is; JSON has it written out."""
    put(home, (1, 0, "refused", "target-unknown", {"target": {"id": "fa\udcffble"}}))

    assert "fa\udcffble" == gathered(home).targets[0].target


class Busy(Database):
    """A database that somebody else writes after every look."""

    written = 0

    @contextlib.contextmanager
    def reading(self):
        """As ever; then another connection commits, and waits for nobody."""
        with super().reading() as link:
            yield link
        with contextlib.closing(sqlite3.connect(self.path, timeout=0)) as other:
            other.execute("UPDATE pulse SET watched = watched + 1")
            other.commit()
        self.written += 1


def test_a_writer_comes_in_between(home):
    """No look is held while entries are counted, and all of them are counted."""
    put(home, *(each for number in range(CHUNK) for each in done(number)))

    with contextlib.closing(Busy(f"{home.state}/zdo.db")) as database:
        found = gather(database, None, None)

        assert 2 * CHUNK == found.entries
        assert database.written >= 4


def test_the_collector_is_as_it_was(home):
    """On again, or off if it was off."""
    assert gc.isenabled()
    gathered(home)
    assert gc.isenabled()
    gc.disable()
    try:
        gathered(home)
        assert not gc.isenabled()
    finally:
        gc.enable()
