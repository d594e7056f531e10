"""The ports of one zdo: environment, folders, clock, processes.  Values in, nothing read here."""

from __future__ import annotations

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from registry.clock import Clock
    from registry.home import Places
    from registry.processes import Processes


class House(Record):
    """What the commands work with; the CLI assembles it from the machine, tests from fakes."""

    env: Mapping[str, str]
    places: Places
    clock: Clock
    processes: Processes
    python: str  # the interpreter that runs the wrapper
    root: str  # the folder that holds our packages
