"""The commands that only look: resolve, sessions, targets, verify, show."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from carrier.errors import CarrierError
from dispatch import aim, keep, present, render
from dispatch.cli.answering import head
from dispatch.cli.commands import say, this_house
from dispatch.cli.speech import speak
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.present import meet
from dispatch.result import Result
from dispatch.story import story_of
from dispatch.telling import Telling
from dispatch.verdict import TABLE
from dispatch.verify import verify as look_again
from registry.clock import iso
from registry.errors import RegistryError
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.house import House

REFUSALS = (RegistryError, CarrierError, DispatchError)


def resolve(address: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo resolve`: the aim of a kiss, without one."""
    house = this_house(session_id)
    start = Result(command="resolve", verdict=TABLE["dry-run"], sender=house.speaker)
    telling = Telling(start)
    try:
        scene = house.scene(house.config())
        found = aim.take_aim(address, scene, telling)
        aim.gate(found, if_idle=False)
        keep.refuse_deleted(house, found.row.session_id)
        if not aim.is_leased(house, found.binding.postbox):
            aim.refuse_live_postbox(found.binding.postbox, scene.listing)
    except REFUSALS as error:
        telling.add(verdict=TABLE[class_of_error(error)], reason=str(error))
    return say(telling.result, render.resolve_lines(telling.result), as_object=as_object)


def sessions(session_id: str | None, *, every: bool, as_object: bool) -> int:
    """`zdo sessions`: running rows, each door asked once whether it answers."""
    house = this_house(session_id)
    try:
        found = meet(house)
    except REFUSALS as error:
        return _refused("sessions", error, as_object=as_object)
    if as_object:
        return speak([json.dumps(head("sessions", house.speaker) | present.as_json(found))])
    return speak(present.lines(found, every=every))


def targets(session_id: str | None, *, as_object: bool) -> int:
    """`zdo targets`: the configuration as zdo understood it."""
    house = this_house(session_id)
    try:
        config = house.config()
    except REFUSALS as error:
        return _refused("targets", error, as_object=as_object)
    if as_object:
        shown = [fields(each) for each in config.targets]
        whole = {"station": config.station, "targets": shown}
        return speak([json.dumps(head("targets", house.speaker) | whole)])
    return speak(render.target_lines(config))


def verify(delivery: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo verify`: the verdict as the target's transcript shows it now."""
    try:
        result = look_again(delivery, this_house(session_id))
    except REFUSALS as error:
        return _refused("verify", error, as_object=as_object)
    return say(result, [render.kiss_line(result)], as_object=as_object)


def show(delivery: str, session_id: str | None, *, as_object: bool) -> int:
    """`zdo show`: the delivery's whole story, oldest first."""
    house = this_house(session_id)
    try:
        events = _events(house, delivery)
    except REFUSALS as error:
        return _refused("show", error, as_object=as_object)
    if as_object:
        whole = {"delivery_id": delivery, "events": events}
        return speak([json.dumps(head("show", house.speaker) | whole)])
    return speak([line for event in events for line in _entry(event)])


def _events(house: House, delivery: str) -> list[dict[str, Any]]:
    with contextlib.closing(keep.open_database(house)) as database:
        story = story_of(database, delivery)
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
