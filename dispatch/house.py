"""The ports of one zdo: environment, folders, clock, processes.  Values in, nothing read here."""

from __future__ import annotations

from dispatch import __version__
from registry.record import Record
from registry.targets import load_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from registry.clock import Clock
    from registry.home import Places
    from registry.processes import Processes
    from registry.targets import Config


class House(Record):
    """What the commands work with; the CLI assembles it from the machine, tests from fakes."""

    env: Mapping[str, str]
    places: Places
    clock: Clock
    processes: Processes
    draw: Callable[[], float]  # 0 to 1, at random
    python: str  # the interpreter that runs the wrapper
    root: str  # the folder that holds our packages

    def config(self) -> Config:
        """The configuration as it stands now, or ConfigInvalid."""
        return load_config(self.places, self.env, version=__version__)
