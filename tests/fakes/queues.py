"""The queue of a rig, worked from this process: with a clock and a chance that a test sets."""

from __future__ import annotations

import contextlib
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

from dispatch import keep, kept, shelf
from dispatch.errand import Order
from dispatch.house import House
from dispatch.kiss import kiss
from dispatch.relay import alone, relay
from dispatch.rig.rig import ROOT
from dispatch.tally import Tally
from registry.clock import Clock
from registry.home import find_places
from registry.processes import Processes
from tests.fakes.envelopes import P, T
from tests.fakes.evidence import OTHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.database import Database
    from dispatch.kept import Kept
    from dispatch.result import Result
    from dispatch.rig.rig import Rig

DAY_S = 86_400.0
Q = "90000000-0000-4000-8000-000000000001"

# Two sessions, each with a postbox of its own.
CONFIG = f"""\
[carrier]
settle_s = 0.05
timeout_s = 20

[targets.fable]
session = "{T}"
carrier_session = "{P}"

[targets.other]
session = "{OTHER}"
carrier_session = "{Q}"
"""


class Ahead(Clock):
    """The machine's clock, *ahead* of it by some seconds; those that only grow stay true."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        """As the machine, and so much later."""
        return super().now() + self.ahead


class Queue:
    """The lines that wait in *rig*, and the relay that carries them."""

    def __init__(self, rig: Rig, draw: float = 0.5):
        self.rig, self.clock, self.draw = rig, Ahead(), draw

    def house(self, **changes: Any) -> House:
        """The ports of the rig, with *changes*."""
        plain: dict[str, Any] = {
            "env": self.rig.env,
            "places": find_places(self.rig.env),
            "clock": self.clock,
            "processes": Processes(),
            "draw": lambda: self.draw,
            "python": sys.executable,
            "root": str(ROOT),
        }
        return House(**(plain | changes))

    def kiss(self, line: str, to: str = "fable", **more: Any) -> Result:
        """What a kiss said."""
        order = Order(address=to, take_line=line.encode, sender="anonymous", **more)
        return kiss(order, self.house())

    def put(self, *lines: str, to: str = "fable", **more: Any) -> list[str]:
        """The delivery ids of *lines*, which wait now."""
        found = [self.kiss(line, to, queue=True, **more) for line in lines]
        assert ["queued"] * len(lines) == [each.verdict.name for each in found], found
        return [str(each.delivery_id) for each in found]

    def relay(self, seconds: float = 50.0) -> Tally:
        """What one pass did."""
        house, tally = self.house(), Tally()
        with alone(house):
            relay(house, seconds, tally, lambda _: None)
        return tally

    def later(self, seconds: float) -> None:
        """Let *seconds* pass."""
        self.clock.ahead += seconds

    @contextlib.contextmanager
    def database(self) -> Iterator[Database]:
        """The open database."""
        with contextlib.closing(keep.open_database(self.house())) as database:
            yield database

    def line(self, delivery: str) -> Kept:
        """The row of *delivery*."""
        with self.database() as database, database.reading() as link:
            found = kept.find(link, delivery)
        assert found is not None
        return found

    def states(self, *deliveries: str) -> list[str]:
        """The state of each of *deliveries*."""
        return [kept.STATE_NAMES[self.line(each).state] for each in deliveries]

    def listed(self, target: str | None = None, *, dead: bool = False) -> list[dict[str, Any]]:
        """What `zdo spool list --json` shows."""
        with self.database() as database:
            return shelf.listing(database, target, dead=dead)

    def change(self, statement: str, *values: object) -> None:
        """Let something happen to the file that no command does."""
        with contextlib.closing(sqlite3.connect(f"{self.rig.state}/zdo.db")) as link:
            link.execute(statement, values)
            link.commit()
