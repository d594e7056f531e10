"""How a command of the database is answered: a sentence or one object, also when it is refused."""

from __future__ import annotations

import contextlib
import json

from dispatch import keep
from dispatch.cli.commands import this_house
from dispatch.cli.speech import complain, speak
from dispatch.errors import CursorRefused, DispatchError, SessionDeleted, SessionUnknown
from dispatch.judge import class_of_error
from dispatch.render import clean, failure_line
from dispatch.result import VERSION
from dispatch.verdict import TABLE
from registry.clock import iso
from registry.errors import RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dispatch.database import Database
    from dispatch.house import House

_REFUSALS = (RegistryError, DispatchError)


def with_database(
    command: str,
    session_id: str | None,
    ask: Callable[[Database, House], int],
    *,
    as_object: bool,
) -> int:
    """The status of what *ask* says, or of the refusal that it ended with, and that is said."""
    house = this_house(session_id)
    try:
        with contextlib.closing(keep.open_database(house)) as database:
            return ask(database, house)
    except _REFUSALS as error:
        return refuse(command, house, error, as_object=as_object)


def refuse(command: str, house: House, error: Exception, *, as_object: bool) -> int:
    """The status of what *error* means, after it was said in its one of two forms."""
    verdict = TABLE[class_of_error(error)]
    reason, advice = str(error), getattr(error, "hint", verdict.advice)
    complain(failure_line(verdict.name, reason, advice))
    if as_object:
        status = {"class": verdict.name, "exit": verdict.exit}
        status |= {"error": getattr(error, "error", None)}
        whole = head(command, house.speaker, status) | _facts(error)
        speak([json.dumps(whole | {"reason": reason, "advice": advice})], quietly=True)
    return verdict.exit


def _facts(error: Exception) -> dict[str, Any]:
    """What *error* knows besides its sentence.

    Who is refused for what it is has no `cursor`, not even an empty one.
    """
    if isinstance(error, SessionDeleted):
        deleted_at = iso(error.deleted_at)
        return {"session_id": error.session, "deleted_at": deleted_at, "hint": error.hint}
    if isinstance(error, SessionUnknown):
        return {"session_id": error.session}
    if isinstance(error, CursorRefused):
        tip = getattr(error, "tip", None)
        return {"cursor": error.cursor} | ({} if tip is None else {"tip": tip})
    return {}


def say(command: str, house: House, told: dict[str, Any], line: str, *, as_object: bool) -> int:
    """0 after *told*, or for a person *line*, is on stdout."""
    whole = head(command, house.speaker, {"class": None, "exit": 0}) | told
    return speak([json.dumps(whole) if as_object else clean(line)])


def head(command: str, sender: str, status: dict[str, Any] | None = None) -> dict[str, Any]:
    """What an object begins with: whose it is, how it ended, who asked."""
    return {"v": VERSION, "command": command} | (status or {}) | {"sender": sender}
