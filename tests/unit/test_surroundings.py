"""Surroundings: which provider is asked, and who belongs to whose family."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from registry.clock import Clock
from registry.processes import Processes
from registry.surroundings import Member, see
from tests.fakes.proc import NOW, FakeProc, Fixed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    """A /proc in which nothing runs."""
    return FakeProc(tmp_path)


def family(proc: FakeProc, wanted: Mapping[int, str]) -> dict[int, list[int]]:
    """The pids of each wanted family, the process itself first."""
    seen = see(wanted, linux=True, proc=proc.path, env={}, clock=Fixed())
    for pid, each in seen.items():
        assert each.family[0] == Member(pid, each.started)
    return {pid: [member.pid for member in each.family] for pid, each in seen.items()}


def test_nobody_wanted_is_nothing_to_see() -> None:
    """Without a session no provider is asked."""
    assert {} == see({}, linux=True, env={}, proc="/nowhere")


def test_a_family_is_everything_that_runs_below(proc: FakeProc) -> None:
    """Children and their children, not neighbours, not parents."""
    proc.add(10, parent=1)
    proc.add(20, parent=10)
    proc.add(30, parent=20)
    proc.add(21, parent=10)
    proc.add(40, parent=1)

    assert {10: [10, 20, 21, 30]} == family(proc, {10: ""})


def test_a_session_below_a_session_has_its_own_family(proc: FakeProc) -> None:
    """Neither it nor what it started belongs to the outer one."""
    proc.add(10, parent=1)
    proc.add(20, parent=10)
    proc.add(30, parent=20)
    proc.add(40, parent=30)
    proc.add(50, parent=20)

    assert {10: [10, 20, 50], 30: [30, 40]} == family(proc, {10: "", 30: ""})


def test_a_child_older_than_its_parent_is_none(proc: FakeProc) -> None:
    """The parent's pid came round while the list was read."""
    proc.add(10, parent=1, ticks=900)
    proc.add(20, parent=10, ticks=100)
    proc.add(30, parent=10, ticks=899)

    assert {10: [10, 30]} == family(proc, {10: ""})


def test_a_circle_of_parents_ends(proc: FakeProc) -> None:
    """No kernel says so; a list that is read slowly may."""
    proc.add(10, parent=30)
    proc.add(20, parent=10)
    proc.add(30, parent=20)
    proc.add(7, parent=8)
    proc.add(8, parent=7)

    assert {10: [10, 20, 30]} == family(proc, {10: ""})


def test_starts_are_seconds_since_1970(proc: FakeProc) -> None:
    """The boot of the machine plus the ticks since then."""
    tick = os.sysconf("SC_CLK_TCK")
    proc.add(10, parent=1, ticks=2 * tick)
    proc.add(20, parent=10, ticks=3 * tick)

    (seen,) = see({10: ""}, linux=True, proc=proc.path, env={}, clock=Fixed()).values()

    # The fake machine was started 5000 s ago.
    assert NOW - 4998 == seen.started
    assert (Member(10, NOW - 4998), Member(20, NOW - 4997)) == seen.family


@pytest.mark.parametrize("linux", [True, False])
def test_without_a_proc_ps_is_asked(tmp_path: Path, linux: bool) -> None:
    """Another system, or a Linux whose /proc is not mounted."""
    (seen,) = see({10: ""}, linux=linux, proc=str(tmp_path), env={"PATH": ""}).values()

    assert ("ps cannot be started: No such file or directory",) == seen.blind


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_edge_hands_its_platform_over() -> None:
    """We are to be seen by ourselves: by /proc with the time, by ps within its second."""
    ours = os.getpid()
    env = {"PATH": os.environ["PATH"]}
    processes = Processes()

    by_proc = processes.see({ours: processes.start_token(ours) or ""}, env)[ours]
    by_ps = Processes("darwin").see({ours: "Mon Nov 30 14:24:04 2026"}, env)[ours]

    assert () == by_proc.blind == by_ps.blind
    assert by_proc.started is not None
    assert by_ps.started is not None
    assert by_proc.started <= Clock().now()
    assert abs(by_proc.started - by_ps.started) <= 2
