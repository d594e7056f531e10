"""The running sessions in a table and as JSON: who, what, for how long, through which postbox."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from dispatch import present
from dispatch.present import lasting
from dispatch.rig.rig import P
from dispatch.rig.script import T
from registry.errors import RegistryUnreadable
from tests.fakes.evidence import OTHER
from tests.fakes.household import Household
from tests.fakes.tickets import Tickets


@pytest.fixture
def home(tmp_path):
    """A household."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def shown(home: Household) -> dict[str, object]:
    """The company as JSON."""
    return json.loads(json.dumps(present.as_json(present.meet(home.house()))))


def test_a_session_is_shown_with_all_that_is_known_of_it(home):
    """The row as it is, and beside it what it works on, its postbox and its door."""
    home.runs(statusUpdatedAt=1_000)

    (row,) = shown(home)["sessions"]

    assert (T, "fable", "idle") == (row["session_id"], row["name"], row["status"])
    assert (None, P, True) == (row["ticket"], row["postbox"], row["reachable"])
    assert row["status_s"] > 0
    assert row["ticket_reason"]


def test_a_ticket_is_shown_with_its_source_and_its_time(home):
    """Which source bound it, and since when."""
    session = home.runs() or home.registry.add(sessionId=OTHER, name="second")
    tickets = Tickets(home.house().places.home)
    tickets.add("TK-1", "create", 60)
    tickets.add("TK-1", "action", correlation_id=f"{session.pid}")

    row = next(each for each in shown(home)["sessions"] if each["session_id"] == OTHER)

    assert ("TK-1", "correlation") == (row["ticket"]["id"], row["ticket"]["source"])
    assert row["ticket"]["at"].endswith("Z")
    table = present.lines(present.meet(home.house()), every=False)
    assert any("TK-1 (correlation)" in line for line in table)
    assert any("TK REQUIRED" in line for line in table)


def test_the_postbox_is_the_one_that_would_carry(home):
    """Its configured target's own, else the station's; none where none is set or it is one."""
    home.configure(
        f'[targets.fable]\nname = "fable"\ncarrier_session = "{OTHER}"\n'
        f'[targets.none]\nname = "second"\ncarrier_session = ""\n'
        f'[targets.odd]\nname = "third"\ncarrier_session = "twins"\n'
        f'[targets.twins]\nname = "twin"\n'
    )
    for name in ("fable", "second", "third", "fourth", "twin", "twin"):
        home.registry.add(name=name)
    home.registry.add(name="box", sessionId=P)

    found = {row["name"]: row["postbox"] for row in shown(home)["sessions"]}

    assert {
        "fable": OTHER,
        "second": None,
        "third": None,
        "fourth": P,
        "twin": P,
        "box": P,
    } == found
    table = "\n".join(present.lines(present.meet(home.house()), every=False))
    assert " none " in table
    assert " is one itself " in table


def test_the_skipped_are_counted_and_told_on_request(home):
    """5,000 stale rows are one line, unless somebody wants them all."""
    home.runs()
    for _ in range(3):
        home.registry.add(damage="torn")
    company = present.meet(home.house())

    assert "3 skipped: zdo sessions --all" == present.lines(company, every=False)[-1]
    assert 3 == sum(": torn, " in line for line in present.lines(company, every=True))


def test_what_could_not_be_seen_is_told(home):
    """A ledger that is a folder is no ledger, and the others are shown all the same."""
    home.runs()
    path = Tickets(home.house().places.home).path
    os.mkdir(path)
    company = present.meet(home.house())

    assert path in shown(home)["blind"][0]
    assert "1 not seen: zdo sessions --all" == present.lines(company, every=False)[-1]
    assert any(line.startswith(f"not seen: {path}") for line in present.lines(company, every=True))


def test_with_nobody_there_the_table_has_its_head(home):
    """And nothing else."""
    assert 1 == len(present.lines(present.meet(home.house()), every=False))


def test_an_unreadable_registry_is_a_refusal(home):
    """Nobody can be called absent then."""
    shutil.rmtree(home.registry.sessions)
    with open(home.registry.sessions, "w", encoding="ascii"):
        pass

    with pytest.raises(RegistryUnreadable):
        present.meet(home.house())


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "-"),
        (0.0, "0s"),
        (59.9, "59s"),
        (60.0, "1m"),
        (3599.0, "59m"),
        (7200.0, "2h"),
        (86400.0 * 9.5, "9d"),
    ],
)
def test_a_length_of_time_is_one_whole_unit(seconds, expected):
    """Enough for a person."""
    assert expected == lasting(seconds)
