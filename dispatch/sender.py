"""Who is speaking: the first id that is set, in one order for every verb."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ANONYMOUS = "anonymous"

# A tool-spawned process is not interactive and reads no shell profile, so the
# last name is the one that Claude Code itself sets in its children.
VARIABLES = ("ZDO_SESSION_ID", "AGENT_EVENT_BUS_SESSION_ID", "CLAUDE_CODE_SESSION_ID")


def sender_of(option: str | None, env: Mapping[str, str]) -> str:
    """The sender: *option* (`--session-id`), else the first variable set, else `anonymous`.

    Empty is unset.  The id is text of any length, stored as it is; it need not be
    registered, and nothing is raised for it (RULES A01, A02).  *env* is not os.environ here:
    whoever calls hands in the environment that is meant.
    """
    for given in (option, *(env.get(name) for name in VARIABLES)):
        if given:
            return given
    return ANONYMOUS
