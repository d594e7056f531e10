"""Who is configured: the configuration file, checked, then overruled by the environment.

A kiss must not pay for TOML and pydantic, so the checked values are kept in the
state folder beside the very text they came from; another text, another snapshot.
"""

from __future__ import annotations

import os

from registry.durable import Unreadable, read_plain
from registry.errors import ConfigInvalid
from registry.home import expand
from registry.memory import is_ours, keep, recall
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from registry.home import Places

FILE_LIMIT = 1 << 20
# A snapshot holds the text, escaped, and the values made of it.
_SNAPSHOT_LIMIT = 8 * FILE_LIMIT
_FORMAT = 1

# What holds where the file is silent (INTERFACE 2); `""` for the station is the host's name.
DEFAULTS: dict[str, Any] = {
    "station": "",
    "carrier_session": "61b7959a-122e-410e-945d-f4b9b4f73cb7",
    "claude_bin": "claude",
    "claude_dir": "~/.claude",
    "max_turns": 1,
    "max_budget_usd": 0.05,
    "timeout_s": 60.0,
    "settle_s": 0.25,
    "pass_env": [],
    "tickets_root": "",
    "tickets_correlation": "",
    "targets": [],
}


class Target(Record):
    """One configured recipient."""

    id: str
    kind: str  # session, name, ticket or tsid
    value: str  # a session in canonical spelling, a ticket in upper case
    carrier_session: str | None  # "": none on purpose; a canonical UUID; another target's id


class Config(Record):
    """What the file and the environment say together."""

    station: str
    carrier_session: str  # "": the station has no postbox
    claude_bin: str  # a name, or an absolute path
    claude_dir: str
    max_turns: int
    max_budget_usd: float
    timeout_s: float
    settle_s: float
    pass_env: tuple[str, ...]
    tickets_root: str  # "": the home folder; else absolute
    tickets_correlation: str  # "": the built-in forms; else a regular expression with one group
    targets: tuple[Target, ...]

    def target(self, target_id: str) -> Target | None:
        """The configured target named exactly *target_id*."""
        return next((target for target in self.targets if target.id == target_id), None)


def load_config(places: Places, env: Mapping[str, str], *, version: str = "") -> Config:
    """The configuration of *places* under *env*, or ConfigInvalid; no file is all defaults.

    Writes at most the snapshot, and only into a state folder that exists: killed
    in the middle, the next call checks the file itself.  A snapshot of another
    *version* of zdo is not taken.
    """
    text = _text(places.config_file)
    if text is None:
        return _config(DEFAULTS, places, env)
    trusted = is_ours(places.state)
    snapshot = places.state + "/config.json"
    origin = [_FORMAT, version, text]
    values = _kept(snapshot, origin) if trusted else None
    if values is None:
        from registry.schema import check_file

        values = DEFAULTS | check_file(places.config_file, text)
        if trusted:
            keep(snapshot, {"origin": origin, "values": values})
    return _config(values, places, env)


def _config(values: Mapping[str, Any], places: Places, env: Mapping[str, str]) -> Config:
    claude_bin = env.get("ZDO_CLAUDE_BIN") or values["claude_bin"]
    if "/" in claude_bin:
        claude_bin = expand(claude_bin, places.home)
    return Config(
        station=values["station"] or os.uname().nodename,
        carrier_session=values["carrier_session"],
        claude_bin=claude_bin,
        claude_dir=expand(env.get("CLAUDE_CONFIG_DIR") or values["claude_dir"], places.home),
        max_turns=values["max_turns"],
        max_budget_usd=values["max_budget_usd"],
        timeout_s=values["timeout_s"],
        settle_s=values["settle_s"],
        pass_env=tuple(values["pass_env"]),
        tickets_root=values["tickets_root"] and expand(values["tickets_root"], places.home),
        tickets_correlation=values["tickets_correlation"],
        targets=tuple(Target(*target) for target in values["targets"]),
    )


def _text(path: str) -> str | None:
    try:
        content = read_plain(path, FILE_LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except Unreadable as error:
        raise ConfigInvalid(path, str(error).removeprefix(path).strip()) from error
    except OSError as error:
        raise ConfigInvalid(path, error.strerror or str(error)) from error
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigInvalid(path, "is not UTF-8 text", line=line) from error


def _kept(snapshot: str, origin: list[Any]) -> dict[str, Any] | None:
    """The values in *snapshot* if it was made of exactly *origin*, else None."""
    found = recall(snapshot, _SNAPSHOT_LIMIT)
    if not isinstance(found, dict) or found.get("origin") != origin:
        return None
    values = found.get("values")
    return values if isinstance(values, dict) and _fits(values) else None


def _fits(values: dict[str, Any]) -> bool:
    """Whether *values* have the names and types of the defaults, so that no field can be odd."""
    if values.keys() != DEFAULTS.keys():
        return False
    if any(type(values[name]) is not type(default) for name, default in DEFAULTS.items()):
        return False
    return all(map(_is_text, values["pass_env"])) and all(map(_is_target, values["targets"]))


def _is_target(found: object) -> bool:
    if not isinstance(found, list) or len(found) != len(Target.__annotations__):
        return False
    return all(map(_is_text, found[:-1])) and (found[-1] is None or _is_text(found[-1]))


def _is_text(found: object) -> bool:
    return isinstance(found, str)
