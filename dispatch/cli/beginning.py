"""`zdo init`: from nothing to a configuration that works, without a question."""

from __future__ import annotations

import json
import os

from dispatch import configure, postboxes
from dispatch.birth import NAME, claude_of, make_postbox
from dispatch.claude_version import ask
from dispatch.cli.answering import head, refuse
from dispatch.cli.commands import this_house
from dispatch.cli.speech import speak
from dispatch.errors import DispatchError
from dispatch.postboxes import MISPLACED, MISSING, STATION
from dispatch.render import clean
from registry.errors import ConfigInvalid, RegistryError
from registry.home import open_state
from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.house import House

_NEXT = "zdo sessions lists who runs; zdo kiss NAME 'tests are green' tells one of them"


class Begun(Record):
    """What there is after `zdo init`."""

    claude: str
    version: str | None  # None: it does not say
    state: str
    config: str
    postbox: str
    made: bool  # False: it was there before, and nothing was changed


def init(session_id: str | None, *, as_object: bool) -> int:
    """`zdo init`: 0 when everything that a kiss needs is there afterwards, else what is missing.

    Killed in the middle, the next call goes on.
    """
    house = this_house(session_id)
    try:
        begun = begin(house)
    except (RegistryError, DispatchError) as error:
        return refuse("init", house, error, as_object=as_object)
    if as_object:
        whole = head("init", house.speaker, {"class": None, "exit": 0})
        return speak([json.dumps(whole | fields(begun) | {"next": _NEXT})])
    return speak([clean(line) for line in _lines(begun)])


def begin(house: House) -> Begun:
    """Folders, postbox and configuration are there; what is missing comes as its own error."""
    config = house.config()
    claude = claude_of(house)
    if not os.path.isdir(config.claude_dir):
        raise ConfigInvalid(
            house.places.config_file,
            f"there is no folder {config.claude_dir}: start claude once, or set claude_config_dir",
            key="station.claude_config_dir",
        )
    open_state(house.places)
    version = ask(claude, house.env, config.claude_dir).version
    now = next((each for each in postboxes.postboxes(house) if STATION in each.used_by), None)
    made = now is None or now.state in (MISSING, MISPLACED)
    if now is None or made:
        postbox = make_postbox(house, claude, name=NAME)
        configure.set_postbox(house.places, postbox)
    else:
        postbox = now.session_id
    return Begun(claude, version, house.places.state, house.places.config_file, postbox, made)


def _lines(begun: Begun) -> list[str]:
    postbox = f"made, and written into {begun.config}" if begun.made else "is there already"
    return [
        f"claude   {begun.claude} ({begun.version or 'it names no version'})",
        f"state    {begun.state}",
        f"postbox  {begun.postbox}, {postbox}",
        f"next: {_NEXT}",
    ]
