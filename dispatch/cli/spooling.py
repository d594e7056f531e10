"""The commands around the queue: spool list, requeue, drop; verify --open; fsck."""

from __future__ import annotations

import json

from dispatch import kept, render, shelf
from dispatch.cli.answering import head, say, with_database
from dispatch.cli.commands import fail, this_house
from dispatch.cli.speech import complain, speak
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.result import Result, as_json
from dispatch.story import story_of
from dispatch.verdict import OPEN, TABLE
from dispatch.verify import look_again
from registry.errors import RegistryError
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.database import Database
    from dispatch.house import House

_REFUSALS = (RegistryError, DispatchError)


def listing(session_id: str | None, *, target: str | None, dead: bool, as_object: bool) -> int:
    """`zdo spool list`: every kept line and what holds it."""

    def ask(database: Database, house: House) -> int:
        lines = shelf.listing(database, target, dead=dead)
        if as_object:
            return speak([json.dumps(head("spool", house.speaker) | {"lines": lines})])
        return speak(render.spool_lines(lines))

    return with_database("spool", session_id, ask, as_object=as_object)


def requeue(delivery: str, session_id: str | None, *, looked: bool, as_object: bool) -> int:
    """`zdo spool requeue`: the relay may try the line again."""

    def ask(database: Database, house: House) -> int:
        result = shelf.requeue(database, house, delivery, looked=looked)
        return _say_line(database, house, result, "queued again", as_object=as_object)

    return with_database("spool", session_id, ask, as_object=as_object)


def drop(delivery: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo spool drop`: the line is given up."""

    def ask(database: Database, house: House) -> int:
        result = shelf.drop(database, house, delivery)
        return _say_line(database, house, result, "given up", as_object=as_object)

    return with_database("spool", session_id, ask, as_object=as_object)


def verify_open(session_id: str | None, *, as_object: bool) -> int:
    """`zdo verify --open`: every delivery that is not over, asked for again."""

    def ask(database: Database, house: House) -> int:
        with database.reading() as link:
            keys = kept.open_ones(link)
        results = [_found(database, key, house) for key in keys]
        if as_object:
            shown = [as_json(result) for result in results]
            lost = speak([json.dumps(head("verify", house.speaker) | {"results": shown})])
        else:
            lost = speak([render.open_line(result) for result in results])
        still = any(result.verdict.fate == OPEN for result in results)
        return (TABLE["unknown"].exit if still else 0) or lost

    return with_database("verify", session_id, ask, as_object=as_object)


def _found(database: Database, key: str, house: House) -> Result:
    """What a later look at *key* finds; what cannot be looked at keeps none of the others."""
    try:
        return look_again(database, story_of(database, key), house)
    except _REFUSALS as error:
        verdict = TABLE["unknown"]  # it is still open, whatever is wrong with its story
        return Result(command="verify", verdict=verdict, delivery_id=key, reason=str(error))


def fsck(session_id: str | None, *, as_object: bool) -> int:
    """`zdo fsck`: 0 when the spool is whole, 73 when it was damaged, and is a new one now."""
    from dispatch.fsck import check

    house = this_house(session_id)
    try:
        found = check(house)
    except _REFUSALS as error:
        return fail("fsck", class_of_error(error), str(error), as_object=as_object)
    name = reason = None
    if found.saved is not None:
        name = "spool-unwritable"
        reason = f"{found.path} was damaged; it is kept as {found.saved.moved_to}"
        complain(
            render.failure_line(name, reason, "what was saved and is in doubt: zdo spool list")
        )
    status = 0 if name is None else TABLE[name].exit
    saved = None if found.saved is None else fields(found.saved)
    whole = {"v": 1, "command": "fsck", "class": name, "exit": status, "reason": reason}
    whole |= {"sender": house.speaker} | fields(found) | {"saved": saved}
    lines = [json.dumps(whole)] if as_object else render.fsck_lines(found)
    lost = speak(lines, quietly=status != 0)
    return status or lost


def _say_line(
    database: Database, house: House, result: Result, done: str, *, as_object: bool
) -> int:
    with database.reading() as link:
        line = kept.find(link, str(result.delivery_id))
        shown = None if line is None else shelf.shown(link, line, {})
    sentence = f"{done}: {result.delivery_id} to {result.target.id}"
    return say("spool", house, {"line": shown}, sentence, as_object=as_object)
