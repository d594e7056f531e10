"""`zdo report`: what became of deliveries, as lines, as one object, as a page."""

from __future__ import annotations

import json
import os
import stat
import sys

from dispatch.cli.answering import head, with_database
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import complain, speak
from dispatch.render import clean, failure_line
from dispatch.report.since import since_of
from dispatch.verdict import TABLE
from registry.clock import iso
from registry.ids import parse_uuid
from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from dispatch.database import Database
    from dispatch.house import House
    from dispatch.report.figures import Figures
    from dispatch.report.page import Period

SINCE: Final = "7d"
STDOUT: Final = "-"
_USUAL: Final = 80
_ADVICE: Final = "give the path of a file that can be written"
_FINE: Final = {"class": None, "exit": 0}


class Asked(Record):
    """`zdo report` as it was typed."""

    session_id: str | None = None
    since: str = SINCE
    target: str | None = None
    html: str | None = None
    as_object: bool = False


def report(asked: Asked) -> int:
    """`zdo report`: 0 when the figures are said, and on disk where a page was asked for."""
    if asked.html == "" or (asked.html == STDOUT and asked.as_object):
        raise Usage("--html takes a FILE, or - without --json")
    house = this_house(asked.session_id)
    period = _period(asked, house)
    if not os.path.lexists(house.places.database):
        return _say(asked, house, period, _nothing())

    def ask(database: Database, house: House) -> int:
        from dispatch.report.gather import gather

        return _say(asked, house, period, gather(database, period.since, period.target))

    return with_database("report", asked.session_id, ask, as_object=asked.as_object)


def _period(asked: Asked, house: House) -> Period:
    from dispatch.report.page import Period

    now = house.clock.now()
    try:
        since = since_of(asked.since, now)
    except ValueError as error:
        raise Usage(f"--since {clean(asked.since)!r} {error}") from None
    target = asked.target
    return Period(since, now, None if target is None else parse_uuid(target) or target)


def _nothing() -> Figures:
    """The figures of a house that never kept a line; looking makes no database."""
    from dispatch.report.figures import figures

    return figures(0, (), ())


def _say(asked: Asked, house: House, period: Period, found: Figures) -> int:
    path = None
    if asked.html is not None:
        from dispatch.report.page import page

        text = page(found, period)
        if asked.html == STDOUT:
            return speak(text.removesuffix("\n").split("\n"))
        path = os.path.realpath(asked.html)
        if (why := _unwritten(path, text)) is not None:
            return _refuse(asked, house, f"{path}: {why}")
    if asked.as_object:
        return speak([json.dumps(_told(house, period, found, path))])
    if path is not None:
        from dispatch.report.wording import deliveries

        return speak([clean(f"written: {path} ({deliveries(found.deliveries)})")])
    from dispatch.cli.report_lines import lines, paper_of

    return speak(lines(found, period, paper_of(width_of_stdout(), sys.stdout.encoding or "ascii")))


def _told(house: House, period: Period, found: Figures, path: str | None) -> dict[str, Any]:
    from dispatch.report.as_object import as_json

    told = {
        "since": None if period.since is None else iso(period.since),
        "until": iso(period.until),
        "target": period.target,
        "html": path,
    }
    return head("report", house.speaker, _FINE) | told | as_json(found)


def _unwritten(path: str, text: str) -> str | None:
    """Why *text* is not at *path*, as a clause; None: all of it is, for its owner alone.

    Killed in the middle, what stood there stands.
    """
    from registry.durable import write_whole

    try:
        # A device, a pipe or a folder is nothing to be replaced by a page.
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            return "is not a plain file"
        write_whole(path, text.encode("ascii"))
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def _refuse(asked: Asked, house: House, reason: str) -> int:
    verdict = TABLE["spool-unwritable"]
    complain(failure_line(verdict.name, reason, _ADVICE))
    if asked.as_object:
        status = {"class": verdict.name, "exit": verdict.exit}
        whole = head("report", house.speaker, status) | {"reason": reason, "advice": _ADVICE}
        speak([json.dumps(whole)], quietly=True)
    return verdict.exit


def width_of_stdout() -> int | None:
    """The columns of the terminal that stdout is; None when it is none."""
    if not sys.stdout.isatty():
        return None
    # A terminal that nobody has given a size has none.
    return os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL
