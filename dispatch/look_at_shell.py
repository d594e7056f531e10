"""Looks at who calls zdo: this shell and its limits, and what starts the relay without one."""

from __future__ import annotations

import os
import resource
import sys

from carrier.run import find_binary
from dispatch import units
from dispatch.finding import ill, unknown, well
from dispatch.kiss import NESTED
from dispatch.units import cron, launchd, place, systemd
from dispatch.units.listing import listing_of
from dispatch.units.place import ABSENT, OTHER
from registry.errors import RegistryError
from registry.home import find_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Final

    from dispatch.finding import Finding
    from dispatch.house import House
    from dispatch.units import Unit
    from dispatch.units.listing import Heard

    Ask = Callable[[tuple[str, ...], Mapping[str, str]], Heard]

# Database, lease, journal, pipes, sockets and a keeper: a kiss has about twenty open.
ENOUGH_FILES: Final = 64
_BARE_PATH: Final = "/usr/bin:/bin"


def relay_starter(house: House, ask: Ask = listing_of) -> Finding:
    """Whether a scheduler starts the relay of this state folder, and as this zdo would say it."""
    starts = [each for each in _units(house) if _is_there(each, house, ask)]
    for unit in starts:
        states = dict(place.look(unit))
        again = f"zdo unit {unit.kind} --uninstall && zdo unit {unit.kind} --install"
        if OTHER in states.values():
            return ill(f"the unit of {unit.kind} is not what zdo would write now", again)
        if ABSENT in states.values():
            return ill(
                f"the unit of {unit.kind} is there in part", f"zdo unit {unit.kind} --install"
            )
        if unit.files and _is_active(unit, house, ask) is False:
            return ill(f"the unit of {unit.kind} is installed and not active", unit.begin)
    if starts:
        return well(f"started by {', '.join(each.kind for each in starts)}")
    return unknown("nothing is installed that starts a relay: zdo unit systemd, launchd or cron")


def cron_environment(house: House) -> Finding:
    """What a cron line without any variable would find, as against this shell."""
    bare = {"HOME": house.places.home, "PATH": _BARE_PATH}
    places = find_places(bare)
    differ = [
        what
        for what, here, there in (
            ("configuration", house.places.config_file, places.config_file),
            ("state folder", house.places.state, places.state),
        )
        if here != there
    ]
    try:
        name = house.config().claude_bin
    except RegistryError:
        name = "claude"
    if find_binary(name, _BARE_PATH) is None:
        differ.append(name)
    if differ:
        told = ", ".join(differ)
        return unknown(f"bare cron would not find: {told}; the line of zdo unit cron names them")
    return well("bare cron would find the same")


def limits(_house: House) -> Finding:
    """Whether a kiss may open as many files as it needs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < ENOUGH_FILES:
        return ill(f"a process may open only {soft} files")
    return well(f"open files: {soft}")


def nested(house: House) -> Finding:
    """Whether this shell runs under a carrier, from where nothing may be kissed."""
    if NESTED in house.env:
        return ill(f"{NESTED} is set: this runs under a carrier, and no kiss starts from there")
    return well("not under a carrier")


def _units(house: House) -> list[Unit]:
    """The unit of each scheduler under its usual label, as it would be written now."""
    claude = find_binary(house.config().claude_bin, house.env.get("PATH", os.defpath))
    program = units.program_of(sys.argv[0], house.python)
    start, log = units.start_of(program, house.env, claude), house.places.relay_log
    folder = systemd.folder(house.env, house.places.home)
    agents = f"{house.places.home}/Library/LaunchAgents"
    return [
        systemd.units(start, units.LABEL, folder, log),
        launchd.agent(start, units.LABEL, agents, log),
        cron.crontab(start),
    ]


def _is_there(unit: Unit, house: House, ask: Ask) -> bool:
    if unit.files:
        return any(state != ABSENT for _, state in place.look(unit))
    return _is_active(unit, house, ask) is True


def _is_active(unit: Unit, house: House, ask: Ask) -> bool | None:
    """Whether the scheduler lists it; None where it cannot be asked."""
    heard = ask(unit.listing, house.env)
    return None if heard.text is None else units.is_listed(unit.mark, heard.text)
