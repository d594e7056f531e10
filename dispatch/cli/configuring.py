"""`zdo target`: the configured recipients, changed without an editor."""

from __future__ import annotations

import json

from dispatch import configure
from dispatch.cli.answering import head, refuse
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import complain, speak
from dispatch.errors import DispatchError
from dispatch.render import clean
from registry.errors import RegistryError
from registry.ids import parse_uuid
from registry.record import Record, fields
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.house import House

ADD, EDIT, REMOVE = "add", "edit", "remove"
_DONE = {ADD: "added", EDIT: "changed", REMOVE: "removed"}
_SELECTORS = "--session, --name, --ticket or --tsid"


class Wish(Record):
    """What a target is to be."""

    what: str
    name: str
    selector: tuple[str, str] | None = None  # its kind, and the value as it was given
    postbox: str | None = None  # None: as it is; "": the station's


def wish_of(what: str, name: str, given: dict[str, str | None], postbox: str | None) -> Wish:
    """The wish for the target *name*; Usage when *given* has no selector where one is needed."""
    selectors = [(kind, value) for kind, value in given.items() if value is not None]
    if len(selectors) > 1 or (what == ADD and not selectors):
        raise Usage(f"give one of {_SELECTORS}")
    if not selectors and postbox is None:
        raise Usage(f"nothing is to be changed: give {_SELECTORS}, --carrier or --no-carrier")
    return Wish(what, name, selectors[0] if selectors else None, postbox)


def target(wish: Wish, session_id: str | None, *, as_object: bool) -> int:
    """`zdo target`: the exit status after *wish* stands in the configuration, or does not."""
    house = this_house(session_id)
    try:
        _write(wish, house)
        found = None if wish.what == REMOVE else house.config().target(wish.name)
    except (RegistryError, DispatchError) as error:
        return refuse("target", house, error, as_object=as_object)
    path = house.places.config_file
    if found is not None:
        _warn(found.kind, found.value, house)
    if as_object:
        told = {"what": wish.what, "target": found and fields(found), "path": path}
        status = {"class": None, "exit": 0}
        return speak([json.dumps(head("target", house.speaker, status) | told)])
    by = "" if found is None else f" ({found.kind} {found.value})"
    return speak([clean(f"{_DONE[wish.what]}: {wish.name}{by} in {path}")])


def _write(wish: Wish, house: House) -> None:
    if wish.what == REMOVE:
        configure.drop_target(house.places, wish.name)
        return
    is_new = wish.what == ADD
    configure.set_target(
        house.places, wish.name, wish.selector, wish.postbox, must_exist=not is_new
    )


def _warn(kind: str, value: str, house: House) -> None:
    """Say that nobody answers to it now; where that cannot be known nothing is said."""
    if kind not in ("session", "name"):
        return
    try:
        rows = read_rows(house.config().claude_dir, house.processes).rows
    except RegistryError:
        return
    wanted = parse_uuid(value) if kind == "session" else value
    if not any(wanted == (row.session_id if kind == "session" else row.name) for row in rows):
        complain(clean(f"zdo: warning: no running session has the {kind} {value} now"))
