"""The relay as systemd is told of it: a user's service, and the timer that starts it.  Pure."""

from __future__ import annotations

from dispatch.errors import UnitImpossible
from dispatch.units import THROTTLE_S, File, Unit, hint_of, refuse_unwritable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dispatch.units import Start

# A pass that is killed takes no carrier with it: one that is under way is finished, and what
# waits for an approval at its door goes on waiting.  The colon keeps systemd from reading $.
_SERVICE = """\
{hint}
[Unit]
Description=zdo relay

[Service]
Type=oneshot
Environment={env}
ExecStart=:{program} relay
KillMode=process
Restart=on-abnormal
RestartSec={throttle}
# Only trouble is written; systemd appends, and makes the file but not its folder.
StandardOutput=null
StandardError=append:{log}
"""

# Without a [Unit] of its own, both texts together are still one that a parser of such files reads.
_TIMER = """\
{hint}
[Timer]
OnCalendar=minutely
AccuracySec=5
Persistent=true

[Install]
# Without a login it runs only after: loginctl enable-linger
WantedBy=timers.target
"""

_NOT_IN_A_PROGRAM = "\"'\\"


def units(start: Start, label: str, folder: str, log: str) -> Unit:
    """The units named *label* in the user's *folder*; trouble is appended to *log*."""
    refuse_unwritable(start.program, folder, log, *start.env.values())
    if any(c in _NOT_IN_A_PROGRAM for c in start.program):
        raise UnitImpossible(
            f"systemd starts no program with a quote or backslash: {start.program}"
        )
    env = " ".join(_quoted(f"{name}={value}") for name, value in start.env.items())
    name, hint = f"{label}.timer", f"# {hint_of('systemd', log)}"
    service = _SERVICE.format(
        hint=hint, env=env, program=_quoted(start.program), throttle=THROTTLE_S, log=_plain(log)
    )
    files = (
        File(f"{folder}/{label}.service", service.encode()),
        # A timer without its service would fail every minute: it comes last, and goes first.
        File(f"{folder}/{name}", _TIMER.format(hint=hint).encode()),
    )
    return Unit(
        kind="systemd",
        text="\n".join(f"# {file.path}\n{file.content.decode()}" for file in files),
        files=files,
        hint=hint.encode(),
        links=(f"{folder}/timers.target.wants/{name}",),
        listing=("systemctl", "--user", "list-timers", "--all", "--full", "--plain", "--no-legend"),
        mark=name,
        begin=f"systemctl --user daemon-reload && systemctl --user enable --now {name}",
        end=f"systemctl --user stop {name}; systemctl --user daemon-reload",
    )


def _quoted(word: str) -> str:
    """*word* as systemd reads it: a quoted one, its specifiers and backslashes plain."""
    return '"' + _plain(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _plain(word: str) -> str:
    return word.replace("%", "%%")


def folder(env: Mapping[str, str], home: str) -> str:
    """Where a user's own units are, as systemd looks for them in *env*."""
    root = env.get("XDG_CONFIG_HOME", "")
    # A relative one is to be ignored (XDG).
    return (root if root.startswith("/") else f"{home}/.config") + "/systemd/user"
