"""One knock answered: the permits taken, the doors visited, the receipts left.

Whatever happens, every line whose fate is known has its receipt.
"""

from __future__ import annotations

import os

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from carrier.door import Door
    from carrier.envelope import Envelope
    from carrier.proof import Receipt
    from carrier.visit import Line
    from registry.clock import Clock
    from registry.processes import Processes

_RECEIPT_S = 0.5  # kept of the time for the receipt, after the door
_COMPANION_S = 0.02  # the same for each line more: two flushes of a slow disk
_DOORS_S = 6.0  # kept of it for the ends of the doors, after the last permit
_HOOK_S = 1.0
_HOOK_BYTES = 1 << 20
_PART = 1 << 16


class Machine(Record):
    """What the wrapper touches; tests hand in their own."""

    clock: Clock
    processes: Processes
    door: Callable[[float], Door]  # by the moment when it must be done
    limit: Callable[[float], object]  # ends the knock after so many seconds, and again later


class Carried(Record):
    """What was done, in three words, and the folder of the run's first line, if there was one."""

    said: str
    lead: str | None = None


def read_hook(fd: int, clock: Clock) -> bytes:
    """What the hook's stdin gives within a second; a terminal, silence or nothing is empty."""
    import select

    heard, until = b"", clock.monotonic() + _HOOK_S
    try:
        if os.isatty(fd):
            return b""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while len(heard) < _HOOK_BYTES and (left := until - clock.monotonic()) > 0:
            part = os.read(fd, _PART) if poll.poll(left * 1000) else b""
            heard += part
            # An object that is whole is all there will be, also when the pipe stays open.
            if not part or (part.rstrip().endswith(b"}") and hook_fields(heard)):
                break
    except OSError:
        return b""  # closed, or a folder
    return heard


def hook_fields(hook: bytes) -> dict[str, Any]:
    """The fields of the hook's input; none when it is not one object."""
    import json

    try:
        given = json.loads(hook)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def find_attempt(given: str | None, delivery_id: str | None) -> str | None:
    """The attempt folder for a knock: *given*, or its newest sibling with *delivery_id*."""
    if not given:
        return None
    folder, name = os.path.split(given.rstrip("/"))
    if delivery_id is None or name.startswith(f"{delivery_id}."):
        return given
    try:
        siblings = [each.rpartition(".") for each in os.listdir(folder)]
    except OSError:
        return None
    counts = [n for own, _, n in siblings if own == delivery_id and n.isascii() and n.isdigit()]
    return f"{folder}/{delivery_id}.{max(counts, key=int)}" if counts else None


def carry(env: Mapping[str, str], hook: bytes, machine: Machine) -> Carried:
    """Take the permits, visit the doors, leave the receipts.

    Killed in the middle, an intent without a receipt remains: perhaps written.
    """
    from carrier.prompt import delivery_of
    from carrier.proof import take
    from carrier.visit import Line

    started = machine.clock.monotonic()
    given = hook_fields(hook)
    prompt = given.get("prompt")
    knocked = delivery_of(prompt) if isinstance(prompt, str) else None
    attempt_dir = find_attempt(env.get("ZDO_CARRIER_ATTEMPT"), knocked)
    envelope = take(attempt_dir) if attempt_dir else None
    if attempt_dir is None or envelope is None:
        return Carried(f"zdo not-written {knocked or 'without-permit'}")
    machine.limit(envelope.wrapper_s)
    why = miscalled(envelope, given.get("session_id"), knocked, env)
    lead = Line(attempt_dir.rstrip("/"), envelope)
    receipt = deliver(lead, machine, started, why)
    done = "wrote" if receipt.wrote else "not-written"
    return Carried(f"zdo {done} {envelope.delivery_id}", lead.folder)


def deliver(lead: Line, machine: Machine, started: float, why: str | None) -> Receipt:
    """The receipt of *lead*; it and its companions have had their turn, unless *why* forbids.

    Whatever happens, no reply socket stays and every line whose fate is known has its
    receipt.  Killed in the middle, lines may be in, and no receipt says so.
    """
    from carrier.proof import WRAPPER_TROUBLE, read_round
    from carrier.visit import StayAway, Tour

    names = read_round(lead.folder)
    limit_s = lead.envelope.wrapper_s
    doors_by = started + limit_s - _RECEIPT_S - min(_COMPANION_S * len(names), limit_s / 2)
    permits_by = max(doors_by - _DOORS_S, started + limit_s / 4)
    door = machine.door(doors_by)
    tour = Tour(door, machine.processes, machine.clock)
    tour.expect(lead)
    try:
        if names:
            from carrier.companions import carry_round

            carry_round(lead, names, tour, why, lambda: machine.clock.monotonic() >= permits_by)
        elif why is not None:
            tour.leave_out([lead], StayAway(WRAPPER_TROUBLE, why))
        else:
            tour.call_on([lead])
        tour.listen()
        if tour.trouble is not None:
            raise tour.trouble
        return tour.known[lead.folder]
    finally:
        door.close()
        _leave(tour.known)


def _leave(known: dict[str, Receipt]) -> None:
    from carrier.proof import leave_receipt

    trouble: OSError | None = None
    for folder, receipt in known.items():
        try:
            leave_receipt(folder, receipt)
        except OSError as error:
            trouble = error  # a folder that is gone takes nothing from the others
    if trouble is not None:
        raise trouble


def miscalled(
    envelope: Envelope, session: object, knocked: str | None, env: Mapping[str, str]
) -> str | None:
    """Why this carrier run is not the one that the envelope was made for, if so."""
    from registry.ids import parse_uuid

    if session is not None and parse_uuid(session) != envelope.postbox:
        return "the hook ran in another session than the postbox"
    if knocked not in (None, envelope.delivery_id):
        return "the knock names another delivery than the envelope"
    if env.get("ZDO_CARRIER_DOOR_TARGET", envelope.target_id) != envelope.target_id:
        return "the carrier was started for another target than the envelope's"
    return None
