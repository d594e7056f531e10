"""What is known of each postbox: who uses it, where its transcript lies, whether anybody drives it.

Only looks.  A postbox that never had a model turn is found by `claude` only from the folder
it was made in (CONTRACT c), and Claude Code removes transcripts that grow cold.
"""

from __future__ import annotations

import json
import os
import shlex

from carrier.transcript import find_transcript, slug
from dispatch.aim import is_leased
from registry.durable import read_plain
from registry.ids import parse_uuid
from registry.record import Record
from registry.resolve import find_again
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from dispatch.house import House
    from registry.rows import Listing
    from registry.targets import Config

STATION: Final = "station"
READY, MISSING, CARRYING = "ready", "missing", "carrying"
OPEN, MISPLACED = "OPEN", "misplaced"
DAY_S: Final = 86_400.0
_SOON_DAYS: Final = 7.0
_USUAL_DAYS: Final = 30.0
_MODEL_TURN: Final = b'"type":"assistant"'
_PART: Final = 1 << 20


class Postbox(Record):
    """One postbox at the moment of the look."""

    session_id: str
    used_by: tuple[str, ...]  # "station" and targets' ids; empty: nobody's
    transcript: str | None  # None: it does not exist
    bytes: int | None
    touched_at: float | None  # seconds since 1970
    in_place: bool | None  # it was made in the folder where carriers run
    pid: int | None  # a running session has its id
    leased: bool  # a carrier of ours may be running through it

    @property
    def state(self) -> str:
        """In one word, the gravest first."""
        if self.pid is not None and not self.leased:
            return OPEN
        if self.transcript is None:
            return MISSING
        if self.leased:
            return CARRYING
        return READY if self.in_place or has_model_turn(self.transcript) else MISPLACED

    def complaint(self, days: float | None, now: float) -> tuple[str, str] | None:
        """What is wrong with it and the command that mends it; None when it can carry.

        *days*: how long Claude Code keeps what is not touched, None where that is not known.
        """
        who = next((each for each in self.used_by if each != STATION), None)
        for_whom = "" if STATION in self.used_by or who is None else f" --for {shlex.quote(who)}"
        rotate = f"zdo postbox rotate{for_whom}"
        if self.state == OPEN:
            return f"is open as pid {self.pid}", rotate
        if self.state == MISSING:
            return "does not exist", f"zdo postbox new{for_whom}"
        if self.state == MISPLACED:
            return "was made in another folder and cannot be resumed", rotate
        if days is None or self.touched_at is None:
            return None
        left = days - (now - self.touched_at) / DAY_S
        if left >= _SOON_DAYS:
            return None
        when = "at any moment" if left <= 0 else f"in {left:.0f} days"
        return f"is removed by Claude Code {when}", "zdo postbox check --touch"


def postboxes(house: House) -> tuple[Postbox, ...]:
    """Every configured postbox, the station's first; ConfigInvalid or RegistryUnreadable."""
    config = house.config()
    users: dict[str, list[str]] = {}
    for who, postbox in _named(config):
        users.setdefault(postbox, []).append(who)
    listing = read_rows(config.claude_dir, house.processes)
    return tuple(
        find_postbox(house, config, listing, postbox, tuple(each))
        for postbox, each in users.items()
    )


def unused(house: House, known: tuple[Postbox, ...]) -> tuple[Postbox, ...]:
    """The sessions that were made where postboxes are made and that no configuration names."""
    config = house.config()
    folder = project_folder(config, house)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    found = [parse_uuid(name.removesuffix(".jsonl")) for name in names if name.endswith(".jsonl")]
    named = {each.session_id for each in known}
    listing = read_rows(config.claude_dir, house.processes)
    return tuple(
        find_postbox(house, config, listing, each, ())
        for each in found
        if each is not None and each not in named
    )


def find_postbox(
    house: House, config: Config, listing: Listing, session_id: str, used_by: tuple[str, ...]
) -> Postbox:
    """What is known of the session *session_id* as a postbox."""
    path = find_transcript(config.claude_dir, session_id, None)
    found = _stat(path)
    if found is None:
        path = None
    rows = find_again(session_id, listing)
    return Postbox(
        session_id=session_id,
        used_by=used_by,
        transcript=path,
        bytes=None if found is None else found.st_size,
        touched_at=None if found is None else found.st_mtime,
        in_place=None if path is None else os.path.dirname(path) == project_folder(config, house),
        pid=rows[0].pid if rows else None,
        leased=is_leased(house, session_id),
    )


def project_folder(config: Config, house: House) -> str:
    """Where Claude Code keeps the transcripts of sessions that are made where carriers run."""
    # It names the folder that it finds itself in, with every link resolved.
    return f"{config.claude_dir}/projects/{slug(os.path.realpath(house.places.postbox))}"


def has_model_turn(transcript: str) -> bool:
    """Whether a model ever answered there; also true where that cannot be read."""
    try:
        with open(transcript, "rb") as file:
            last = b""
            while part := file.read(_PART):
                last += part
                if _MODEL_TURN in last:
                    return True
                last = last[-len(_MODEL_TURN) :]
    except OSError:
        return True
    return False


def cleanup_days(claude_dir: str) -> float | None:
    """After how many days Claude Code removes a cold transcript; None where it cannot be read."""
    try:
        settings = json.loads(read_plain(f"{claude_dir}/settings.json"))
    except FileNotFoundError:
        return _USUAL_DAYS
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(settings, dict):
        return None
    days = settings.get("cleanupPeriodDays", _USUAL_DAYS)
    is_number = isinstance(days, (int, float)) and not isinstance(days, bool)
    return float(days) if is_number else None


def _named(config: Config) -> list[tuple[str, str]]:
    """Who names which session as a postbox; a target without one of its own uses the station's."""
    named = [(STATION, config.carrier_session)] if config.carrier_session else []
    for target in config.targets:
        own = target.carrier_session
        other = config.target(own) if own else None
        if other is not None:
            # By a name, a ticket or a pane it is another session each time.
            own = other.value if other.kind == "session" else None
        if own:
            named.append((target.id, own))
    return named


def _stat(path: str | None) -> os.stat_result | None:
    # It may have gone since it was found.
    return os.stat(path) if path is not None and os.path.exists(path) else None
