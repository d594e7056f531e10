"""What is over gives its bytes back; its key stays for ever, so that it is never new again."""

from __future__ import annotations

from dispatch import outcome
from dispatch.kept import DELIVERED, SENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.database import Database

DAY_S = 86_400.0
KEEP_S = 30 * DAY_S
# In one commit; the rest is for the next day, so that no pass stands still for it.
_MOST = 10_000


def once_a_day(database: Database, now: float) -> None:
    """Bodies of deliveries that are a month old are gone, and old ones are looked at no more.

    Killed in the middle, nothing of it was done.  A clock that jumps only changes the
    day: what is pruned was delivered.
    """
    with database.reading() as link:
        (last,) = link.execute("SELECT pruned_at FROM pulse").fetchone()
    if 0 <= now - last < DAY_S:
        return
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
