"""The faults that a rig must notice: each takes one guard out of a copy of the packages."""

from __future__ import annotations

from tests.torture.copies import Break

# Keeper and carrier do not hold the lease: a killed dispatcher frees the postbox.  Nor does
# anybody look for a carrier that still runs, which alone would hide most of the harm.
LEASE_NOT_PASSED = (
    Break(
        "carrier/layout.py",
        "    return bool(running - {None, os.getpid()}) and _postbox_of(folder) == postbox\n",
        "    return False\n",
    ),
    Break(
        "carrier/keeper.py",
        "        fcntl.fcntl(lease_fd, fcntl.F_SETFD, 0)\n",
        "        os.close(lease_fd)\n",
    ),
)

# Orphans are not adopted: who leaves the carrier's group is not found again.
NOT_ADOPTED = (Break("carrier/order.py", 'adopt: str = "prctl"', 'adopt: str = "getpid"'),)

# What a dead dispatcher left counts as never done: no transcript, no permit is asked.
BLIND_RETRY = (
    Break(
        "dispatch/verify.py",
        "    if may_be_at_the_door(folder,",
        "    if not folder and may_be_at_the_door(folder,",
    ),
    Break(
        "dispatch/verify.py",
        "    evidence = collect(envelope, run, folder)\n",
        "    evidence = collect(envelope, run, folder)\n"
        '    evidence = replace(evidence, intent=False, receipt=None, proof="none")\n',
    ),
)

# SQLite's own default: the last journal's name may come back after a power cut.
DELETE_FULL = (
    Break("dispatch/database.py", "journal_mode=PERSIST", "journal_mode=DELETE"),
    Break("dispatch/database.py", "synchronous=EXTRA", "synchronous=FULL"),
)

# What most queues do: the newest commits are only in memory.
WAL_NORMAL = (
    Break("dispatch/database.py", "journal_mode=PERSIST", "journal_mode=WAL"),
    Break("dispatch/database.py", "synchronous=EXTRA", "synchronous=NORMAL"),
)

# The newest lines of a target first, as a stack has them.
NEWEST_FIRST = (
    Break("dispatch/due.py", "state <> ? ORDER BY id LIMIT", "state <> ? ORDER BY id DESC LIMIT"),
)

# The first target that cannot be served ends the look for others.
ONE_HOLDS_ALL = (
    Break(
        "dispatch/due.py",
        "found, Halt):\n            halts.append(found)\n",
        "found, Halt):\n            halts.append(found)\n            return\n",
    ),
)

# Nobody looks whether the key is there, and the table does not mind two.
KEY_NOT_UNIQUE = (
    Break("dispatch/tables.py", "key        TEXT NOT NULL UNIQUE,", "key        TEXT NOT NULL,"),
    Break(
        "dispatch/spool.py",
        "    known = find(link, draft.key)\n"
        "    if known is None:\n"
        '        _insert(link, draft, now, {"state": QUEUED',
        "    known = None\n"
        "    if known is None:\n"
        '        _insert(link, draft, now, {"state": QUEUED',
    ),
)
