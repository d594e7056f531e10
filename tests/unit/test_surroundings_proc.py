"""Surroundings by /proc: exact variables, one process from first look to last, never a crash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.surroundings import Seen, see
from tests.fakes.proc import FakeProc, Fixed

if TYPE_CHECKING:
    from collections.abc import Callable

PANE = "w0t1p0:6E0DD0A8"
BREAKS_OFF = "its environment breaks off"
TWO = "its environment has two different TERM_SESSION_ID"
NOT_PLAIN = "its TERM_SESSION_ID is not plain text"


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    """A /proc in which nothing runs."""
    return FakeProc(tmp_path)


def look(proc: FakeProc, expected: str = "", wanted: dict[int, str] | None = None) -> Seen:
    """What is seen of process 10."""
    wanted = {10: expected} if wanted is None else wanted
    return see(wanted, linux=True, proc=proc.path, env={}, clock=Fixed())[10]


class Meanwhile(dict[int, str]):
    """Wanted processes; as soon as the first is looked at, the world changes."""

    def __init__(self, change: Callable[[], object]):
        super().__init__({10: ""})
        self._change = change

    def __getitem__(self, pid: int) -> str:
        """The token that is expected, after the change."""
        self._change()
        return super().__getitem__(pid)


@pytest.mark.parametrize(
    ("environ", "tsid", "blind"),
    [
        (b"", None, ()),
        (b"HOME=/h\0", None, ()),
        (f"HOME=/h\0TERM_SESSION_ID={PANE}\0".encode(), PANE, ()),
        (f"TERM_SESSION_ID={PANE}\0TERM_SESSION_ID={PANE}\0".encode(), PANE, ()),
        (b"TERM_SESSION_ID=a b = c\0", "a b = c", ()),
        (b"TERM_SESSION_ID=\0", None, ()),
        (b"XTERM_SESSION_ID=x\0LC_TERM_SESSION_ID=x\0TERM_SESSION_ID_=x\0", None, ()),
        (b"term_session_id=x\0A=TERM_SESSION_ID=x\0A=\nTERM_SESSION_ID=x\0", None, ()),
        (b"TERM_SESSION_ID=a\0TERM_SESSION_ID=b\0", None, (TWO,)),
        (b"TERM_SESSION_ID=a\0TERM_SESSION_ID=\0", None, (TWO,)),
        (b"TERM_SESSION_ID=cut", None, (BREAKS_OFF,)),
        (b"TERM_SESSION_ID=a\0HOME=cu", None, (BREAKS_OFF,)),
        (b"TERM_SESSION_ID=\xff\0", None, (NOT_PLAIN,)),
        (b"TERM_SESSION_ID=a\nb\0", None, (NOT_PLAIN,)),
        (b"TERM_SESSION_ID=\x1b[31m\0", None, (NOT_PLAIN,)),
        (b"TERM_SESSION_ID=" + b"x" * 1001 + b"\0", None, (NOT_PLAIN,)),
        ("TERM_SESSION_ID=\N{LATIN SMALL LETTER E WITH ACUTE}\0".encode(), "\xe9", ()),
    ],
)
def test_the_pane_is_the_variable_of_exactly_that_name(
    proc: FakeProc, environ: bytes, tsid: str | None, blind: tuple[str, ...]
) -> None:
    """One value that can be shown and compared, else none and the reason."""
    proc.add(10, environ=environ, cmdline=b"claude\0TERM_SESSION_ID=trap\0")

    seen = look(proc)

    assert (tsid, blind) == (seen.tsid, seen.blind)
    assert ("claude", "TERM_SESSION_ID=trap") == seen.argv


@pytest.mark.parametrize(
    ("cmdline", "argv"),
    [
        (b"claude\0-p\0TK-1 and\0", ("claude", "-p", "TK-1 and")),
        (b"claude\0\0x\0", ("claude", "", "x")),
        (b"claude" + b"\0" * 40, ("claude",)),
        (b"painted over", ("painted over",)),
        (b"\xff\0", ("\ufffd",)),
        (b"", ("",)),
    ],
)
def test_arguments_are_parted_as_they_were_given(
    proc: FakeProc, cmdline: bytes, argv: tuple[str, ...]
) -> None:
    """Whatever a process makes of its own memory."""
    proc.add(10, cmdline=cmdline)

    assert argv == look(proc).argv


def test_another_start_is_another_process(proc: FakeProc) -> None:
    """The pid came round before we looked; the token as it was expected is the same process."""
    proc.add(10, ticks=400, environ=b"TERM_SESSION_ID=x\0")

    assert look(proc, "400").tsid == "x"
    nobody = Seen(10, None, None, None, (), ("another process has got its pid since",))
    assert nobody == look(proc, "399")


@pytest.mark.parametrize("state", ["Z", "X"])
def test_the_ended_are_nobody(proc: FakeProc, state: str) -> None:
    """Neither the session itself nor its children."""
    proc.add(11, parent=10, state=state)
    nobody = Seen(10, None, None, None, (), ("it has ended, or is hidden from us",))

    assert nobody == look(proc)
    proc.add(10, state=state)
    assert nobody == look(proc)
    proc.add(10)
    assert [10] == [member.pid for member in look(proc).family]


def test_a_process_that_is_replaced_meanwhile_is_nobody(proc: FakeProc) -> None:
    """Nothing of the first and nothing of the second is told."""
    proc.add(10, ticks=400, environ=b"TERM_SESSION_ID=x\0")

    seen = look(proc, wanted=Meanwhile(lambda: proc.add(10, ticks=401)))

    assert Seen(10, None, None, None, (), ("it was replaced while it was looked at",)) == seen


def test_a_process_that_ends_meanwhile_is_nobody(proc: FakeProc) -> None:
    """It was there at the first look."""
    proc.add(10, environ=b"TERM_SESSION_ID=x\0")

    seen = look(proc, wanted=Meanwhile(lambda: proc.file(10, "stat").unlink()))

    assert Seen(10, None, None, None, (), ("it was replaced while it was looked at",)) == seen


def test_a_new_parent_is_no_new_process(proc: FakeProc) -> None:
    """Who loses its parent while it is looked at stays who it is."""
    proc.add(10, parent=9, environ=b"TERM_SESSION_ID=x\0")
    adopt = lambda: proc.add(10, parent=1, environ=b"TERM_SESSION_ID=x\0")  # noqa: E731

    assert look(proc, wanted=Meanwhile(adopt)).tsid == "x"


@pytest.mark.parametrize("name", ["environ", "cmdline"])
def test_what_cannot_be_read_is_said(proc: FakeProc, name: str) -> None:
    """The rest is still seen."""
    proc.add(10, environ=b"TERM_SESSION_ID=x\0")
    proc.file(10, name).unlink()
    proc.file(10, name).mkdir()

    seen = look(proc)

    word = {"environ": "environment", "cmdline": "arguments"}[name]
    assert (f"its {word} could not be read: Is a directory",) == seen.blind
    assert {"environ": (None, ("claude",)), "cmdline": ("x", None)}[name] == (seen.tsid, seen.argv)
    assert len(seen.family) == 1


@pytest.mark.parametrize("name", ["environ", "cmdline"])
def test_eight_mebibytes_are_read_and_no_more(proc: FakeProc, name: str) -> None:
    """Exactly the limit is taken."""
    proc.add(10, environ=b"TERM_SESSION_ID=x\0")
    with proc.file(10, name).open("ab") as file:
        file.truncate((8 << 20) - 2)
        file.seek(0, os.SEEK_END)
        file.write(b"=\0")
    assert () == look(proc).blind

    with proc.file(10, name).open("ab") as file:
        file.write(b"\0")
    word = {"environ": "environment", "cmdline": "arguments"}[name]
    assert (f"its {word} is longer than 8 MiB",) == look(proc).blind


@pytest.mark.parametrize("name", ["environ", "cmdline"])
def test_a_pipe_among_the_files_hangs_nobody(proc: FakeProc, name: str) -> None:
    """No kernel has one there; nothing here waits all the same."""
    proc.add(10)
    proc.file(10, name).unlink()
    os.mkfifo(proc.file(10, name))
    writer = os.open(proc.file(10, name), os.O_RDWR)
    try:
        seen = look(proc)
    finally:
        os.close(writer)

    word = {"environ": "environment", "cmdline": "arguments"}[name]
    assert (f"its {word} could not be read: Resource temporarily unavailable",) == seen.blind


@pytest.mark.parametrize("ticks", ["x", "9" * 400, "9" * 3000])
def test_a_start_that_is_no_number_is_no_process(proc: FakeProc, ticks: str) -> None:
    """No kernel says so, and still nothing is raised."""
    proc.add(10)
    stat = proc.file(10, "stat")
    stat.write_text(stat.read_text().replace(" 400 ", f" {ticks} "))

    assert ("it has ended, or is hidden from us",) == look(proc).blind


def test_names_that_are_no_pids_are_passed_over(proc: FakeProc, tmp_path: Path) -> None:
    """As /proc has many of them."""
    proc.add(10)
    for name in ("meminfo", "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}", "-1"):
        (tmp_path / name).write_text("")

    assert () == look(proc).blind


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_list_that_cannot_be_read_costs_the_family() -> None:
    """The process itself is still seen."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        proc = FakeProc(Path(folder))
        proc.add(10, environ=b"TERM_SESSION_ID=x\0")
        proc.add(11, parent=10)
        Path(folder).chmod(0o711)
        os.seteuid(65534)
        try:
            seen = look(proc)
        finally:
            os.seteuid(0)

    assert ("its descendants could not be listed: Permission denied",) == seen.blind
    assert ("x", [10]) == (seen.tsid, [member.pid for member in seen.family])


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root and /proc")
def test_a_process_of_somebody_else_keeps_its_environment() -> None:
    """Seen to run, and said not to be readable."""
    with subprocess.Popen(["sleep", "600"], env={"TERM_SESSION_ID": PANE}) as child:
        os.seteuid(65534)
        try:
            seen = see({child.pid: ""}, linux=True, env={})[child.pid]
        finally:
            os.seteuid(0)
            child.kill()

    assert ("its environment could not be read: Permission denied",) == seen.blind
    assert seen.tsid is None
    assert seen.started is not None


def test_an_environment_that_was_written_over_tells_nothing(tmp_path: Path) -> None:
    """A process that paints over its memory has no pane that could be told."""
    proc = FakeProc(tmp_path)
    proc.add(7, environ=b"\0" * 64)

    found = see({7: ""}, linux=True, env={}, proc=proc.path, clock=Fixed())[7]

    assert (None, ("its environment was written over",)) == (found.tsid, found.blind)
