"""One address, one door target, or a refusal: two candidates are never a choice.

An address is only ever compared with what is configured or running; it is never a
path, a pattern or a command.  Pure.
"""

from __future__ import annotations

from registry.errors import AddressAmbiguous, AddressUnknown, TicketUnbound
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.rows import Listing, Row
    from registry.targets import Config, Target

_NEAR_LENGTH = 128
_ID_SHOWN = 8


class DoorTarget(Record):
    """Who is meant, and the running session that it is now."""

    id: str  # as the user named it in the configuration, else the session UUID
    session_id: str | None  # None: named by a display name that no running session has
    row: Row | None  # None: not running
    route: str  # the form that decided: target, session or name
    target: Target | None


def resolve(address: str, config: Config, listing: Listing) -> DoorTarget:
    """The door target that *address* names: the first form that names something decides.

    A session that is known but does not run comes back without a row; the caller
    judges the binding before it says so.
    """
    for form in _FORMS:
        if (found := form(address, config, listing)) is not None:
            return found
    raise AddressUnknown(address, _near(address, config, listing))


def find_again(session_id: str, listing: Listing) -> tuple[Row, ...]:
    """Every running session with the id *session_id*."""
    return tuple(row for row in listing.rows if row.session_id == session_id)


def _configured(address: str, config: Config, listing: Listing) -> DoorTarget | None:
    target = config.target(address)
    if target is None:
        return None
    if target.kind == "ticket":
        raise TicketUnbound(target.value)
    if target.kind == "tsid":
        raise AddressUnknown(address)
    if target.kind == "session":
        row = _only(address, find_again(target.value, listing))
        return DoorTarget(target.id, target.value, row, "target", target)
    row = _only(address, _named(target.value, listing))
    return DoorTarget(target.id, row.session_id if row else None, row, "target", target)


def _by_session(address: str, _: Config, listing: Listing) -> DoorTarget | None:
    session_id = parse_uuid(address)
    if session_id is None:
        return None
    row = _only(address, find_again(session_id, listing))
    return DoorTarget(session_id, session_id, row, "session", None)


def _by_ticket(address: str, _: Config, __: Listing) -> DoorTarget | None:
    ticket = address.upper()
    number = ticket.removeprefix("TK-")
    if number != ticket and number.isascii() and number.isdigit():
        raise TicketUnbound(ticket)
    return None


def _by_pane(address: str, _: Config, __: Listing) -> DoorTarget | None:
    if address.startswith("tsid:"):
        raise AddressUnknown(address)
    return None


def _by_name(address: str, _: Config, listing: Listing) -> DoorTarget | None:
    rows = _named(address.removeprefix("name:"), listing) or _named(address, listing)
    row = _only(address, rows)
    return None if row is None else DoorTarget(row.session_id, row.session_id, row, "name", None)


# The order of INTERFACE 3; a form is a function, so that a later one slots in.
_FORMS: tuple[Callable[[str, Config, Listing], DoorTarget | None], ...] = (
    _configured,
    _by_session,
    _by_ticket,
    _by_pane,
    _by_name,
)


def _named(name: str, listing: Listing) -> tuple[Row, ...]:
    return tuple(row for row in listing.rows if row.name == name)


def _only(address: str, rows: tuple[Row, ...]) -> Row | None:
    if len(rows) > 1:
        raise AddressAmbiguous(address, tuple(map(_candidate, rows)))
    return rows[0] if rows else None


def _candidate(row: Row) -> str:
    return f"{_shown(row.name or '')} ({row.session_id[:_ID_SHOWN]}, pid {row.pid})".lstrip()


def _shown(name: str) -> str:
    # Names are chosen by others, and a refusal is printed on a terminal.
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)


def _near(address: str, config: Config, listing: Listing) -> tuple[str, ...]:
    wanted = address.removeprefix("name:")
    if len(wanted) > _NEAR_LENGTH:
        return ()
    import difflib

    ids = (target.id for target in config.targets)
    names = (_shown(row.name) for row in listing.rows if row.name)
    return tuple(difflib.get_close_matches(wanted, dict.fromkeys((*ids, *names))))
