"""What a pass of the relay works with."""

from __future__ import annotations

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.tally import Tally
    from registry.targets import Config


class Station(Record):
    """The queue of one machine, for the length of one pass."""

    house: House
    config: Config
    database: Database
    tally: Tally
    owner: str  # the claim token of this pass
    tried: set[str]  # the lines that had their turn in this pass
    told: Callable[[], None]  # called when the tally has grown
