"""What is over gives its bytes back; its key stays for ever, so that it is never new again."""

from __future__ import annotations

import os

from carrier import proof
from carrier.attempt import clear
from carrier.layout import PASSING
from dispatch import kept, outcome
from dispatch.kept import DEAD, DELIVERED, SENT
from registry.errors import StateUnsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.database import Database

DAY_S = 86_400.0
KEEP_S = 30 * DAY_S
# In one commit; the rest is for the next day, so that no pass stands still for it.
_MOST = 10_000


def once_a_day(database: Database, attempts: str, now: float) -> None:
    """Bodies of deliveries that are a month old are gone, and old ones are looked at no more.

    Killed in the middle, nothing of it was done.  A clock that jumps only changes the
    day: what is pruned was delivered.
    """
    with database.reading() as link:
        (last,) = link.execute("SELECT pruned_at FROM pulse").fetchone()
    if 0 <= now - last < DAY_S:
        return
    _sweep(database, attempts, now)
    with database.writing() as link:
        link.execute("UPDATE pulse SET pruned_at = ?", (now,))
        link.execute(
            "UPDATE line SET state = ? WHERE state < 20 AND state = ? AND settled_at < ?",
            (DELIVERED, SENT, now - outcome.SCHEDULE.lifetime_s),
        )
        link.execute(
            "UPDATE line SET body = x'' WHERE id IN (SELECT id FROM line"
            " WHERE state = ? AND settled_at < ? AND length(body) > 0 LIMIT ?)",
            (DELIVERED, now - KEEP_S, _MOST),
        )


def _sweep(database: Database, attempts: str, now: float) -> None:
    """Folders in *attempts* that a killed process left and nobody needs: a line lies in each.

    Those of open lines stay, they are evidence, and so do those of unknown lines whose
    door may have been touched, and those of today, whose dispatcher may be at work.
    """
    for name in _names_in(attempts):
        path = f"{attempts}/{name}"
        if not _is_old(path, now):
            continue
        with database.reading() as link:
            line = kept.find(link, name.partition(".")[0])
        is_over = proof.withdraw(path) if line is None else line.state in (SENT, DELIVERED, DEAD)
        if is_over or name.endswith(f".{PASSING}"):
            clear(path)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise StateUnsafe(folder, error.strerror or str(error)) from error


def _is_old(path: str, now: float) -> bool:
    try:
        return now - os.lstat(path).st_mtime >= DAY_S
    except OSError:
        return False  # its dispatcher has just removed it
