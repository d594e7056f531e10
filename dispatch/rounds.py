"""One carrier run under the lease, from letters to verdicts: the one way that a line goes.

Laid out, then claimed, then run, then settled.  So a claimed line always has its
folder, and a run has only claimed lines.
"""

from __future__ import annotations

from carrier.attempt import attempt, clear
from dispatch import post
from registry.errors import StateUnsafe
from registry.locks import still_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from carrier.attempt import Evidence
    from carrier.order import Order
    from dispatch.house import House
    from dispatch.post import Letter
    from dispatch.result import Result
    from registry.locks import Lease
    from registry.targets import Config


def _check(lease: Lease) -> None:
    if not still_ours(lease):
        raise StateUnsafe(lease.path, "was replaced while we held it; nothing was started")


def _clear(order: Order) -> None:
    for folder in order.folders:
        clear(folder)


def carry(
    letters: Sequence[Letter],
    lease: Lease,
    config: Config,
    house: House,
    claim: Callable[[Sequence[Letter]], bool],
) -> list[tuple[Result, Evidence]] | None:
    """What became of *letters*, in their order; None when *claim* did not get all of them.

    Killed before *claim* has committed, nothing is started and the folders are
    leftovers.  Killed later, the keeper ends the run, and the claimed lines are
    judged from their folders by whoever gets the lease.
    """
    order, timed = post.pack(letters, config, house, lease.fd)
    post.lay_out(order, timed)
    try:
        _check(lease)
        claimed = claim(timed)
    except Exception:
        # Not after Ctrl-C: it may have come when the claim was on disk already.
        _clear(order)
        raise
    if not claimed:
        _clear(order)
        return None
    found = attempt(order, tuple(each.envelope for each in timed), house.clock)
    return [
        (post.conclude(each.result, evidence, each.binding, each.envelope.nonce), evidence)
        for each, evidence in zip(timed, found, strict=True)
    ]
