"""`zdo unit`: how other programs start the relay: printed, installed, taken away, looked at."""

from __future__ import annotations

import json
import os
import sys

from carrier.run import find_binary
from dispatch import render, units
from dispatch.cli.commands import Usage, fail, this_house
from dispatch.cli.speech import speak
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.units import cron, launchd, place, systemd
from dispatch.units.listing import Heard, listing_of
from registry.errors import RegistryError
from registry.home import open_state
from registry.record import Record, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dispatch.house import House
    from dispatch.units import Unit

    Ask = Callable[[tuple[str, ...], Mapping[str, str]], Heard]

CRON, SYSTEMD, LAUNCHD = "cron", "systemd", "launchd"
PRINT, INSTALL, UNINSTALL, STATUS = "print", "install", "uninstall", "status"

_UNTOUCHED = "the crontab is as it was: only the next command changes it"


class Answer(Record):
    """What became of a wish."""

    files: tuple[tuple[str, str], ...] = ()  # each path, and how it stands now
    active: bool | None = None  # whether the scheduler has it; None: not asked, or not known
    reason: str | None = None  # why that is not known
    next: str | None = None  # the one command to run
    text: str | None = None  # what there is to be installed


class Wish(Record):
    """What is to become of which unit."""

    kind: str
    label: str
    what: str


def wish_of(kind: str, label: str, *, install: bool, uninstall: bool, status: bool) -> Wish:
    """What was wished for the unit of *kind*; Usage for more than one thing, or an odd *label*."""
    given = {INSTALL: install, UNINSTALL: uninstall, STATUS: status}
    wished = [name for name, is_given in given.items() if is_given]
    if len(wished) > 1:
        raise Usage("give one of --install, --uninstall and --status")
    if not units.is_plain_label(label):
        raise Usage(
            f"a label is 1 to {units.LONGEST_LABEL} letters, digits, dots, hyphens and"
            f" underscores, a letter first, not {label!r}"
        )
    return Wish(kind, label, wished[0] if wished else PRINT)


def unit(wish: Wish, session_id: str | None, *, as_object: bool, ask: Ask = listing_of) -> int:
    """`zdo unit`: the exit status after *wish* was fulfilled.

    *ask* tells what a scheduler has; nothing here ever tells one what to do.
    """
    house = this_house(session_id)
    try:
        answer = _fulfilled(wish.what, unit_of(wish, house), house, ask)
    except (RegistryError, DispatchError) as error:
        return fail("unit", class_of_error(error), str(error), as_object=as_object)
    if not as_object:
        return speak(_lines(answer))
    files = [{"path": path, "state": state} for path, state in answer.files]
    whole = {"v": 1, "command": "unit", "class": None, "exit": 0, "sender": house.speaker}
    return speak([json.dumps(whole | {"kind": wish.kind} | fields(answer) | {"files": files})])


def _fulfilled(what: str, told: Unit, house: House, ask: Ask) -> Answer:
    if what == PRINT:
        return Answer(text=told.text)
    if what == STATUS:
        heard = ask(told.listing, house.env)
        active = None if heard.text is None else units.is_listed(told.mark, heard.text)
        return Answer(files=place.look(told), active=active, reason=heard.why)
    if what == INSTALL:
        if told.files:
            open_state(house.places)  # where the log is: no scheduler makes its folder
        place.install(told)
        return Answer(files=place.look(told), next=told.begin)
    place.uninstall(told)
    return Answer(files=place.look(told), next=told.end)


def _lines(answer: Answer) -> list[str]:
    if answer.text is not None:
        return answer.text.removesuffix("\n").split("\n")  # a path may hold other ends of lines
    lines = [render.clean(f"{state}: {path}") for path, state in answer.files]
    if answer.next is not None:
        return [*(lines or [_UNTOUCHED]), f"next: {answer.next}"]
    known = {True: "yes", False: "no", None: f"not known ({answer.reason})"}
    return [*lines, render.clean(f"active: {known[answer.active]}")]


def unit_of(wish: Wish, house: House) -> Unit:
    """The unit of *wish* for the relay of *house*; cron's has no label."""
    claude = find_binary(house.config().claude_bin, house.env.get("PATH", os.defpath))
    program = units.program_of(sys.argv[0], house.python)
    start, log = units.start_of(program, house.env, claude), house.places.relay_log
    if wish.kind == CRON:
        return cron.crontab(start)
    if wish.kind == SYSTEMD:
        return systemd.units(start, wish.label, systemd.folder(house.env, house.places.home), log)
    return launchd.agent(start, wish.label, f"{house.places.home}/Library/LaunchAgents", log)
