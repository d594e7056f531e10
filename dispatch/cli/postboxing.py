"""`zdo postbox`: the sessions that carry, made, looked at, kept young, replaced, removed."""

from __future__ import annotations

import contextlib
import json
import math
import os

from dispatch import configure, postboxes
from dispatch.birth import claude_of, make_postbox
from dispatch.cli.answering import head, refuse
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import complain, speak
from dispatch.errors import DispatchError
from dispatch.postboxes import DAY_S, STATION, Postbox, cleanup_days
from dispatch.render import clean, failure_line, short, table
from dispatch.tool_errors import PostboxKept, TargetMissing
from dispatch.verdict import TABLE
from registry import spelling
from registry.clock import iso
from registry.errors import RegistryError, StateUnsafe
from registry.home import open_state
from registry.ids import parse_uuid
from registry.locks import take_lease
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dispatch.house import House

_MIB = 1 << 20
_ROTATE = "zdo postbox rotate makes a new one in its place"


def new(target: str | None, name: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo postbox new`: one for the station, or for *target*, where none exists so far."""
    _check_name(name)

    def ask(house: House) -> tuple[dict[str, Any], list[str]]:
        now = _current(house, target)
        if now is not None and now.transcript is not None:
            raise PostboxKept(now.session_id, "is there already", _ROTATE)
        return _born(house, target, name, None)

    return _answer("postbox", session_id, ask, as_object=as_object)


def rotate(
    target: str | None, over: float | None, name: str, session_id: str | None, *, as_object: bool
) -> int:
    """`zdo postbox rotate`: a new one in the place of the old, which nobody uses meanwhile."""
    _check_name(name)
    if over is not None and not math.isfinite(over):
        raise Usage("--over takes a finite number of MiB")

    def ask(house: House) -> tuple[dict[str, Any], list[str]]:
        open_state(house.places)  # where the leases are
        now = _current(house, target)
        if now is None:
            return _born(house, target, name, None)
        if over is not None and (now.bytes or 0) <= over * _MIB:
            told = {"postbox": now.session_id, "made": False, "old": None}
            size = (now.bytes or 0) / _MIB
            return told, [f"{now.session_id} stays: {size:.1f} MiB, not over {over:g}"]
        wait = house.config().timeout_s
        lease = take_lease(house.places.locks, now.session_id, timeout_s=wait, clock=house.clock)
        with contextlib.closing(lease):
            return _born(house, target, name, now)

    return _answer("postbox", session_id, ask, as_object=as_object)


def remove(postbox: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo postbox remove`: out of the configuration, and its transcript with it."""

    def ask(house: House) -> tuple[dict[str, Any], list[str]]:
        open_state(house.places)
        known = postboxes.postboxes(house)
        every = (*known, *postboxes.unused(house, known))
        wanted = parse_uuid(postbox) or postbox
        found = next((each for each in every if each.session_id == wanted), None)
        if found is None:
            why = "is none that zdo knows"
            raise PostboxKept(repr(wanted), why, "zdo postbox list shows them")
        with contextlib.closing(
            take_lease(house.places.locks, found.session_id, timeout_s=0, clock=house.clock)
        ):
            _refuse_used(found)
            for who in found.used_by:
                configure.set_postbox(house.places, "", None if who == STATION else who)
            if found.transcript is not None:
                os.unlink(found.transcript)
        told = {"postbox": found.session_id, "used_by": list(found.used_by)}
        users = f"; it carried for {', '.join(found.used_by)}" if found.used_by else ""
        return told, [f"removed: {found.session_id}{users}"]

    return _answer("postbox", session_id, ask, as_object=as_object)


def listing(session_id: str | None, *, as_object: bool) -> int:
    """`zdo postbox list`: each with who uses it, its size and age, and what may be wrong."""

    def ask(house: House) -> tuple[dict[str, Any], list[str]]:
        every = _every(house)
        rows = [_row(each, house.clock.now()) for each in every]
        head_row = ("POSTBOX", "FOR", "STATE", "SIZE", "AGE")
        return {"postboxes": [_as_json(each) for each in every]}, table(head_row, rows)

    return _answer("postbox", session_id, ask, as_object=as_object)


def check(session_id: str | None, *, touch: bool, as_object: bool) -> int:
    """`zdo postbox check`: 0 when each that is used is ready, else 78 with what mends it."""
    wrong: list[str] = []

    def ask(house: House) -> tuple[dict[str, Any], list[str]]:
        known = postboxes.postboxes(house)
        if touch:
            open_state(house.places)
            for each in known:
                _touch(each, house)
            known = postboxes.postboxes(house)
        days = cleanup_days(house.config().claude_dir)
        said = [(each, _wrong(each, days, house.clock.now())) for each in known]
        wrong.extend(f"{short(each.session_id)} {why}" for each, why in said if why)
        told = {"postboxes": [_as_json(each) | {"wrong": why} for each, why in said]}
        lines = [f"{each.session_id}  {why or 'is ready'}" for each, why in said]
        return told, lines or ["no postbox is configured; zdo init makes one"]

    return _answer("postbox", session_id, ask, wrong=wrong, as_object=as_object)


def _answer(
    command: str,
    session_id: str | None,
    ask: Callable[[House], tuple[dict[str, Any], list[str]]],
    *,
    wrong: list[str] | None = None,
    as_object: bool,
) -> int:
    house = this_house(session_id)
    try:
        told, lines = ask(house)
    except (RegistryError, DispatchError) as error:
        return refuse(command, house, error, as_object=as_object)
    except OSError as error:
        unsafe = StateUnsafe(
            str(error.filename or house.places.state), error.strerror or str(error)
        )
        return refuse(command, house, unsafe, as_object=as_object)
    verdict = TABLE["unhealthy"] if wrong else None
    status = 0 if verdict is None else verdict.exit
    if verdict is not None:
        complain(failure_line(verdict.name, "; ".join(wrong or ()), "see zdo postbox list"))
    whole = head(command, house.speaker, {"class": verdict and verdict.name, "exit": status}) | told
    lost = speak([json.dumps(whole)] if as_object else [clean(line) for line in lines])
    return status or lost


def _wrong(postbox: Postbox, days: float | None, now: float) -> str | None:
    found = postbox.complaint(days, now)
    return None if found is None else f"{found[0]}: {found[1]}"


def _check_name(name: str) -> None:
    try:
        spelling.target_id(name)
    except ValueError as error:
        raise Usage(f"--name {name!r}: {error}") from error


def _current(house: House, target: str | None) -> Postbox | None:
    """The postbox that the station, or *target* for itself, has now; TargetMissing."""
    if target is not None and house.config().target(target) is None:
        raise TargetMissing(target, house.places.config_file)
    who = STATION if target is None else target
    return next((each for each in postboxes.postboxes(house) if who in each.used_by), None)


def _born(
    house: House, target: str | None, name: str, old: Postbox | None
) -> tuple[dict[str, Any], list[str]]:
    made = make_postbox(house, claude_of(house), name=name)
    # Killed here, the session is nobody's, and `zdo postbox list` shows it.
    configure.set_postbox(house.places, made, target)
    was = None if old is None else old.session_id
    whose = "the station" if target is None else target
    lines = [f"{made} carries for {whose} now, in {house.places.config_file}"]
    if old is not None and old.transcript is not None:
        lines.append(f"the old one stays until: zdo postbox remove {was}")
    return {"postbox": made, "made": True, "old": was}, lines


def _refuse_used(postbox: Postbox) -> None:
    """PostboxKept for one that is not ours to remove; its lease is held."""
    if postbox.pid is not None:
        raise PostboxKept(
            postbox.session_id, f"is open as pid {postbox.pid}", "close that session first"
        )
    if postbox.transcript is None:
        return
    if not postbox.in_place:
        why = "was not made in the folder of postboxes, so it may be somebody's session"
        raise PostboxKept(postbox.session_id, why, f"remove {postbox.transcript} by hand if not")
    if postboxes.has_model_turn(postbox.transcript):
        why = "has turns of a model, so somebody has worked in it"
        raise PostboxKept(postbox.session_id, why, f"remove {postbox.transcript} by hand if not")


def _touch(postbox: Postbox, house: House) -> None:
    """Its transcript is as young as if it had just carried; not while somebody drives it."""
    if postbox.transcript is None or postbox.pid is not None:
        return
    with contextlib.closing(
        take_lease(house.places.locks, postbox.session_id, timeout_s=0, clock=house.clock)
    ):
        os.utime(postbox.transcript)


def _every(house: House) -> tuple[Postbox, ...]:
    known = postboxes.postboxes(house)
    return (*known, *postboxes.unused(house, known))


def _as_json(postbox: Postbox) -> dict[str, Any]:
    touched = postbox.touched_at
    told = fields(postbox) | {"used_by": list(postbox.used_by), "state": postbox.state}
    return told | {"touched_at": None if touched is None else iso(touched)}


def _row(postbox: Postbox, now: float) -> tuple[str, ...]:
    size = "-" if postbox.bytes is None else f"{postbox.bytes / 1024:.0f} KiB"
    days = None if postbox.touched_at is None else (now - postbox.touched_at) / DAY_S
    age = "-" if days is None else f"{max(days, 0):.0f} d"
    whose = ", ".join(postbox.used_by) or "nobody"
    return postbox.session_id, whose, postbox.state, size, age
