"""The commands that only look: resolve, sessions, targets, verify, show."""

from __future__ import annotations

import json
from typing import Any

from carrier.errors import CarrierError
from dispatch import aim, keep, render
from dispatch.cli.commands import say, this_house
from dispatch.cli.speech import speak
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.result import Result
from dispatch.story import story_of
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from dispatch.verify import verify as look_again
from registry.clock import iso
from registry.errors import RegistryError
from registry.record import fields
from registry.rows import probe, read_rows

REFUSALS = (RegistryError, CarrierError, DispatchError)


def resolve(address: str, *, as_object: bool) -> int:
    """`zdo resolve`: the aim of a kiss, without one."""
    house = this_house()
    telling = Telling(Result(command="resolve", verdict=TABLE["dry-run"]))
    try:
        config = house.config()
        listing = read_rows(config.claude_dir, house.processes)
        found = aim.take_aim(address, config, listing, telling)
        aim.gate(found, if_idle=False)
        if not aim.is_leased(house, found.binding.postbox):
            aim.refuse_live_postbox(found.binding.postbox, listing)
    except REFUSALS as error:
        telling.add(verdict=TABLE[class_of_error(error)], reason=str(error))
    return say(telling.result, render.resolve_lines(telling.result), as_object=as_object)


def sessions(*, as_object: bool) -> int:
    """`zdo sessions`: running rows, each door asked once whether it answers."""
    house = this_house()
    try:
        config = house.config()
        listing = read_rows(config.claude_dir, house.processes)
    except REFUSALS as error:
        return _refused("sessions", error, as_object=as_object)
    reachable = {row.pid: probe(row) for row in listing.rows}
    if as_object:
        rows = [fields(row) | {"reachable": reachable[row.pid]} for row in listing.rows]
        skipped = [fields(each) for each in listing.skipped]
        whole = {"v": 1, "command": "sessions", "sessions": rows, "skipped": skipped}
        return speak([json.dumps(whole)])
    return speak(render.session_lines(listing, reachable))


def targets(*, as_object: bool) -> int:
    """`zdo targets`: the configuration as zdo understood it."""
    house = this_house()
    try:
        config = house.config()
    except REFUSALS as error:
        return _refused("targets", error, as_object=as_object)
    if as_object:
        shown = [fields(each) for each in config.targets]
        whole = {"v": 1, "command": "targets", "station": config.station, "targets": shown}
        return speak([json.dumps(whole)])
    return speak(render.target_lines(config))


def verify(delivery: str, *, as_object: bool) -> int:
    """`zdo verify`: the verdict as the target's transcript shows it now."""
    try:
        result = look_again(delivery, this_house())
    except REFUSALS as error:
        return _refused("verify", error, as_object=as_object)
    return say(result, [render.kiss_line(result)], as_object=as_object)


def show(delivery: str, *, as_object: bool) -> int:
    """`zdo show`: the delivery's whole story, oldest first."""
    try:
        events = _events(delivery)
    except REFUSALS as error:
        return _refused("show", error, as_object=as_object)
    if as_object:
        whole = {"v": 1, "command": "show", "delivery_id": delivery, "events": events}
        return speak([json.dumps(whole)])
    return speak([line for event in events for line in _entry(event)])


def _events(delivery: str) -> list[dict[str, Any]]:
    database = keep.open_database(this_house())
    try:
        story = story_of(database, delivery)
    finally:
        database.close()
    return [
        {"id": event.id, "at": iso(event.at), "kind": event.kind} | json.loads(event.body)
        for event in story
    ]


def _entry(event: dict[str, Any]) -> list[str]:
    said = event["result"]["reason"]
    line = render.event_line(event["at"], event["kind"], event.get("class"), said)
    run = event.get("evidence", {}).get("run") if event["result"]["exit"] else None
    if not run:
        return [line]
    return [line, *render.output_lines(run["stdout"], run["stderr"])]


def _refused(command: str, error: Exception, *, as_object: bool) -> int:
    result = Result(command=command, verdict=TABLE[class_of_error(error)], reason=str(error))
    return say(result, [], as_object=as_object)
