"""What the shell offers behind a half-typed word.  Never fails, and is never waited for long.

What cannot be had is not offered.
"""

from __future__ import annotations

import contextlib

from dispatch.cli.commands import this_house
from dispatch.verdict import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dispatch.house import House

_DELIVERIES = 20
_MOST = 200  # a shell that shows more than that helps nobody


def classes(incomplete: str) -> list[str]:
    """The classes that begin so."""
    return [name for name in TABLE if name.startswith(incomplete)]


def target_ids(incomplete: str) -> list[str]:
    """The configured targets that begin so."""
    return _offered(incomplete, _targets)


def addresses(incomplete: str) -> list[str]:
    """The configured targets and the display names of running sessions that begin so."""
    return _offered(incomplete, _targets, _names)


def deliveries(incomplete: str) -> list[str]:
    """The latest deliveries whose ids begin so, the newest first."""
    return _offered(incomplete, _latest)


def _offered(incomplete: str, *sources: Callable[[House], Iterable[str]]) -> list[str]:
    found: dict[str, None] = {}  # each once, in its order
    for source in sources:
        # Whatever is wrong here, the command itself will say it.
        with contextlib.suppress(Exception):
            found |= dict.fromkeys(source(this_house()))
    fit = [word for word in found if word.startswith(incomplete) and word.isprintable()]
    return fit[:_MOST]


def _targets(house: House) -> list[str]:
    return [target.id for target in house.config().targets]


def _names(house: House) -> list[str]:
    from registry.rows import read_rows

    rows = read_rows(house.config().claude_dir, house.processes).rows
    return [row.name for row in rows if row.name]


def _latest(house: House) -> list[str]:
    from dispatch.database import told
    from dispatch.wreck import connect

    path = house.places.database
    with told(path), contextlib.closing(connect(path)) as link:
        asked = "SELECT delivery FROM event ORDER BY id DESC LIMIT 200"
        newest = dict.fromkeys(bytes(row[0]).decode() for row in link.execute(asked))
    return list(newest)[:_DELIVERIES]
