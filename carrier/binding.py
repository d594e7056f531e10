"""The two sessions of a kiss side by side: T, that is told, and P, that is resumed.  Pure.

They must never be one: resuming a running session is a silent second driver (CONTRACT d).
"""

from __future__ import annotations

from carrier.errors import CarrierMisbound, CarrierUnbound
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.targets import Config, Target


class Binding(Record):
    """Two different sessions, both in canonical spelling."""

    target_session: str  # T
    postbox: str  # P


def postbox_for(
    target: Target | None, config: Config, sessions_of: Callable[[str], str | None]
) -> str:
    """The postbox that carries to *target*: its own, else the station's; CarrierUnbound if none.

    A target's own empty `carrier_session` means none on purpose and never falls
    back.  *sessions_of* gives the session of a configured target by its id.
    """
    own = None if target is None else target.carrier_session
    name = "addressed directly" if target is None else target.id
    owner = f"station {config.station}" if own is None else f"target {name}"
    chosen = config.carrier_session if own is None else own
    if not chosen:
        raise CarrierUnbound(name, f"carrier_session of {owner} is empty")
    if (postbox := parse_uuid(chosen)) is not None:
        return postbox
    if (postbox := parse_uuid(sessions_of(chosen))) is None:
        raise CarrierUnbound(name, f"carrier_session of {owner} is {chosen!r}, with no session")
    return postbox


def bind(target_id: str, target_session: str, postbox: str) -> Binding:
    """The two sessions of a kiss to *target_id*; CarrierMisbound when they are one.

    Every spelling of an id is that id (INTERFACE 7, binding).
    """
    told, resumed = parse_uuid(target_session), parse_uuid(postbox)
    if told is None:
        raise ValueError(f"{target_session!r} is no session id")
    if resumed is None:
        raise CarrierUnbound(target_id, f"{postbox!r} is no session id")
    if told == resumed:
        raise CarrierMisbound(target_id, resumed)
    return Binding(told, resumed)
