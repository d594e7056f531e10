"""Where things are: the configuration, the state folder, Claude Code's own folder.

Environment in, paths out.  Nothing here reads os.environ.
"""

from __future__ import annotations

import os
import pwd
import stat

from registry.errors import StateUnsafe
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Entries that zdo itself makes: a folder that holds nothing else may be tightened.
_OURS = frozenset(
    {"attempts", "ballast", "corrupt", "locks", "postbox", "relay.lock", "relay.log", "spool.lock"}
)
_OUR_FILES = ("zdo.db", "config.json", "ledger.json")


class Places(Record):
    """The folders and files of one zdo, as absolute paths."""

    home: str
    config_file: str
    state: str

    @property
    def database(self) -> str:
        """Spool and journal, one SQLite file."""
        return self.state + "/zdo.db"

    @property
    def ballast(self) -> str:
        """Room that is given up when the disk is full."""
        return self.state + "/ballast"

    @property
    def corrupt(self) -> str:
        """Where a damaged database is kept; nothing in it is ever deleted."""
        return self.state + "/corrupt"

    @property
    def ledger_memory(self) -> str:
        """What was read of the ticket events so far; without it they are read afresh."""
        return self.state + "/ledger.json"

    @property
    def relay_lock(self) -> str:
        """Held by the one relay that is at work."""
        return self.state + "/relay.lock"

    @property
    def relay_log(self) -> str:
        """Where a scheduler appends what its relays complain about."""
        return self.state + "/relay.log"

    @property
    def attempts(self) -> str:
        """One folder per attempt."""
        return self.state + "/attempts"

    @property
    def locks(self) -> str:
        """One lease file per postbox; none is ever unlinked."""
        return self.state + "/locks"

    @property
    def postbox(self) -> str:
        """The one folder that every carrier runs in (INTERFACE 4)."""
        return self.state + "/postbox"


def find_places(env: Mapping[str, str]) -> Places:
    """Where this zdo keeps its things; a missing HOME falls back to the user database."""
    home = _folder(env, "HOME") or _home_of_user()
    config_root = _folder(env, "XDG_CONFIG_HOME") or home + "/.config"
    state_root = _folder(env, "XDG_STATE_HOME") or home + "/.local/state"
    return Places(
        home=home,
        config_file=_absolute(env.get("ZDO_CONFIG") or config_root + "/zdo/zdo.toml", home),
        state=_absolute(env.get("ZDO_STATE_DIR") or state_root + "/zdo", home),
    )


def _folder(env: Mapping[str, str], name: str) -> str | None:
    # A relative one would be another folder in every working folder (XDG: "ignore it").
    path = env.get(name, "")
    return path if path.startswith("/") else None


def expand(path: str, home: str) -> str:
    """*path* made absolute: a leading `~` is *home*, a relative path starts at the cwd."""
    return _absolute(path, home)


def open_state(places: Places) -> None:
    """Make the state folder and its parts, 0700, or raise StateUnsafe.

    A folder of ours that others may enter is tightened, but only when it holds
    nothing foreign: somebody may have pointed ZDO_STATE_DIR at a shared folder.
    """
    state = places.state
    try:
        os.makedirs(state, 0o700, exist_ok=True)
        if refuse_unsafe(places):
            os.chmod(state, 0o700)
        for part in _parts(places):
            make_private(part)
    except OSError as error:
        raise StateUnsafe(state, error.strerror or str(error)) from error


def refuse_unsafe(places: Places) -> bool:
    """Whether the state folder, which is there, has to be tightened; StateUnsafe if it cannot be.

    Nothing is changed.
    """
    found = os.lstat(places.state)
    _check_folder(places.state, found)
    is_open = bool(stat.S_IMODE(found.st_mode) & 0o077)
    if is_open:
        _refuse_foreign(places.state)
    for part in filter(os.path.lexists, _parts(places)):
        _check_folder(part, os.lstat(part))
    return is_open


def make_private(folder: str) -> None:
    """Make *folder*, 0700; StateUnsafe when what is there is not a folder of ours."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        _check_folder(folder, os.lstat(folder))


def _parts(places: Places) -> tuple[str, ...]:
    return places.attempts, places.locks, places.postbox


def _check_folder(path: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise StateUnsafe(path, "is a symlink; point ZDO_STATE_DIR at the folder itself")
    if not stat.S_ISDIR(found.st_mode):
        raise StateUnsafe(path, "is not a folder")
    if found.st_uid != os.geteuid():
        raise StateUnsafe(path, f"belongs to user {found.st_uid}, not to you")


def _refuse_foreign(state: str) -> None:
    foreign = [n for n in os.listdir(state) if n not in _OURS and not n.startswith(_OUR_FILES)]
    if foreign:
        raise StateUnsafe(state, f"is open to others and holds {foreign[0]!r}; chmod 700 it")


def _home_of_user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        # A uid without an entry, as in many containers: the root is at least a folder.
        return "/"


def _absolute(path: str, home: str) -> str:
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if not path.startswith("/"):
        path = (_cwd() or "/") + "/" + path
    # Two leading slashes would stay two: POSIX lets them mean another root.
    return os.path.normpath("/" + path.lstrip("/"))


def _cwd() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
