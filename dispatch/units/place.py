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
    """Write the files of *unit*, or UnitImpossible.

    Killed in the middle, each file is whole, old or new; asked again, all are new.
    """
    for file in unit.files:
        with _told(file.path):
            _refuse_what_is_no_file(file.path)
            os.makedirs(os.path.dirname(file.path), exist_ok=True)
            write_whole(file.path, file.content)


def uninstall(unit: Unit) -> None:
    """Remove what was installed of *unit*, last things first; what is gone already is no error.

    Killed in the middle, asked again removes the rest.
    """
    for path in (*unit.links, *(file.path for file in reversed(unit.files))):
        with _told(path), contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


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
