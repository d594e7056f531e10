"""The companions of a lead: the other lines of its round, session by session, in their order.

A companion's permit is taken when its session's turn comes.  What cannot be taken in
order is not taken: a permit that stands is withdrawn later, and its line waits.
"""

from __future__ import annotations

import os

from carrier.envelope import from_bytes
from carrier.errors import EnvelopeTorn
from carrier.proof import INTENT, WITHDRAWN, WRAPPER_TROUBLE, peek, take
from carrier.visit import Line, StayAway
from registry.durable import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from carrier.envelope import Envelope
    from carrier.visit import Tour


def carry_round(
    lead: Line, names: tuple[str, ...], tour: Tour, why: str | None, late: Callable[[], bool]
) -> None:
    """Take *lead* and its companions *names* to their doors, until it is *late*.

    With *why*, the run is not the one that the lead's envelope was made for, and no
    door is touched.  Killed in the middle, a permit stands, or its line may be in.
    """
    turns = _turns(lead, names)
    tour.sessions = tuple(turns)
    seen: set[str] = set()
    for session, folders in turns.items():
        fit: list[Line] = []
        unfit: list[Line] = []
        wrong = why
        for folder in folders:
            line = lead if folder == lead.folder else _take(folder, late)
            if line is None:
                break
            tour.expect(line)
            wrong = wrong or _misfit(line, lead, session, seen)
            seen.add(line.envelope.msg_id)
            (fit if wrong is None else unfit).append(line)
        if fit:
            tour.call_on(fit)
        if wrong is not None:
            tour.leave_out(unfit, StayAway(WRAPPER_TROUBLE, wrong))


def _turns(lead: Line, names: tuple[str, ...]) -> dict[str, list[str]]:
    """The folders of each session, in the order in which sessions and lines first appear.

    Behind a folder that does not say whose it is nothing follows: it may be anybody's.
    """
    turns = {lead.envelope.session_id: [lead.folder]}
    for name in names:
        folder = f"{os.path.dirname(lead.folder)}/{name}"
        envelope = peek(folder) or _former(folder)
        if envelope is None:
            break
        turns.setdefault(envelope.session_id, []).append(folder)
    return turns


def _former(folder: str) -> Envelope | None:
    """The envelope of a permit that stands no more."""
    for name in (WITHDRAWN, INTENT):
        try:
            return from_bytes(read_plain(f"{folder}/{name}"))
        except (OSError, EnvelopeTorn):
            continue
    return None


def _take(folder: str, late: Callable[[], bool]) -> Line | None:
    """The line in *folder* with its permit taken; None when it is gone, torn, or too late."""
    if late():
        return None
    try:
        envelope = take(folder)
    except (OSError, EnvelopeTorn):
        return None
    return None if envelope is None else Line(folder, envelope)


def _misfit(line: Line, lead: Line, session: str, seen: set[str]) -> str | None:
    """Why *line* must not go with this run, if so."""
    ours, first = line.envelope, lead.envelope
    if ours.postbox != first.postbox:
        return "the line is for another postbox than the run's"
    if ours.claude_dir != first.claude_dir:
        return "the line is for another registry than the run's"
    if os.path.basename(line.folder) != f"{ours.delivery_id}.{ours.attempt}":
        return "the folder is another delivery's"
    if ours.session_id != session:
        return "the permit was for another session before it was taken"
    return "the line is in this run already" if ours.msg_id in seen else None
