"""P16: a damaged spool is noticed and not used; what is whole in it is saved, and it is kept.

`damage_trials` is called by the suite with few trials and by `make torture` with more.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest

from dispatch import fsck, kept, whole
from dispatch.database import Database
from dispatch.errors import DatabaseUnusable
from tests.fakes.spools import a_house, events_in, fill, lines_in

LINES = 60
NEVER_CHANGES = ("key", "digest", "origin", "station", "target", "sender", "given_key", "idle")


class Trials:
    """What became of the trials, counted."""

    def __init__(self) -> None:
        self.harmless = 0  # everything reads back as it was
        self.detected = 0  # fsck has moved the file away and saved what is whole
        self.unseen = 0  # a time, a count or the journal's text differs; no line does
        self.silent = 0  # SQLite alone finds the file sound, and a line in it is another
        self.saved_lines = self.lost_lines = self.dead_lines = self.doubted_lines = 0
        self.saved_events = self.lost_events = 0

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in vars(self).items())


def damage_trials(count: int, seed: int, lines: int = LINES) -> Trials:
    """Damage a filled spool *count* times, each in another way; every trial asserts."""
    trials = Trials()
    with tempfile.TemporaryDirectory() as folder:
        original = f"{folder}/original.db"
        fill(original, range(1, lines + 1))
        truth = lines_in(original), events_in(original)
        content = Path(original).read_bytes()
        for number in range(count):
            chance = random.Random(seed * 1_000_003 + number)  # noqa: S311 - trials repeat
            state = f"{folder}/state"
            try_once(state, damaged(content, chance), truth, trials)
            shutil.rmtree(state)
    return trials


def damaged(content: bytes, chance: random.Random) -> bytes:
    """*content* with 1 to 64 bytes changed, here and there or in a row, cut out, or cut off."""
    raw, size = bytearray(content), chance.randint(1, 64)
    way = chance.choice(("scattered", "run", "bit", "cut out", "cut off", "cut short"))
    at = chance.randrange(len(raw) - size)
    if way == "scattered":
        for place in chance.sample(range(len(raw)), size):
            raw[place] = chance.randrange(256)
    elif way == "run":
        raw[at : at + size] = chance.randbytes(size)
    elif way == "bit":
        raw[at] ^= 1 << chance.randrange(8)
    elif way == "cut out":
        del raw[at : at + size]
    elif way == "cut off":
        del raw[-size:]
    else:
        del raw[at:]
    return bytes(raw)


def try_once(state: str, content: bytes, truth: tuple[Any, Any], trials: Trials) -> None:
    """One trial in a state folder of its own."""
    lines, events = truth
    by_key = {row["key"]: row for row in lines.values()}
    house = a_house(state)
    places = house.places
    Path(places.database).write_bytes(content)
    trials.silent += is_silent(places.database, lines)
    believed(places.database, lines)

    found = fsck.check(house)

    # Whatever was found: a database is in place, and every line in it is one that was accepted.
    now = lines_in(places.database)
    for number, row in now.items():
        if not whole.is_known_damage(row):
            was = by_key[row["key"]]
            assert_same_line(was, row)
            # In its place in the order, and not to be tried again unless it was to be.
            assert number == was["id"] or not whole.may_go(row)
            assert whole.may_go(was) or not whole.may_go(row)
    if found.saved is None:
        assert fsck.HEALTHY == found.state
        assert lines.keys() == now.keys()
        same = now == lines and events_in(places.database) == events
        trials.harmless += same
        trials.unseen += not same
        return
    trials.detected += 1
    count(found.saved, trials)
    assert content == Path(found.saved.moved_to).read_bytes()
    assert len(now) == found.saved.lines == found.lines
    assert len(events_in(places.database)) == found.saved.events == found.events
    again = fsck.check(house)
    assert (fsck.HEALTHY, ()) == (again.state, again.contradicted)
    assert again.lines == found.lines


def count(saved: Any, trials: Trials) -> None:
    """Add what was *saved* of one file."""
    trials.saved_lines += saved.lines - saved.dead - saved.doubted
    trials.doubted_lines += saved.doubted
    trials.dead_lines += saved.dead
    trials.lost_lines += saved.lost_lines
    trials.saved_events += saved.events
    trials.lost_events += saved.lost_events


def assert_same_line(was: dict[str, Any], row: dict[str, Any]) -> None:
    """What never changes is what it was, the bytes of the line above all."""
    for name in (*NEVER_CHANGES, "body"):
        assert was[name] == row[name], name


def believed(path: str, lines: dict[int, dict[str, Any]]) -> None:
    """What a relay would carry before anybody ran fsck: nothing but lines that were accepted."""
    found: tuple[kept.Kept, ...] = ()
    with contextlib.suppress(DatabaseUnusable), contextlib.closing(Database(path)) as database:  # noqa: SIM117
        with database.reading() as link:
            found = kept.select(link, "WHERE state < 20 ORDER BY id", ())
    for line in found:
        if line.is_whole:
            was = next(row for row in lines.values() if row["key"] == line.key)
            assert (was["body"], was["target"]) == (line.body, line.target)


def is_silent(path: str, lines: dict[int, dict[str, Any]]) -> bool:
    """Whether SQLite finds the file sound although a line in it is not what was accepted."""
    try:
        with contextlib.closing(sqlite3.connect(path)) as link:
            if link.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
                return False
        found = lines_in(path)
    except (sqlite3.Error, UnicodeDecodeError):
        return False
    names = (*NEVER_CHANGES, "body")
    return any(row[name] != lines[number][name] for number, row in found.items() for name in names)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_damage_is_noticed_or_harmless(seed, capsys):
    """P16: no altered line passes as good; and without seal and digest some would."""
    trials = damage_trials(50, seed)

    with capsys.disabled():
        print(f"\nP16, seed {seed}: {trials}")
    assert 50 == trials.detected + trials.harmless + trials.unseen
    assert trials.detected > 25
    assert trials.saved_lines > 20 * trials.detected
    # The control: SQLite's own check alone lets altered lines through.
    assert trials.silent > 0
