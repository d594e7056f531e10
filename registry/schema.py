"""The shape of the configuration file, and where in it a fault stands (INTERFACE 2).

Costs ten interpreters to import: only `targets` does, and only for a text that it
has not seen before.
"""

from __future__ import annotations

import re
import tomllib
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from registry import spelling
from registry.errors import ConfigInvalid
from registry.ids import parse_uuid

_KEY_STEP = "[key]"  # what pydantic adds to the path of a key that is itself at fault
_SAID = {
    "extra_forbidden": "is not a known key",
    "model_type": "is not a table",
    "dict_type": "is not a table",
}
# Each fault is searched for in the text; the first one shown is the first of these.
_FAULTS_SEEN = 20
_BARE = re.compile(r"[A-Za-z0-9_-]+")


_Text = Annotated[str, Field(min_length=1), AfterValidator(spelling.printable)]
_Path = Annotated[str, Field(min_length=1), AfterValidator(spelling.path)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Station(_Closed):
    """`[station]`: this machine."""

    name: _Text = ""
    carrier_session: Annotated[str, AfterValidator(spelling.session_or_none)] = ""
    claude_bin: _Path = ""
    claude_config_dir: _Path = ""


class Carrier(_Closed):
    """`[carrier]`: the limits of a carrier run; they can be lowered, never removed."""

    max_turns: Annotated[int, Field(ge=1, le=4)] = 1
    max_budget_usd: Annotated[_Finite, Field(gt=0)] = 1.0
    timeout_s: Annotated[_Finite, Field(gt=0, le=3600)] = 1.0
    settle_s: Annotated[_Finite, Field(ge=0, le=60)] = 1.0
    pass_env: list[Annotated[str, AfterValidator(spelling.variable)]] = []


class TargetEntry(_Closed):
    """`[targets.<id>]`: exactly one selector, and perhaps a postbox of its own."""

    session: Annotated[str, AfterValidator(spelling.session)] | None = None
    name: _Text | None = None
    ticket: Annotated[str, AfterValidator(spelling.ticket)] | None = None
    tsid: Annotated[_Text, AfterValidator(spelling.pane)] | None = None
    carrier_session: str | None = None

    @model_validator(mode="after")
    def _one_selector(self) -> TargetEntry:
        if len(self.selectors()) != 1:
            raise ValueError("needs exactly one of session, name, ticket, tsid")
        return self

    def selectors(self) -> list[tuple[str, str]]:
        """The selectors that are given, as (kind, value)."""
        kinds = ("session", "name", "ticket", "tsid")
        return [(kind, value) for kind in kinds if (value := getattr(self, kind)) is not None]


class Tickets(_Closed):
    """`[tickets]`: where the ledger is, and how its correlation ids name processes."""

    root: Annotated[str, AfterValidator(spelling.root)] = ""
    correlation: Annotated[str, AfterValidator(spelling.one_group)] = ""


class File(_Closed):
    """The whole file; every part may be missing."""

    station: Station = Station()
    carrier: Carrier = Carrier()
    tickets: Tickets = Tickets()
    targets: dict[Annotated[str, AfterValidator(spelling.target_id)], TargetEntry] = {}


def check_file(path: str, text: str) -> dict[str, Any]:
    """What the configuration *text* gives, by the names of Config's fields, or ConfigInvalid."""
    try:
        checked = File.model_validate(_parsed(path, text))
    except ValidationError as error:
        shown = error.errors(include_url=False, include_input=False)[:_FAULTS_SEEN]
        faults = [_fault(text, found["loc"], found["type"], found["msg"]) for found in shown]
        line, key, why = min(faults)
        raise ConfigInvalid(path, why, line=line, key=key) from error
    given = checked.station.model_dump(exclude_unset=True)
    renamed = {"name": "station", "claude_config_dir": "claude_dir"}
    station = {renamed.get(name, name): value for name, value in given.items()}
    targets = [_target(path, text, name, checked) for name in checked.targets]
    carrier = checked.carrier.model_dump(exclude_unset=True)
    tickets = checked.tickets.model_dump(exclude_unset=True)
    tickets = {f"tickets_{name}": value for name, value in tickets.items()}
    return {**station, **carrier, **tickets, "targets": targets}


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line of *text* where the statement begins that first defines the key *path*.

    Found with the parser itself: the shortest head of the file that parses and has
    the key ends with that statement, and the longest one before it ends above it.
    """
    if not path or not _defines(text, path):
        return None
    lines = [line + "\n" for line in text.split("\n")]
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        whole = _whole_head(lines, middle)
        if _defines("".join(lines[:whole]), path):
            high = whole
        else:
            low = middle
    return _whole_head(lines, high - 1) + 1


def _whole_head(lines: list[str], count: int) -> int:
    """The greatest number of *lines*, at most *count*, that parse by themselves."""
    while count and _tree("".join(lines[:count])) is None:
        count -= 1
    return count


def _defines(text: str, path: tuple[str, ...]) -> bool:
    node: Any = _tree(text)
    for step in path:
        if not isinstance(node, dict) or step not in node:
            return False
        node = node[step]
    return True


def _tree(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _parsed(path: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ConfigInvalid(path, "is nested too deeply", line=_broken(text)) from error
    except ValueError as error:
        why, _, place = str(error).partition(" (at ")
        # A text or list that is never closed is reported at the end; it begins elsewhere.
        told = re.match(r"line ([0-9]+)", place)
        line = int(told[1]) if told else _broken(text)
        raise ConfigInvalid(path, f"is not TOML: {why}", line=line) from error


def _broken(text: str) -> int:
    """The line where the first statement begins that does not parse."""
    lines = [line + "\n" for line in text.split("\n")]
    return _whole_head(lines, len(lines)) + 1


def _target(path: str, text: str, name: str, file: File) -> list[Any]:
    entry = file.targets[name]
    carrier = entry.carrier_session
    if carrier:
        carrier = parse_uuid(carrier) or carrier
        if carrier == name or (carrier not in file.targets and parse_uuid(carrier) is None):
            why = "names itself" if carrier == name else f"{carrier!r} is no UUID and no target"
            place = ("targets", name, "carrier_session")
            raise ConfigInvalid(path, why, line=line_of(text, place), key=_dotted(place))
    return [name, *entry.selectors()[0], carrier]


def _fault(text: str, place: tuple[int | str, ...], kind: str, why: str) -> tuple[int, str, str]:
    steps = tuple(step for step in place if isinstance(step, str) and step != _KEY_STEP)
    why = _SAID.get(kind, why.removeprefix("Value error, "))
    return line_of(text, steps) or 1, _dotted(steps), why[:1].lower() + why[1:]


def _dotted(steps: tuple[str, ...]) -> str:
    return ".".join(step if _BARE.fullmatch(step) else repr(step) for step in steps)
