"""One change to the configuration file: made under a lock, checked, written whole or not at all.

What is not changed stays as a person wrote it, to the byte.  A change that cannot be made
so is refused, and the file is as it was.
"""

from __future__ import annotations

import os
import stat
import tomllib

from dispatch.tool_errors import ChangeInvalid, TargetMissing, TargetNeeded, TargetTaken
from registry.durable import Unreadable, read_plain, write_whole
from registry.errors import ConfigInvalid
from registry.targets import FILE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from typing import Any

    from registry.home import Places

    Tree = MutableMapping[str, Any]
    # The same change is made to what the text means and to the text itself.
    Change = Callable[[Tree], None]

_KINDS = frozenset(("session", "name", "ticket", "tsid"))
_PATIENCE_S = 5.0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_BY_HAND = "cannot be changed without touching the rest of it; change it by hand"


def set_postbox(places: Places, session_id: str, target: str | None = None) -> None:
    """The station's postbox is *session_id*, or that of the configured *target*; "": none is named.

    A file that is not there is made, 0600.  ConfigInvalid when the file is broken, is in
    use for 5 s, is not ours alone to write, or cannot be written; TargetMissing.  Killed at
    any moment, the old file stands or the new one does.
    """

    def change(tree: Tree) -> None:
        if target is None:
            part = tree.setdefault("station", {})
        else:
            part = _targets(tree).get(target)
            if part is None:
                raise TargetMissing(target, places.config_file)
        _put(part, "carrier_session", session_id)

    rewrite(places, change)


def set_target(
    places: Places,
    target_id: str,
    selector: tuple[str, str] | None,
    carrier_session: str | None,
    *,
    must_exist: bool,
) -> None:
    """The target *target_id* is found by *selector*, a kind and its value, and has that postbox.

    None leaves either as it is, "" takes the postbox away, so that the station's is used.
    Errors as `set_postbox`, TargetTaken where it must not exist, ChangeInvalid for an odd value.
    """

    def change(tree: Tree) -> None:
        targets = tree.setdefault("targets", {})
        if (target_id in targets) != must_exist:
            refusal = TargetMissing if must_exist else TargetTaken
            raise refusal(target_id, places.config_file)
        entry = targets.setdefault(target_id, {})
        if selector is not None:
            for other in _KINDS - {selector[0]}:
                entry.pop(other, None)
            entry[selector[0]] = selector[1]
        if carrier_session is not None:
            _put(entry, "carrier_session", carrier_session)

    rewrite(places, change)


def drop_target(places: Places, target_id: str) -> None:
    """No target is named *target_id* any more; TargetMissing, TargetNeeded, or as `set_postbox`."""

    def change(tree: Tree) -> None:
        targets = _targets(tree)
        if target_id not in targets:
            raise TargetMissing(target_id, places.config_file)
        users = tuple(
            name for name, entry in targets.items() if entry.get("carrier_session") == target_id
        )
        if users:
            raise TargetNeeded(target_id, users)
        del targets[target_id]

    rewrite(places, change)


def rewrite(places: Places, change: Change) -> None:
    """Make *change* to the file of *places*, as the functions above promise it."""
    from filelock import FileLock, Timeout

    path = places.config_file
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        # A file that is kept elsewhere and linked here is changed where it is kept.
        real = os.path.realpath(path)
        # No lock stays behind in the folder of a file that could not be replaced there.
        _refuse_foreign(path, real)
        lock = FileLock(real + ".lock", timeout=_PATIENCE_S, mode=0o600, fallback_to_soft=False)
        with lock:
            mode = _refuse_foreign(path, real)
            old = _text_of(path, real)
            new = _changed(path, old, change)
            if new != old:
                write_whole(real, new.encode(), mode)
    except Timeout as error:
        raise ConfigInvalid(
            path, f"is being changed by another zdo for {_PATIENCE_S:g} s"
        ) from error
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigInvalid(path, f"cannot be changed: {why}") from error


def _changed(path: str, old: str, change: Change) -> str:
    """*old* with *change*: the first of two ways that changes what is meant and nothing else."""
    from registry.schema import check_file

    check_file(path, old)
    meant = tomllib.loads(old)
    before = tomllib.loads(old)
    change(meant)
    if meant == before:
        return old
    try:
        check_file(path, _spelled(meant))
    except ConfigInvalid as error:
        raise ChangeInvalid(error.key, error.why) from error
    for way in (_by_adding, _by_editing):
        new = way(old, before, meant, change)
        if new is not None and _means(new, meant):
            return new
    raise ConfigInvalid(path, _BY_HAND)


def _by_adding(old: str, before: Tree, meant: Tree, _change: Change) -> str | None:
    """*old* with what is new behind it; None where the change is more than that."""
    added: dict[str, Any] = {}
    for name, part in meant.items():
        if name not in before:
            added[name] = part
        elif name == "targets" and part != before[name]:
            kept = {each: part[each] for each in before[name] if each in part}
            if kept != before[name]:
                return None
            added[name] = {each: part[each] for each in part if each not in kept}
        elif part != before[name]:
            return None
    gap = "" if not old else "\n" if old.endswith("\n") else "\n\n"
    return old + (gap + _spelled(added)).replace("\n", _line_end(old))


def _by_editing(old: str, _before: Tree, _meant: Tree, change: Change) -> str | None:
    """*old* with *change* made in its place."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(old)
        change(document)
        new = tomlkit.dumps(document)
    except (TOMLKitError, ValueError, TypeError, AttributeError, KeyError):
        return None  # a spelling of TOML that it cannot change
    if _line_end(old) == "\r\n":
        new = new.replace("\r\n", "\n").replace("\n", "\r\n")
    return new


def _spelled(tree: Tree) -> str:
    import tomlkit

    return tomlkit.dumps(tree)


def _means(text: str, meant: Tree) -> bool:
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError):
        return False
    # A part that holds nothing says nothing, so its name may be there or not.
    return _filled(found) == _filled(meant)


def _filled(tree: Tree) -> Tree:
    return {name: part for name, part in tree.items() if part != {}}


def _line_end(text: str) -> str:
    """How the lines of *text* end: a mixed one is as it is."""
    return "\r\n" if text.count("\r\n") == text.count("\n") > 0 else "\n"


def _targets(tree: Tree) -> Tree:
    found: Tree = tree.get("targets", {})
    return found


def _put(part: Tree, name: str, value: str) -> None:
    if value:
        part[name] = value
    else:
        part.pop(name, None)


def _text_of(path: str, real: str) -> str:
    """The text that stands there; empty for a file that does not exist."""
    try:
        return read_plain(real, FILE_LIMIT).decode()
    except FileNotFoundError:
        return ""
    except Unreadable as error:
        raise ConfigInvalid(path, str(error).removeprefix(real).strip()) from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid(path, "is not UTF-8 text") from error


def _refuse_foreign(path: str, real: str) -> int:
    """The mode of the file; ConfigInvalid when others own it or may write it."""
    try:
        found = os.stat(real)
    except FileNotFoundError:
        return 0o600
    if found.st_uid != os.geteuid():
        raise ConfigInvalid(path, f"belongs to user {found.st_uid}, not to you")
    if found.st_mode & _OTHERS_WRITE:
        raise ConfigInvalid(path, f"can be written by others; chmod go-w {real}")
    return stat.S_IMODE(found.st_mode)
