"""One address, one door target, or a refusal: two candidates are never a choice.

An address is only ever compared with what is configured or running; it is never a
path, a pattern or a command.  Pure, but for the look at who works on what, which only
a ticket or a pane asks for.
"""

from __future__ import annotations

from registry.errors import AddressAmbiguous, AddressUnknown, TicketUnbound
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from registry.discover import Owner
    from registry.roster import Roster
    from registry.rows import Listing, Row
    from registry.targets import Config, Target

_NEAR_LENGTH = 128
_ID_SHOWN = 8
PANE = "tsid:"


class Scene(Record):
    """All that an address is compared with: who is configured, who runs, who works on what."""

    config: Config
    listing: Listing
    look: Callable[[], Roster]  # the roster of the listing; asked for at most once


class DoorTarget(Record):
    """Who is meant, and the running session that it is now."""

    id: str  # as the user named it in the configuration, else the session UUID
    session_id: str | None  # None: named by what no running session has
    row: Row | None  # None: not running
    route: str  # what decided: target, session, a source of registry/discover.py, tsid or name
    target: Target | None


def resolve(address: str, scene: Scene) -> DoorTarget:
    """The door target that *address* names: the first form that names something decides.

    A session that is known but does not run comes back without a row; the caller
    judges the binding before it says so.  Raises AddressUnknown, AddressAmbiguous or
    TicketUnbound, which hold their fields (INTERFACE 3), and RegistryUnreadable or
    ConfigInvalid where the look at tickets is impossible.  Writes nothing but the memory of
    the ledger.
    """
    for form in _FORMS:
        if (found := form(address, scene)) is not None:
            return found
    raise AddressUnknown(address, _near(address, scene))


def find_again(session_id: str, listing: Listing) -> tuple[Row, ...]:
    """Every running session with the id *session_id*."""
    return tuple(row for row in listing.rows if row.session_id == session_id)


def parse_ticket(address: str) -> str | None:
    """The ticket that *address* spells, in upper case; None when it is no `TK-<number>`."""
    ticket = address.upper()
    number = ticket.removeprefix("TK-")
    return ticket if number != ticket and number.isascii() and number.isdigit() else None


def _configured(address: str, scene: Scene) -> DoorTarget | None:
    target = scene.config.target(address)
    if target is None:
        return None
    if target.kind == "ticket":
        row, _ = _bound_to(address, target.value, scene)
        return DoorTarget(target.id, row.session_id, row, "target", target)
    if target.kind == "session":
        found = _only(address, find_again(target.value, scene.listing))
        return DoorTarget(target.id, target.value, found, "target", target)
    if target.kind == "tsid":
        found = _in_pane(address, target.value, scene)
    else:
        found = _only(address, _named(target.value, scene.listing))
    session = None if found is None else found.session_id
    return DoorTarget(target.id, session, found, "target", target)


def _by_session(address: str, scene: Scene) -> DoorTarget | None:
    session_id = parse_uuid(address)
    if session_id is None:
        return None
    row = _only(address, find_again(session_id, scene.listing))
    return DoorTarget(session_id, session_id, row, "session", None)


def _by_ticket(address: str, scene: Scene) -> DoorTarget | None:
    ticket = parse_ticket(address)
    if ticket is None:
        return None
    row, source = _bound_to(address, ticket, scene)
    return DoorTarget(row.session_id, row.session_id, row, source, None)


def _by_pane(address: str, scene: Scene) -> DoorTarget | None:
    tsid = address.removeprefix(PANE)
    if tsid == address:
        return None
    row = _in_pane(address, tsid, scene)
    if row is None:
        roster = scene.look()
        others = [owner for owner in roster.others if owner.tsid == tsid]
        raise AddressUnknown(address, why=_unusable(others) or _unseen(roster))
    return DoorTarget(row.session_id, row.session_id, row, "tsid", None)


def _bound_to(address: str, ticket: str, scene: Scene) -> tuple[Row, str]:
    """The one running session that *ticket* is bound to, and the source that bound it."""
    roster = scene.look()
    pairs = zip(scene.listing.rows, roster.owners, strict=True)
    bound = [(row, str(owner.source)) for row, owner in pairs if owner.ticket == ticket]
    others = [owner for owner in roster.others if owner.ticket == ticket]
    if not bound:
        raise TicketUnbound(ticket, _unusable(others) or _why_unbound(ticket, roster))
    _only(address, tuple(row for row, _ in bound), others)
    return bound[0]


def _in_pane(address: str, tsid: str, scene: Scene) -> Row | None:
    """The one running session in the pane *tsid*; None when no usable row is."""
    roster = scene.look()
    pairs = zip(scene.listing.rows, roster.owners, strict=True)
    rows = tuple(row for row, owner in pairs if owner.tsid == tsid)
    return _only(address, rows, [owner for owner in roster.others if owner.tsid == tsid])


def _why_unbound(ticket: str, roster: Roster) -> str:
    reading = roster.reading
    if reading.absent:
        return f"there is no {reading.path}"
    if reading.blind is None and not reading.ledger.has_create(ticket):
        return f"{reading.path} has no create for it"
    return _unseen(roster)


def _unseen(roster: Roster) -> str:
    """The first thing that could not be seen, and how many more; empty when all could."""
    if not roster.blind:
        return ""
    more = f", and {len(roster.blind) - 1} more: zdo sessions --all" if roster.blind[1:] else ""
    return f"not seen: {roster.blind[0]}{more}"


def _by_name(address: str, scene: Scene) -> DoorTarget | None:
    listing = scene.listing
    rows = _named(address.removeprefix("name:"), listing) or _named(address, listing)
    row = _only(address, rows)
    return None if row is None else DoorTarget(row.session_id, row.session_id, row, "name", None)


# The order of INTERFACE 3; a form is a function, so that a later one slots in.
_FORMS: tuple[Callable[[str, Scene], DoorTarget | None], ...] = (
    _configured,
    _by_session,
    _by_ticket,
    _by_pane,
    _by_name,
)


def _named(name: str, listing: Listing) -> tuple[Row, ...]:
    return tuple(row for row in listing.rows if row.name == name)


def _only(address: str, rows: tuple[Row, ...], others: Sequence[Owner] = ()) -> Row | None:
    """The one row of *rows*; beside living sessions without a usable row it is not the only one."""
    if len(rows) > 1 or (rows and others):
        candidates = (*map(_candidate, rows), *map(_outsider, others))
        raise AddressAmbiguous(address, candidates)
    return rows[0] if rows else None


def _unusable(others: Sequence[Owner]) -> str:
    return f"{_outsider(others[0])}, is: zdo sessions --all" if others else ""


def _outsider(owner: Owner) -> str:
    return f"pid {owner.pid}, whose row cannot be used"


def _candidate(row: Row) -> str:
    return f"{_shown(row.name or '')} ({row.session_id[:_ID_SHOWN]}, pid {row.pid})".lstrip()


def _shown(name: str) -> str:
    # Names are chosen by others, and a refusal is printed on a terminal.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def _near(address: str, scene: Scene) -> tuple[str, ...]:
    wanted = address.removeprefix("name:")
    if len(wanted) > _NEAR_LENGTH:
        return ()
    import difflib

    ids = (target.id for target in scene.config.targets)
    names = (_shown(row.name) for row in scene.listing.rows if row.name)
    return tuple(difflib.get_close_matches(wanted, dict.fromkeys((*ids, *names))))
