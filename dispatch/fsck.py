"""Is everything that is kept still what was kept?  A damaged database is replaced, and kept."""

from __future__ import annotations

import contextlib
import os
import stat

from dispatch import kept, whole, wreck
from dispatch.database import Database, told, turn
from dispatch.errors import DatabaseDamaged, DatabaseUnusable
from dispatch.salvage import clear_away, salvage
from registry.errors import LeaseBusy
from registry.filesystem import refuse_network
from registry.home import open_state
from registry.ids import parse_uuid
from registry.locks import take_lease
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from dispatch.house import House
    from dispatch.salvage import Saved
    from registry.home import Places

ABSENT, HEALTHY, DAMAGED = "absent", "healthy", "damaged"

_FOLDER_STATES = (kept.CLAIMED, kept.UNCERTAIN)


class Findings(Record):
    """What stands in the state folder, and what was done about it."""

    path: str
    state: str  # of the file as it was found: absent, healthy or damaged
    complaints: tuple[str, ...] = ()  # about the file
    damaged_lines: tuple[str, ...] = ()  # keys of rows that are not what was accepted
    odd_lines: tuple[str, ...] = ()  # keys of rows whose state zdo never wrote
    damaged_events: int = 0
    saved: Saved | None = None  # when it was damaged: what the new one has
    lines: int = 0  # that are kept now
    events: int = 0
    contradicted: tuple[str, ...] = ()  # keys of lines whose state the journal does not tell
    orphans: int = 0  # claimed lines that nobody tries any more
    stray_folders: tuple[str, ...] = ()  # attempts of lines that are not kept
    missing_folders: tuple[str, ...] = ()  # attempts of open lines, gone with their evidence


class _Look:
    """What a look at one file found."""

    def __init__(self) -> None:
        self.complaints: tuple[str, ...] = ()
        self.damaged: list[str] = []
        self.odd: list[str] = []
        self.damaged_events = 0
        self.lines = self.events = 0
        self.contradicted: list[str] = []
        self.claimed: list[str] = []  # their postboxes
        self.missing: set[str] = set()
        self.stray: set[str] = set()

    @property
    def is_healthy(self) -> bool:
        return not (self.complaints or self.damaged or self.odd or self.damaged_events)


def check(house: House) -> Findings:
    """What is wrong with what is kept.  A damaged database is replaced by what is whole in it.

    Others wait for their turn to write meanwhile.  Killed at any moment, nothing is
    lost, and asked again it does the same.
    """
    places, path = house.places, house.places.database
    if os.path.lexists(places.state):
        open_state(places)
    refuse_network(places.state)
    if not os.path.lexists(path):
        return Findings(path=path, state=ABSENT)
    with told(path):
        _refuse_what_is_no_file(path)
        refused = _open_once(path, house)
        with turn(path, house.clock):
            clear_away(path)
            found = now = _look_at(places, refused)
            saved = None
            if not found.is_healthy:
                saved = salvage(places, house.clock.now())
                now = _look_at(places, None)
    return Findings(
        path=path,
        state=HEALTHY if saved is None else DAMAGED,
        complaints=found.complaints,
        damaged_lines=tuple(found.damaged),
        odd_lines=tuple(found.odd),
        damaged_events=found.damaged_events,
        saved=saved,
        lines=now.lines,
        events=now.events,
        contradicted=tuple(now.contradicted),
        orphans=sum(_is_free(postbox, house) for postbox in now.claimed),
        stray_folders=tuple(sorted(now.stray)),
        missing_folders=tuple(sorted(now.missing)),
    )


def _refuse_what_is_no_file(path: str) -> None:
    # Also the one who may not write it: a new one would not help him.
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise DatabaseUnusable(path, "is not a plain file")
    finally:
        os.close(fd)


def _open_once(path: str, house: House) -> DatabaseUnusable | None:
    """Why the file cannot be opened as any command opens it; an older one is up to date then."""
    try:
        Database(path, house.clock).close()
    except DatabaseUnusable as error:
        return error
    return None


def _look_at(places: Places, refused: DatabaseUnusable | None) -> _Look:
    """What stands in the database; *refused*, or its like, when it is not ours to judge."""
    look, path = _Look(), places.database
    with contextlib.closing(wreck.connect(path)) as link:
        if refused is not None and not isinstance(refused, DatabaseDamaged):
            # Nothing to mend in a newer or older one, or in a stranger's.
            wreck.refuse_others(link, path)
            if wreck.is_older(link):
                raise refused
        look.complaints = wreck.complaints(link, path)
        if not look.complaints:
            _look_at_rows(link, look)
            _look_at_folders(link, look, set(os.listdir(places.attempts)))
    if refused is not None and not look.complaints:
        raise refused
    return look


def _look_at_rows(link: sqlite3.Connection, look: _Look) -> None:
    said: list[str] = []
    for row in wreck.rows(link, "event", whole.EVENT_COLUMNS, said):
        look.events += 1
        look.damaged_events += not whole.is_event(row)
    for row in wreck.rows(link, "line", whole.LINE_COLUMNS, said):
        _look_at_line(link, row, look)
    tip = wreck.counter(link, "event")
    readers = list(wreck.rows(link, "reader", whole.READER_COLUMNS, said))
    odd = [row["id"] for row in readers if whole.odd_of_reader(row, tip)]
    said += [f"reader {number} is not as zdo writes one" for number in odd]
    if not whole.is_pulse(list(wreck.rows(link, "pulse", whole.PULSE_COLUMNS, said))):
        said.append("the relay's own time is not one row")
    look.complaints = tuple(said)


def _look_at_line(link: sqlite3.Connection, row: dict[str, Any], look: _Look) -> None:
    key = row["key"] if isinstance(row["key"], str) else f"(row {row['id']})"
    look.lines += 1
    if whole.is_known_damage(row):
        return
    if not whole.is_whole(row):
        look.damaged.append(key)
        return
    if whole.odd_columns(row):
        look.odd.append(key)
        return
    if row["state"] == kept.CLAIMED:
        look.claimed.append(row["postbox"])
    if row["state"] in _FOLDER_STATES:
        look.missing.add(f"{key}.{row['attempts'] - kept.FIRST}")
    if whole.contradicts(row, wreck.story(link, key)):
        look.contradicted.append(key)


def _look_at_folders(link: sqlite3.Connection, look: _Look, there: set[str]) -> None:
    """Attempts without a line, and open lines without their attempt."""
    look.missing -= there
    for name in there:
        key, _, number = name.partition(".")
        is_attempt = number.isdecimal() and parse_uuid(key) == key
        if is_attempt and not link.execute("SELECT 1 FROM line WHERE key = ?", (key,)).fetchone():
            look.stray.add(name)


def _is_free(postbox: str, house: House) -> bool:
    """Whether a line that is claimed through *postbox* is in nobody's hands any more."""
    try:
        take_lease(house.places.locks, postbox, timeout_s=0, clock=house.clock).close()
    except LeaseBusy:
        return False
    return True
