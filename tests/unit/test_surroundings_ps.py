"""Surroundings by ps: what follows the known arguments is read, what may be two things is not."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from registry.clock import Clock
from registry.surroundings import Member, Seen, see
from tests.fakes.proc import NOW, Fixed
from tests.fakes.ps import FakePs

if TYPE_CHECKING:
    from pathlib import Path

ENDED = "it has ended, or is hidden from us"
REPLACED = "it was replaced while it was looked at"
UNCLEAR = "its TERM_SESSION_ID cannot be told from what ps shows"
TWO = "its environment has two different TERM_SESSION_ID"
OTHERS = "ps shows other arguments beside its environment"
CUT = "ps may have cut its environment short"
SLOW = "ps took too long"


@pytest.fixture
def ps(tmp_path: Path) -> FakePs:
    """A ps that shows no process."""
    return FakePs(tmp_path)


def look(ps: FakePs, *others: int, clock: Clock | None = None) -> Seen:
    """What is seen of process 10, looked at together with *others*."""
    wanted = dict.fromkeys((10, *others), "")
    return see(wanted, linux=False, env=ps.env, clock=clock or Fixed())[10]


def nobody(why: str) -> Seen:
    """Process 10, of which nothing is told but *why*."""
    return Seen(10, None, None, None, (), (why,))


class Hurried(Fixed):
    """A clock on which two seconds pass as the first one looks away."""

    def __init__(self, *, left: float):
        self._looks = iter([0.0])
        self._left = left

    def monotonic(self) -> float:
        """At first 0, then *left* seconds before the end."""
        return next(self._looks, 2 - self._left)


@pytest.mark.parametrize(
    ("behind", "tsid", "blind"),
    [
        ("", None, ()),
        (" HOME=/h", None, ()),
        (" HOME=/h TERM_SESSION_ID=w0t1:6E LANG=C", "w0t1:6E", ()),
        (" TERM_SESSION_ID=a", "a", ()),
        (" TERM_SESSION_ID=a TERM_SESSION_ID=a", "a", ()),
        (" TERM_SESSION_ID= LANG=C", None, ()),
        (" LC_TERM_SESSION_ID=x A=bTERM_SESSION_ID=x term_session_id=x", None, ()),
        (" TERM_SESSION_ID=a A=1 TERM_SESSION_ID=b", None, (TWO,)),
        (" A=env TERM_SESSION_ID=a B=1 TERM_SESSION_ID=ab", None, (TWO,)),
        (" TERM_SESSION_ID=a TERM_SESSION_ID= B=1", None, (TWO,)),
        (" A=env TERM_SESSION_ID=a claude B=1", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=a ", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=a =b", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=a?b B=1", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=a\\012b B=1", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=a\tb B=1", None, (UNCLEAR,)),
        (" TERM_SESSION_ID=\xe9 B=1", None, (UNCLEAR,)),
        (f" TERM_SESSION_ID={'x' * 1001} B=1", None, (UNCLEAR,)),
        ("TERM_SESSION_ID=a", None, (OTHERS,)),
        ("x TERM_SESSION_ID=a", None, (OTHERS,)),
    ],
)
def test_the_pane_stands_behind_the_arguments(
    ps: FakePs, behind: str, tsid: str | None, blind: tuple[str, ...]
) -> None:
    """A variable begins behind a blank and ends before the next one, else it is not told."""
    ps.add(10, "claude TERM_SESSION_ID=trap", behind)

    seen = look(ps)

    assert (tsid, blind) == (seen.tsid, seen.blind)
    assert ("claude", "TERM_SESSION_ID=trap") == seen.argv


@pytest.mark.parametrize("environment", [b"  10 node x TERM_SESSION_ID=a B=1\n", b"  10 cla\n"])
def test_a_line_that_begins_otherwise_tells_no_pane(ps: FakePs, environment: bytes) -> None:
    """Where the environment begins is not known then."""
    ps.add(10, "claude", "")
    ps.replace("environment", environment)

    seen = look(ps)

    assert (None, (OTHERS,)) == (seen.tsid, seen.blind)


def test_an_argument_that_came_between_is_no_environment(ps: FakePs) -> None:
    """A process that has other arguments at the end is nobody."""
    ps.add(10, "claude", " TERM_SESSION_ID=trap A=1")
    ps.replace("again", b"  10  01:00:00 claude TERM_SESSION_ID=trap A=1\n")

    assert nobody(REPLACED) == look(ps)


def test_a_process_that_started_anew_is_nobody(ps: FakePs) -> None:
    """Same pid, same arguments, another age."""
    ps.add(10, "claude", " TERM_SESSION_ID=a")
    ps.replace("again", b"  10  00:00 claude\n")

    assert nobody(REPLACED) == look(ps)


@pytest.mark.parametrize(("length", "blind"), [(65_535, ()), (65_536, (CUT,))])
def test_a_long_line_may_have_been_cut(ps: FakePs, length: int, blind: tuple[str, ...]) -> None:
    """A value at its end may be half a value, and none may be one that came later."""
    for tail in (" TERM_SESSION_ID=w0t1", " LAST=1"):
        ps.replace("environment", b"")
        for name in ("all", "arguments", "again"):
            ps.replace(name, b"")
        ps.add(10, "claude", " X=" + "x" * (length - len("claude X=" + tail)) + tail)

        seen = look(ps)

        assert blind == seen.blind
        assert seen.tsid == (None if blind or "LAST" in tail else "w0t1")


def test_a_value_in_the_midst_of_a_long_line_is_whole(ps: FakePs) -> None:
    """Another variable stands behind it."""
    ps.add(10, "claude", " TERM_SESSION_ID=a X=" + "x" * 200_000)

    assert ("a", ()) == (look(ps).tsid, look(ps).blind)


@pytest.mark.parametrize("name", ["all", "arguments", "again"])
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"junk\n\n\xff\0\n-1 1 1\n",
        b"  10\n",
        b"  10  x:y  claude\n  10  1  x Ss\n",
        b"  10  01:00:00 a Ss\n",
        b"9" * 5000 + b" 1 01:00 S\n",
        b"  10  " + b"1" * 5000 + b" 01:00 Ss\n",
        b"  10  1  01:00:00 Z+\n",
    ],
)
def test_what_is_no_line_of_a_running_process_is_passed_over(
    ps: FakePs, name: str, line: bytes
) -> None:
    """Junk, zombies and numbers that are none: the process is not seen, nothing is raised."""
    ps.add(10, "claude", " TERM_SESSION_ID=a")
    ps.replace(name, line)

    seen = look(ps)

    assert seen.tsid is None
    assert seen.blind in ((ENDED,), (REPLACED,))


def test_a_pid_on_two_lines_tells_nothing(ps: FakePs) -> None:
    """An argument that is printed with its newline could speak for another process."""
    ps.add(10, "claude", " TERM_SESSION_ID=a")
    ps.write("environment", b"  10 claude TERM_SESSION_ID=b\n")
    assert (None, (OTHERS,)) == (look(ps).tsid, look(ps).blind)

    ps.replace("environment", b"  10 claude TERM_SESSION_ID=a\n")
    ps.write("again", b"  10 01:00:00 claude\n")
    assert nobody(ENDED) == look(ps)


@pytest.mark.parametrize(
    ("age", "seconds"),
    [("00:00", 0), ("01:02", 62), ("1:01:02", 3662), ("02-03:04:05", 183845), ("100:00", 6000)],
)
def test_the_age_says_when_it_started(ps: FakePs, age: str, seconds: int) -> None:
    """Elapsed time needs no time zone."""
    ps.add(10, "claude", "", age=age)
    ps.add(11, "mcp", "", age="00:00")
    ps.replace("all", f"10 1 {age} S\n 11 10 00:00 S\n 12 10 00:00 Z\n".encode())

    seen = look(ps)

    assert NOW - seconds == seen.started
    assert (Member(10, NOW - seconds), Member(11, NOW)) == seen.family


def test_ps_is_called_four_times_for_all(ps: FakePs) -> None:
    """Arguments, environment, everybody, and the arguments again; only for pids."""
    ps.add(10, "claude", "")

    look(ps, 11, 0, -5, 2**31, 2**31 - 1)

    arguments = "C none -ww -o pid= -o etime= -o command= -p 10,11,2147483647"
    environment = "C none eww -o pid= -o command= -p 10,11,2147483647"
    everybody = "C none -A -o pid= -o ppid= -o etime= -o stat="
    assert [arguments, environment, everybody, arguments] == ps.calls()


def test_numbers_that_are_no_pids_never_reach_ps(ps: FakePs) -> None:
    """One of them would make the whole call fail."""
    wanted = dict.fromkeys((0, -1, 2**31, 2**70), "")

    seen = see(wanted, linux=False, env=ps.env, clock=Fixed())

    assert [(ENDED,)] * 4 == [each.blind for each in seen.values()]
    assert [] == ps.calls()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/nowhere", "No such file or directory"),
        ("/nowhere\0", "embedded null byte"),
    ],
)
def test_a_missing_ps_is_said(ps: FakePs, path: str, why: str) -> None:
    """Of every process that was asked for."""
    ps.env["PATH"] = path

    assert nobody(f"ps cannot be started: {why}") == look(ps, 11)


def test_without_a_path_the_systems_own_is_searched(ps: FakePs) -> None:
    """As a shell would."""
    (seen,) = see({os.getpid(): ""}, linux=False, env={}).values()

    assert () == seen.blind
    assert [] == ps.calls()


@pytest.mark.parametrize("step", ["-A", "eww", "-ww"])
def test_a_failing_ps_is_said(ps: FakePs, step: str) -> None:
    """What it printed before is not believed."""
    ps.add(10, "claude", " TERM_SESSION_ID=a")
    ps.script(f'#!/bin/sh\n[ "$1" = {step} ] && exit 3\necho "10 1 01:00:00 Ss"\n')

    assert nobody("ps failed with exit 3") == look(ps)


def test_a_hanging_ps_is_ended(ps: FakePs, tmp_path: Path) -> None:
    """At the deadline, and gone afterwards."""
    ps.script(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 600\n")
    started = time.monotonic()

    # The real clock, so that the script has written its pid.
    assert nobody(SLOW) == look(ps, clock=Clock())

    assert 2 <= time.monotonic() - started < 6
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("script", ["exec sleep 600", "exec >&-; exec sleep 600"])
def test_the_deadline_holds_for_all_calls_together(ps: FakePs, script: str) -> None:
    """Also when ps has closed its output and stays."""
    ps.script(f"#!/bin/sh\n{script}\n")
    started = time.monotonic()

    assert nobody(SLOW) == look(ps, clock=Hurried(left=0.2))
    assert nobody(SLOW) == look(ps, clock=Hurried(left=-1))

    assert time.monotonic() - started < 1.5


def test_a_ps_that_never_stops_printing_is_ended(ps: FakePs) -> None:
    """Its words do not fill the memory."""
    ps.script("#!/bin/sh\nexec cat /dev/zero\n")

    assert nobody("ps printed more than 64 MiB") == look(ps, clock=Hurried(left=1))
