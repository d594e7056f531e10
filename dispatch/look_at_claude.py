"""Looks at Claude Code: the program, its version, the postbox, what its settings forbid."""

from __future__ import annotations

import json
import os
import shlex
import sys

from carrier.run import find_binary
from dispatch import claude_version as versions
from dispatch.finding import ill, unknown, well
from dispatch.postboxes import cleanup_days, postboxes
from registry.durable import read_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from dispatch.finding import Finding
    from dispatch.house import House

# Set by whoever owns the machine; no option of ours overrules it.
MANAGED: Final = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)


def claude_binary(house: House) -> Finding:
    """Whether there is a `claude` to carry with."""
    name, path = house.config().claude_bin, house.env.get("PATH", os.defpath)
    found = find_binary(name, path)
    if found is not None:
        return well(found)
    detail = f"no program {name!r} is found with PATH={path}"
    plain = [f"{folder}/{name}" for folder in path.split(":")] if "/" not in name else [name]
    for each in filter(os.path.isfile, plain):
        return ill(f"{each} is no program", f"chmod +x {shlex.quote(each)}")
    return ill(detail, "unset ZDO_CLAUDE_BIN" if house.env.get("ZDO_CLAUDE_BIN") else None)


def claude_version(house: House) -> Finding:
    """Whether it is one of those that were measured."""
    config = house.config()
    found = find_binary(config.claude_bin, house.env.get("PATH", os.defpath))
    if found is None:
        return unknown("there is no claude to ask")
    asked = versions.ask(found, house.env, config.claude_dir)
    if asked.version is None:
        return unknown(asked.why or "it names none")
    if asked.version in versions.TESTED:
        return well(asked.version)
    if versions.is_too_old(asked.version):
        first = ".".join(map(str, versions.FIRST))
        why = f"{asked.version} has no messaging between sessions, {first} is the first that has"
        return ill(why, f"{shlex.quote(found)} update")
    return ill(f"{asked.version} is none of those measured: {', '.join(versions.TESTED)}")


def postbox(house: House) -> Finding:
    """Whether each postbox exists, can be resumed, is nobody's session and not about to go."""
    folder = house.config().claude_dir
    if not os.path.isdir(folder):
        return unknown(f"there is no folder {folder} to look into")
    known = postboxes(house)
    if not known:
        return ill("none is configured")
    days = cleanup_days(folder)
    said = [(each, each.complaint(days, house.clock.now())) for each in known]
    wrong = [(each, complaint) for each, complaint in said if complaint is not None]
    if not wrong:
        return well(", ".join(each.session_id for each in known))
    fix = wrong[0][1][1]
    return ill("; ".join(f"{each.session_id} {told[0]}" for each, told in wrong), fix)


def hooks(_house: House, managed: str = MANAGED) -> Finding:
    """Whether a carrier's hook may run; the user's own settings do not reach it (CONTRACT g)."""
    settings = _settings(managed)
    if settings is None:
        return unknown(f"{managed} cannot be read")
    if settings.get("disableAllHooks") is True:
        return ill(f"{managed} has disableAllHooks", f"take disableAllHooks out of {managed}")
    if settings.get("allowManagedHooksOnly") is True:
        return unknown(f"{managed} has allowManagedHooksOnly; zdo selftest shows what that means")
    return well("no managed setting switches them off")


def inbound(house: House, managed: str = MANAGED) -> Finding:
    """Whether the settings of all sessions let lines in; a project may still be stricter."""
    for path in (managed, f"{house.config().claude_dir}/settings.json"):
        settings = _settings(path)
        if settings is None:
            return unknown(f"{path} cannot be read")
        wish = settings.get("crossSessionInbound")
        if wish == "refuse":
            fix = f"set crossSessionInbound to accept in {path}"
            return ill(f"{path} has every line refused", fix)
        if wish == "hold":
            return unknown(f"{path} has every line held until somebody approves it")
        if wish == "accept":
            return well(f"{path} has every line accepted")
    return well("as usual: sessions that bypass permissions hold, the others accept")


def _settings(path: str) -> dict[str, Any] | None:
    """The settings at *path*; empty where there are none, None where they cannot be read."""
    try:
        found = json.loads(read_plain(path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
