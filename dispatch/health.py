"""Is everything there that a kiss needs?  Each item is measured when it is asked, and never kept.

What cannot be looked at is not known: neither well nor ill.
"""

from __future__ import annotations

from dispatch import look_around, look_at_claude, look_at_shell, look_inside
from dispatch.errors import DatabaseUnusable
from dispatch.finding import ill, unknown
from dispatch.kiss import NESTED
from registry.clock import iso
from registry.errors import ConfigInvalid, RegistryUnreadable, StateUnsafe
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Final

    from dispatch.finding import Finding
    from dispatch.house import House


class Item(Record):
    """What one look found, at the moment in *checked_at*."""

    code: str
    ok: bool | None  # None: not known
    checked_at: str
    detail: str
    fix: str | None  # what to do about it; None where there is nothing to do


class Look(Record):
    """One thing to look at; *own* are the errors that are its answer and not a lack of one."""

    code: str
    look: Callable[[House], Finding]
    fix: str  # what is usual; a finding may know better
    own: tuple[type[Exception], ...] = ()


_NO_ROWS = "start claude once, or point claude_config_dir at its folder"
_UNSEEN = "have /proc mounted, or ps on the PATH; until then kiss those by name or id"
_SHUT = "restart those sessions: their doors are gone"
_STATE = "mend it, or set ZDO_STATE_DIR"
_NO_CLAUDE = "install claude, or set claude_bin"

LOOKS: Final = (
    Look("config", look_around.config, "mend the configuration", (ConfigInvalid,)),
    Look("registry", look_around.registry, _NO_ROWS, (RegistryUnreadable,)),
    Look("state-folder", look_inside.state_folder, _STATE, (StateUnsafe,)),
    Look("database", look_inside.database, "zdo fsck", (DatabaseUnusable,)),
    Look("claude-binary", look_at_claude.claude_binary, _NO_CLAUDE),
    Look("claude-version", look_at_claude.claude_version, "zdo selftest tries it"),
    Look("postbox", look_at_claude.postbox, "zdo init"),
    Look("hooks", look_at_claude.hooks, "take it out of the managed settings"),
    Look("inbound", look_at_claude.inbound, "set crossSessionInbound to accept"),
    Look("ledger", look_around.ledger, "mend it, or set [tickets] root"),
    Look("process-sources", look_around.process_sources, _UNSEEN),
    Look("messaging-door", look_around.messaging_door, _SHUT),
    Look("relay-last-pass", look_inside.relay_last_pass, "zdo relay"),
    Look("relay-starter", look_at_shell.relay_starter, "zdo unit systemd, launchd or cron"),
    Look("cron-environment", look_at_shell.cron_environment, "zdo unit cron --install"),
    Look("clock", look_inside.clock, "set the clock"),
    Look("limits", look_at_shell.limits, f"ulimit -n {look_at_shell.ENOUGH_FILES}"),
    Look("nested", look_at_shell.nested, f"unset {NESTED}"),
    Look("free-space", look_inside.free_space, "free the disk", (OSError,)),
)


def check(house: House, looks: Sequence[Look] = LOOKS) -> tuple[Item, ...]:
    """Every item of *looks* as it stands now; no look that fails hides another."""
    return tuple(_item(each, house) for each in looks)


def _item(each: Look, house: House) -> Item:
    try:
        found = each.look(house)
    except each.own as error:
        found = ill(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it was, the other items are still wanted
        found = unknown(f"cannot be looked at now: {str(error) or type(error).__name__}")
    fix = (found.fix or each.fix) if found.ok is False else None
    return Item(each.code, found.ok, iso(house.clock.now()), found.detail, fix)
