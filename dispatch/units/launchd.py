"""The relay as launchd is told of it: a user's agent.  Pure."""

from __future__ import annotations

from dispatch.units import THROTTLE_S, File, Unit, hint_of, refuse_unwritable
from dispatch.units.cron import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dispatch.units import Start

_EVERY_S = 60


def agent(start: Start, label: str, folder: str, log: str) -> Unit:
    """The agent named *label* in the user's *folder*; trouble is appended to *log*."""
    import plistlib  # brings an XML parser along, which no other command needs

    refuse_unwritable(start.program, folder, log, *start.env.values())
    told = {
        "Label": label,
        "ProgramArguments": [start.program, "relay"],
        "EnvironmentVariables": dict(start.env),
        "StartInterval": _EVERY_S,
        "RunAtLoad": True,
        "ThrottleInterval": THROTTLE_S,
        # launchd appends and never rotates: a line for each good pass would fill the disk.
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": log,
        # A carrier that is under way is finished, whatever becomes of the pass.
        "AbandonProcessGroup": True,
    }
    hint = _comment(hint_of("launchd", log))
    content = plistlib.dumps(told, sort_keys=False).replace(b"<plist ", hint + b"\n<plist ", 1)
    path = f"{folder}/{label}.plist"
    return Unit(
        kind="launchd",
        text=content.decode(),
        files=(File(path, content),),
        hint=hint,
        links=(),
        listing=("launchctl", "list"),
        mark=label,
        # An older one that is still loaded would stay as it is.
        begin=f"launchctl bootout gui/$(id -u)/{label} 2>/dev/null;"
        f" launchctl bootstrap gui/$(id -u) {quoted(path)}",
        end=f"launchctl bootout gui/$(id -u)/{label}",
    )


def _comment(words: str) -> bytes:
    """*words* as a comment of XML, which ends at two hyphens."""
    return f"<!-- {words.replace('&', '&amp;').replace('--', '&#45;&#45;')} -->".encode()
