"""Looks at what zdo is told and whom it can reach: configuration, sessions, tickets.

Each measures when it is called, and changes nothing but the copy of the checked
configuration that every command keeps.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections import Counter

from dispatch.finding import ill, unknown, well
from registry.errors import ConfigInvalid
from registry.ledger_file import read_ledger
from registry.roster import ledger_path
from registry.rows import probe, read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dispatch.finding import Finding
    from dispatch.house import House
    from registry.rows import Listing


_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def config(house: House) -> Finding:
    """Whether the configuration can be used."""
    path = house.places.config_file
    try:
        count = len(house.config().targets)
    except ConfigInvalid as error:
        return ill(str(error), f"${{EDITOR:-vi}} {shlex.quote(path)}")
    if not os.path.lexists(path):
        return well(f"there is no {path}; the defaults hold")
    if os.stat(path).st_mode & _OTHERS_WRITE:
        return ill(f"{path} can be written by others", f"chmod go-w {shlex.quote(path)}")
    return well(f"{path}; targets: {count}")


def registry(house: House) -> Finding:
    """Whether the rows of running sessions can be read; a folder without rows is well."""
    folder = house.config().claude_dir + "/sessions"
    if not os.path.isdir(folder):
        fix = "unset CLAUDE_CONFIG_DIR" if house.env.get("CLAUDE_CONFIG_DIR") else None
        return ill(f"there is no folder {folder}", fix)
    listing = _listing(house)
    skipped = _said(Counter(each.reason for each in listing.skipped))
    return well(f"{folder}; running: {len(listing.rows)}, skipped: {skipped}")


def ledger(house: House) -> Finding:
    """Whether the ticket events can be read, and which of them say nothing."""
    configured = house.config()
    path = ledger_path(configured, house.places)
    if not os.path.lexists(path):
        return unknown(f"there is no {path}; no session is bound by it")
    correlation = configured.tickets_correlation or None
    # Read afresh: a memory of it would be a measurement of some other time.
    reading = read_ledger(path, None, house.clock.now(), correlation)
    if reading.blind is not None:
        aside = f"mv {shlex.quote(path)} {shlex.quote(path)}.odd" if os.path.isdir(path) else None
        return ill(f"{path}: {reading.blind}", aside)
    found = reading.ledger
    return well(f"{path}; lines: {found.lines}, skipped: {_said(found.skipped)}")


def process_sources(house: House) -> Finding:
    """Whether a process can be asked for its arguments, its pane and its children (T06)."""
    # Our own is always there to be asked, also when no session runs.
    wanted = {os.getpid(): ""} | {row.pid: row.proc_start for row in _listing(house).rows}
    seen = house.processes.see(wanted, house.env)
    blind = [f"pid {pid}: {why}" for pid, each in sorted(seen.items()) for why in each.blind]
    if seen[os.getpid()].blind:
        return ill("; ".join(blind))
    if blind:
        return unknown("; ".join(blind))  # those processes' own doing; the source is there
    return well(f"all of {len(seen)} processes could be seen")


def messaging_door(house: House) -> Finding:
    """Whether somebody listens at the door of a running session."""
    rows = _listing(house).rows
    if not rows:
        return unknown("no session runs")
    shut = [str(row.pid) for row in rows if not probe(row)]
    others = f"; nobody listens at that of pid {', '.join(shut)}" if shut else ""
    detail = f"open doors: {len(rows) - len(shut)} of {len(rows)}{others}"
    return ill(detail) if len(shut) == len(rows) else well(detail)


def _listing(house: House) -> Listing:
    return read_rows(house.config().claude_dir, house.processes)


def _said(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items())) or "none"
