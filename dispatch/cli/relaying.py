"""`zdo relay`: one pass, or one after another; a bar on a terminal, a line in a pipe."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import sys

from carrier.errors import NestedKiss
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.speech import complain, speak
from dispatch.due import due_next
from dispatch.errors import DispatchError
from dispatch.judge import class_of_error
from dispatch.kiss import NESTED
from dispatch.relay import RelayBusy, alone
from dispatch.relay import relay as run_pass
from dispatch.render import failure_line
from dispatch.tally import Tally
from dispatch.verdict import TABLE
from registry.errors import RegistryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from dispatch.due import Plan
    from dispatch.house import House

_BUSY = "another relay is at work here"
_TICK_S = 1.0  # how often a following relay looks whether there is something new
_LONGEST_S = 10.0  # between two passes: a target may have appeared, an open delivery be settled


def relay(session_id: str | None, *, follow: bool, seconds: float, as_object: bool) -> int:
    """`zdo relay`: the exit status of the pass, or why a following one had to stop."""
    if math.isnan(seconds):
        raise Usage("--for takes a number of seconds")
    house = this_house(session_id)
    tally = Tally(house.speaker)
    try:
        _refuse_nested(house)
        with alone(house):
            if follow:
                return _follow(house, seconds, as_object=as_object)
            with _bar() as told:
                _pass(house, seconds, tally, told)
    except RelayBusy:
        return _say_busy(house, as_object=as_object)
    except (RegistryError, NestedKiss) as error:
        tally.broken(class_of_error(error), str(error))
    return _say(tally, as_object=as_object)


def _refuse_nested(house: House) -> None:
    if NESTED in house.env:
        raise NestedKiss(house.env[NESTED])


def _pass(house: House, seconds: float, tally: Tally, told: Callable[[Tally], None]) -> Plan | None:
    """What is left after one pass; None when it was broken off, and *tally* has that too."""
    try:
        return run_pass(house, seconds, tally, told)
    except KeyboardInterrupt:
        tally.broken("interrupted", "stopped by Ctrl-C")
    except (RegistryError, DispatchError) as error:
        tally.broken(class_of_error(error), str(error))
    return None


def _follow(house: House, seconds: float, *, as_object: bool) -> int:
    """Passes until somebody ends it; the status is then 0, for that was wished."""
    tally = Tally(house.speaker)
    ending: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        # A run that is under way is finished: ending it would only make doubts.
        ending.append(number)
        tally.end()

    _heed(end)
    while not ending:
        seen, tally = _stamp(house), Tally(house.speaker)
        plan = _pass(house, seconds, tally, lambda _: None)
        if plan is None:
            return _say(tally, as_object=as_object)
        if tally.results or tally.trouble:
            _say(tally, as_object=as_object)
        # A pass that wrote may have missed a line that came meanwhile; one that did not shows it.
        if not tally.results:
            _wait(house, seen, plan, ending)
    return 0


def _heed(end: Callable[[int, FrameType | None], None]) -> None:
    """Let the signals that end a program call *end*; one that nohup or `&` ignores stays so."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def _wait(house: House, seen: object, plan: Plan, ending: list[int]) -> None:
    """Return when the spool has changed, a line is due, or it is time to look around again."""
    clock = house.clock
    until = clock.monotonic() + _LONGEST_S
    if (at := due_next(plan.halts)) is not None:
        until = min(until, clock.monotonic() + max(at - clock.now(), 0.0))
    while not ending:
        clock.sleep(_TICK_S)
        if _stamp(house) != seen or clock.monotonic() >= until:
            return


def _stamp(house: House) -> tuple[int, int] | None:
    """What changes whenever a line is kept."""
    try:
        found = os.stat(house.places.database)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _say_busy(house: House, *, as_object: bool) -> int:
    told = Tally(house.speaker).as_json() | {"reason": _BUSY}
    return speak([json.dumps(told) if as_object else f"relay: {_BUSY}"])


def _say(tally: Tally, *, as_object: bool) -> int:
    status = tally.verdict.exit
    if tally.trouble:
        name, reason = tally.trouble
        advice = TABLE[name].advice.replace("{id}", tally.about or "DELIVERY")
        complain(failure_line(name, reason, advice))
    lines = [json.dumps(tally.as_json())] if as_object else [tally.line()]
    lost = speak(lines, quietly=status != 0)
    return status or lost


def say_failed(name: str, reason: str) -> int:
    """The exit status of a pass that never began, said as the one object of a pass."""
    tally = Tally()
    tally.broken(name, reason)
    return _say(tally, as_object=True)


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Tally], None]]:
    """What hears of the pass: a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    shown = (TextColumn("relay"), BarColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    # Drawn by us alone: a thread that draws would be in the middle of it when a keeper is forked.
    with Progress(*shown, console=console, transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=None)

        def told(tally: Tally) -> None:
            done = len(tally.results)
            of_all = done + tally.left
            count = f"{done} of {of_all}"
            progress.update(task, completed=done, total=of_all, description=count, refresh=True)

        yield told
