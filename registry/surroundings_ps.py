"""Surroundings of a process as `ps` prints them, where there is no /proc.  An edge.

`ps` parts nothing: what follows the known arguments is the environment, and a variable
ends where a blank stands.  What may be read in two ways is not read (RULES T05).
Not promised: to know a variable from the same text inside another one's value.
"""

from __future__ import annotations

import os
import select

from registry.record import Record
from registry.surroundings import ENDED, REPLACED, ROUNDING_S, Look, plain_pane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from registry.clock import Clock
    from registry.surroundings import Table

_SECONDS: Final = 2.0  # for all calls together
_LARGEST_PID: Final = (1 << 31) - 1
_PID_DIGITS: Final = 10
_LONGEST: Final = 64 << 20
_BLOCK: Final = 1 << 16
# procps cuts a line at 128 KiB without a word.
_LONG_LINE: Final = 1 << 16

_PANE: Final = rb" TERM_SESSION_ID=([^ ]*)(?=( [^ =]+=| |\Z))"
_ETIME: Final = rb"(?:(\d{1,6})-)?(?:(\d{1,2}):)?(\d{1,4}):(\d{2})"
_DOUBTFUL: Final = frozenset("?\\\ufffd")
# One -o for each column: after `=` some take the rest of the argument as the heading.
_ALL: Final = ("-A", "-o", "pid=", "-o", "ppid=", "-o", "etime=", "-o", "stat=")
_ARGUMENTS: Final = ("-ww", "-o", "pid=", "-o", "etime=", "-o", "command=", "-p")
_ENVIRONMENT: Final = ("eww", "-o", "pid=", "-o", "command=", "-p")


class _NoAnswer(Exception):
    """`ps` did not say; its text is the clause."""


class _Printed(Record):
    """What `ps` printed of the wanted processes, in the order of the calls."""

    before: dict[int, tuple[float, bytes]]  # started, arguments
    environment: dict[int, list[bytes]]
    table: Table
    after: dict[int, tuple[float, bytes]]


def look_by_ps(
    wanted: Mapping[int, str], env: Mapping[str, str], clock: Clock
) -> tuple[dict[int, Look], Table]:
    """A look at each process of *wanted*, and the table of all that run.

    Four calls of `ps`, however many are wanted; each is killed when the time is over.
    """
    pids = ",".join(str(pid) for pid in wanted if 0 < pid <= _LARGEST_PID)
    if not pids:
        return dict.fromkeys(wanted, Look(blind=(ENDED,))), {}
    ps = _Ps(env, clock)
    try:
        printed = _Printed(
            ps.arguments(pids),
            _lines(ps.run(*_ENVIRONMENT, pids), 2),
            ps.table(),
            ps.arguments(pids),
        )
    except _NoAnswer as error:
        return dict.fromkeys(wanted, Look(blind=(str(error),))), {}
    return {pid: _look(pid, printed) for pid in wanted}, printed.table


class _Ps:
    """The `ps` on the PATH of *env*, for two seconds from now."""

    def __init__(self, env: Mapping[str, str], clock: Clock):
        # The C locale, for one spelling of everything; no TZ: no column is a local time.
        self._env = {"PATH": env.get("PATH", os.defpath), "LC_ALL": "C"}
        self._clock, self._deadline = clock, clock.monotonic() + _SECONDS

    def arguments(self, pids: str) -> dict[int, tuple[float, bytes]]:
        """When each of *pids* started, and its arguments in one text."""
        now = self._clock.now()
        lines = _lines(self.run(*_ARGUMENTS, pids), 3)
        ages = {pid: (_seconds(age), text) for pid, (age, text) in lines.items()}
        return {pid: (now - age, text) for pid, (age, text) in ages.items() if age is not None}

    def table(self) -> Table:
        """Every process that runs; no column that a process may choose the text of."""
        now = self._clock.now()
        table: Table = {}
        for pid, (parent, age, state) in _lines(self.run(*_ALL), 4).items():
            above, seconds = _number(parent), _seconds(age)
            if above is not None and seconds is not None and not state.startswith(b"Z"):
                table[pid] = (above, now - seconds)
        return table

    def run(self, *columns: str) -> bytes:
        """What `ps` prints; the process is gone when this returns or raises."""
        import subprocess

        command = ["ps", *columns]
        try:
            process = subprocess.Popen(  # noqa: S603 - a fixed argv
                command, env=self._env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise _NoAnswer(f"ps cannot be started: {why}") from error
        with process:
            try:
                printed = self._drain(process.stdout.fileno()) if process.stdout else b""
                status = process.wait(max(self._left(), 0))
            except subprocess.TimeoutExpired as error:
                raise _NoAnswer("ps took too long") from error
            finally:
                process.kill()
        if status:
            raise _NoAnswer(f"ps failed with exit {status}")
        return printed

    def _drain(self, fd: int) -> bytes:
        ready, size = select.poll(), 0
        parts: list[bytes] = []
        ready.register(fd, select.POLLIN)
        while (left := self._left()) > 0 and ready.poll(left * 1000):
            part = os.read(fd, _BLOCK)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if size > _LONGEST:
                raise _NoAnswer("ps printed more than 64 MiB")
        raise _NoAnswer("ps took too long")

    def _left(self) -> float:
        return self._deadline - self._clock.monotonic()


def _look(pid: int, printed: _Printed) -> Look:
    before, after = printed.before.get(pid), printed.after.get(pid)
    if before is None or after is None or pid not in printed.table:
        return Look(blind=(ENDED,))
    (started, arguments), (again, still) = before, after
    if abs(again - started) > ROUNDING_S or arguments != still:
        return Look(blind=(REPLACED,))
    tsid, fault = _pane_in(printed.environment.get(pid, [b""])[0], arguments)
    argv = tuple(arguments.decode("ascii", "replace").split())
    return Look(started, argv, tsid, () if fault is None else (fault,))


def _pane_in(line: bytes, arguments: bytes) -> tuple[str | None, str | None]:
    """The pane's id in *line* behind its *arguments*, or why it cannot be told."""
    import re

    rest = line[len(arguments) :]
    if not line.startswith(arguments) or rest[:1] not in (b"", b" "):
        return None, "ps shows other arguments beside its environment"
    found = re.findall(_PANE, rest)
    if len({value for value, _ in found}) > 1:
        return None, "its environment has two different TERM_SESSION_ID"
    value, behind = found[0] if found else (b"", b"")
    if not behind and len(line) >= _LONG_LINE:
        return None, "ps may have cut its environment short"
    pane = value.decode("ascii", "replace")
    # `?` and `\` stand where ps would not print the character itself.
    if behind == b" " or not plain_pane(pane) or not _DOUBTFUL.isdisjoint(pane):
        return None, "its TERM_SESSION_ID cannot be told from what ps shows"
    return pane or None, None


def _lines(printed: bytes, columns: int) -> dict[int, list[bytes]]:
    """The *columns* behind the pid, by pid; a pid that stands on two lines tells nothing."""
    found: dict[int, list[bytes]] = {}
    twice = set()
    for line in printed.split(b"\n"):
        words = line.split(None, columns - 1)
        pid = _number(words[0]) if len(words) == columns else None
        if pid is None:
            continue
        if pid in found:
            twice.add(pid)
        found[pid] = words[1:]
    return {pid: words for pid, words in found.items() if pid not in twice}


def _number(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() and len(digits) <= _PID_DIGITS else None


def _seconds(etime: bytes) -> int | None:
    """The age that `[[dd-]hh:]mm:ss` says; None when it is none."""
    import re

    found = re.fullmatch(_ETIME, etime)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
