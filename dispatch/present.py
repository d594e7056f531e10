"""The running sessions as a person or a program wants to see them: who, what, for how long."""

from __future__ import annotations

from carrier.binding import postbox_for
from carrier.errors import CarrierUnbound
from dispatch.render import clean, short, table
from registry.clock import iso
from registry.errors import RegistryError
from registry.record import Record, fields
from registry.resolve import resolve
from registry.row import REASONS
from registry.rows import probe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dispatch.house import House
    from registry.discover import Owner
    from registry.resolve import Scene
    from registry.roster import Roster
    from registry.rows import Listing, Row
    from registry.targets import Target

TICKET_REQUIRED = "TK REQUIRED"
_HEAD = ("NAME", "SESSION", "STATUS", "FOR", "TICKET", "POSTBOX", "REACHABLE", "FOLDER")
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Presence(Record):
    """One running session, and what is known of it beside its row."""

    row: Row
    owner: Owner
    postbox: str | None  # that would carry to it; None: none is configured
    reachable: bool
    status_s: float | None  # for how long it has had its status; None: the row does not say


class Company(Record):
    """Everybody who runs now, who was skipped, and what could not be seen."""

    present: tuple[Presence, ...]
    listing: Listing
    roster: Roster


def meet(house: House) -> Company:
    """The company as it is now; each door is asked once whether it answers.

    Raises ConfigInvalid and RegistryUnreadable.  Nothing is written to a door.
    """
    scene = house.scene(house.config())
    roster, now = scene.look(), house.clock.now()
    present = [
        Presence(
            row=row,
            owner=owner,
            postbox=_postbox(row, owner, scene),
            reachable=probe(row),
            status_s=None if row.status_at is None else max(now - row.status_at / 1000, 0.0),
        )
        for row, owner in zip(scene.listing.rows, roster.owners, strict=True)
    ]
    return Company(tuple(present), scene.listing, roster)


def as_json(company: Company) -> dict[str, Any]:
    """The company's part of the one object that `zdo sessions --json` prints."""
    reading = company.roster.reading
    return {
        "sessions": [session_as_json(each) for each in company.present],
        "skipped": [fields(each) for each in company.listing.skipped],
        "ledger": {
            "path": reading.path,
            "lines": reading.ledger.lines,
            "skipped": dict(reading.ledger.skipped),
        },
        "blind": list(company.roster.blind),
    }


def lines(company: Company, *, every: bool) -> list[str]:
    """A table of the running sessions; the skipped rows one by one where *every* is asked for."""
    shown = table(_HEAD, [_cells(each) for each in company.present])
    skipped, blind = company.listing.skipped, company.roster.blind
    if every:
        told = [
            f"no ticket {short(each.row.session_id)}: {each.owner.why}"
            for each in company.present
            if each.owner.ticket is None
        ]
        told += [f"skipped {each.file}: {each.reason}, {REASONS[each.reason]}" for each in skipped]
        passed = company.roster.reading.ledger.skipped
        told += [f"skipped in the ledger: {count} {why}" for why, count in sorted(passed.items())]
        told += [f"not seen: {each}" for each in blind]
        return [*shown, *map(clean, told)]
    counts = ((len(skipped), "skipped"), (len(blind), "not seen"))
    told = [f"{count} {what}" for count, what in counts if count]
    return [*shown, f"{', '.join(told)}: zdo sessions --all"] if told else shown


def lasting(seconds: float | None) -> str:
    """A length of time in its greatest whole unit: 45s, 12m, 3h, 9d."""
    if seconds is None:
        return "-"
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{int(seconds // size)}{unit}"


def session_as_json(each: Presence) -> dict[str, Any]:
    """One of them as an object."""
    owner = each.owner
    ticket = None
    if owner.ticket is not None:
        at = None if owner.at is None else iso(owner.at)
        ticket = {"id": owner.ticket, "source": owner.source, "at": at}
    return fields(each.row) | {
        "reachable": each.reachable,
        "status_s": each.status_s,
        "postbox": each.postbox,
        "tsid": owner.tsid,
        "ticket": ticket,
        "ticket_reason": owner.why,
    }


def _cells(each: Presence) -> tuple[str, ...]:
    row, owner = each.row, each.owner
    ticket = f"{owner.ticket} ({owner.source})" if owner.ticket else TICKET_REQUIRED
    postbox = "is one itself" if each.postbox == row.session_id else short(each.postbox)
    return (
        row.name or "-",
        short(row.session_id),
        row.status or "-",
        lasting(each.status_s),
        ticket,
        postbox if each.postbox else "none",
        "yes" if each.reachable else "no",
        row.cwd or "-",
    )


def _postbox(row: Row, owner: Owner, scene: Scene) -> str | None:
    """The postbox that would carry to *row*: that of its configured target, else the station's."""
    known = {
        "session": row.session_id,
        "name": row.name,
        "ticket": owner.ticket,
        "tsid": owner.tsid,
    }

    target: Target | None = next(
        (each for each in scene.config.targets if known[each.kind] == each.value), None
    )
    try:
        return postbox_for(target, scene.config, lambda other: resolve(other, scene).session_id)
    except (CarrierUnbound, RegistryError):
        return None
