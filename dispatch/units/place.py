"""A unit put into its place, looked at and taken away: files of the user's own, and no more.

Nothing here tells a scheduler anything: whoever installs gives the one command for that.
"""

from __future__ import annotations

import contextlib
import os

from dispatch.errors import UnitImpossible
from registry.durable import read_plain, write_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.units import File, Unit

CURRENT, OTHER, ABSENT = "current", "differs", "absent"


def look(unit: Unit) -> tuple[tuple[str, str], ...]:
    """Each path of *unit*, and whether what stands there is what would be written now."""
    return tuple((file.path, _state(file)) for file in unit.files)


def install(unit: Unit) -> None:
    """Write the files of *unit*; UnitImpossible, and nothing written, where another one stands.

    Killed in the middle, each file is whole or not there; asked again, all are there.
    """
    for path, state in look(unit):
        _refuse_what_is_no_file(path)
        if state == OTHER:
            raise UnitImpossible(
                f"{path} is there and differs from what would be written;"
                " take it away with --uninstall first, or give another --label"
            )
    for file in unit.files:
        with _told(file.path):
            os.makedirs(os.path.dirname(file.path), exist_ok=True)
            write_whole(file.path, file.content)


def uninstall(unit: Unit) -> None:
    """Remove what was installed of *unit*, last things first; what is gone already is no error.

    A file is zdo's and this state folder's when the hint is one of its lines, whatever else was
    changed in it.  Where one is not: UnitImpossible, and nothing removed.  A link that leads
    elsewhere is left.  Killed in the middle, asked again removes the rest.
    """
    for file in unit.files:
        _refuse_what_is_no_file(file.path)
        if _is_strange(file.path, unit.hint):
            raise UnitImpossible(
                f"{file.path} is none that zdo unit {unit.kind} made for this state folder;"
                " remove it by hand, or give another --label"
            )
    ours = {os.path.realpath(file.path) for file in unit.files}
    links = (link for link in unit.links if os.path.realpath(link) in ours)
    for path in (*links, *(file.path for file in reversed(unit.files))):
        with _told(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def _is_strange(path: str, hint: bytes) -> bool:
    with _told(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return hint not in read_plain(path).split(b"\n")
    return False


def _state(file: File) -> str:
    try:
        return CURRENT if read_plain(file.path) == file.content else OTHER
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError:
        return OTHER


def _refuse_what_is_no_file(path: str) -> None:
    # A link to /dev/null is how systemd masks a unit: somebody wants none of that name.
    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise UnitImpossible(f"{path} is not a plain file; move it away")


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnitImpossible(f"{path}: {error.strerror or error}") from error
