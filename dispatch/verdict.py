"""The one table of outcomes: class, fate, exit status, state, what to do next.

USAGE.md shows the same rows; a test compares them.  A class is a name that
scripts may rely on (INTERFACE 5).
"""

from __future__ import annotations

from registry.record import Record

# Fates: what the spool does with the line afterwards.
DONE = "done"  # delivered, never again
QUEUE = "queue"  # provably not delivered; a later try is safe
OPEN = "open"  # may be in, or needs a look: never repeated by itself
FAILED = "failed"  # the receiver said no, or too late
NONE = "none"  # nothing was started

# The scale that only goes up; `held` and `unknown` stand beside it.
SCALE = ("refused", "queued", "started", "accepted", "delivered-start", "surfaced")


class Verdict(Record):
    """One row of the table."""

    name: str
    fate: str
    exit: int
    state: str
    advice: str


_ROWS = (
    Verdict("delivered-start", DONE, 0, "delivered-start", "nothing to do"),
    Verdict("surfaced", DONE, 0, "surfaced", "nothing to do"),
    Verdict("queued", QUEUE, 0, "queued", "zdo relay delivers it; zdo spool list shows it"),
    Verdict("dry-run", NONE, 0, "refused", "leave out --dry-run to deliver"),
    Verdict("carrier-misbound", NONE, 2, "refused", "give the target a postbox of its own"),
    Verdict("carrier-unbound", NONE, 2, "refused", "set carrier_session to a postbox"),
    Verdict("carrier-live", NONE, 2, "refused", "close that session, or use another postbox"),
    Verdict("nested-kiss", NONE, 2, "refused", "call zdo from outside the carrier"),
    Verdict("unknown", OPEN, 3, "unknown", "do not repeat; ask the transcript: zdo verify {id}"),
    Verdict(
        "carrier-mismatch",
        OPEN,
        3,
        "unknown",
        "do not repeat; find out which session the carrier resumed: zdo show {id}",
    ),
    Verdict("door-mismatch", OPEN, 3, "unknown", "look who the target is now: zdo sessions"),
    Verdict("receipt-missing", OPEN, 3, "unknown", "do not repeat; look: zdo verify {id}"),
    Verdict("receipt-foreign", OPEN, 3, "unknown", "do not repeat; look: zdo show {id}"),
    Verdict(
        "door-held",
        OPEN,
        3,
        "held",
        'approve it in the target, or set "crossSessionInbound": "accept" there; zdo verify {id}',
    ),
    Verdict("not-surfaced", OPEN, 3, "delivered-start", "do not repeat; later: zdo verify {id}"),
    Verdict("usage", NONE, 64, "refused", "see zdo --help"),
    Verdict("line-invalid", NONE, 65, "refused", "mend the line"),
    Verdict("key-conflict", NONE, 65, "refused", "use another --key for another line"),
    Verdict(
        "target-unknown",
        NONE,
        67,
        "refused",
        "zdo sessions and zdo targets list the names, kiss prints delivery ids",
    ),
    Verdict(
        "target-ambiguous",
        NONE,
        67,
        "refused",
        "use the session id of the one you mean; if it is the same, close the others",
    ),
    Verdict("ticket-unbound", NONE, 67, "refused", "name the session: zdo sessions"),
    Verdict("target-not-running", QUEUE, 69, "refused", "start the session, then repeat"),
    Verdict("carrier-spawn", QUEUE, 69, "refused", "install claude, or set claude_bin"),
    Verdict(
        "expired",
        FAILED,
        69,
        "refused",
        "nobody approved it in time; if still true, repeat it under a key of its own",
    ),
    Verdict("internal", OPEN, 70, "unknown", "report a bug with this sentence"),
    Verdict("spool-unwritable", NONE, 73, "refused", "free the disk or mend the state folder"),
    Verdict(
        "journal-unwritable", OPEN, 74, "unknown", "free the disk; do not repeat: zdo verify {id}"
    ),
    Verdict("carrier-busy", QUEUE, 75, "refused", "repeat later, or raise --lock-timeout"),
    Verdict("target-status", QUEUE, 75, "refused", "repeat when it is idle, busy or waiting"),
    Verdict("door-dropped", QUEUE, 75, "refused", "repeat in half a minute"),
    Verdict("carrier-exit", QUEUE, 76, "started", "read the carrier's output: zdo show {id}"),
    Verdict("carrier-output", QUEUE, 76, "started", "read the carrier's output: zdo show {id}"),
    Verdict("carrier-timeout", QUEUE, 76, "started", "read the carrier's output: zdo show {id}"),
    Verdict("wrapper-not-run", QUEUE, 76, "started", "see why the hook did not run: zdo show {id}"),
    Verdict("door-refused", FAILED, 77, "refused", "ask the owner of the target to accept"),
    Verdict("door-denied", FAILED, 77, "refused", "ask the owner of the target why"),
    Verdict("config-invalid", NONE, 78, "refused", "mend the configuration"),
    Verdict("unhealthy", NONE, 78, "refused", "do what zdo doctor says beside each of them"),
    Verdict("interrupted", QUEUE, 130, "refused", "zdo show {id} tells how far it came"),
)

TABLE = {row.name: row for row in _ROWS}
