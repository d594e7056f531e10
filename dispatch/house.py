"""The ports of one zdo: environment, folders, clock, processes.  Values in, nothing read here."""

from __future__ import annotations

from dispatch import __version__
from dispatch.sender import ANONYMOUS
from registry.record import Record
from registry.resolve import Scene
from registry.rows import read_rows
from registry.targets import load_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from registry.clock import Clock
    from registry.home import Places
    from registry.processes import Processes
    from registry.roster import Roster
    from registry.rows import Listing
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
    speaker: str = ANONYMOUS  # who asks, for whatever it is

    def config(self) -> Config:
        """The configuration as it stands now, or ConfigInvalid."""
        return load_config(self.places, self.env, version=__version__)

    def scene(self, config: Config) -> Scene:
        """Who runs now, or RegistryUnreadable; who works on what is looked at when it is asked."""
        listing = read_rows(config.claude_dir, self.processes)
        return Scene(config, listing, self._look(config, listing))

    def queue_scene(self, config: Config) -> Scene:
        """As `scene`; a configured target that needs the roster has it looked at now.

        Nobody may wait for a long ledger while the spool is being read.
        """
        scene = self.scene(config)
        if any(target.kind in ("ticket", "tsid") for target in config.targets):
            scene.look()
        return scene

    def _look(self, config: Config, listing: Listing) -> Callable[[], Roster]:
        seen: list[Roster] = []

        def look() -> Roster:
            if not seen:
                # A kiss by name or id never pays for what is imported here.
                from registry.roster import call_roll

                found = call_roll(
                    config,
                    listing,
                    places=self.places,
                    processes=self.processes,
                    env=self.env,
                    now=self.clock.now(),
                )
                seen.append(found)
            return seen[0]

        return look
