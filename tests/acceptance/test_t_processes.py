"""T02 to T07 with real processes: the environment is the key, and a doubt binds nobody."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

from registry.discover import discover, in_pane, owners_of
from registry.processes import Processes
from tests.fakes.owners import AGENT, NOW, PANE, a_ledger, a_row, an_event

PATH = os.environ["PATH"]
CREATES = (an_event("create", "TK-1", -9000), an_event("create", "TK-2", -9000))
# It says that it runs, and whom it started; it ends when its input does.
WAITS = "echo; read end"
STARTS = 'sleep 600 & echo $!; read end; kill "$!"'

PROVIDERS = [
    pytest.param(
        "linux", id="proc", marks=pytest.mark.skipif(sys.platform != "linux", reason="no /proc")
    ),
    pytest.param(
        "other", id="ps", marks=pytest.mark.skipif(not shutil.which("ps"), reason="no ps")
    ),
]
either = pytest.mark.parametrize("platform", PROVIDERS)


class Sessions:
    """Real processes in the place of sessions; `close` ends each by its pid."""

    def __init__(self):
        self._running = []

    def start(self, *arguments, script=WAITS, pane=PANE, **more):
        """The pid of a new session and that of what it started, if anything."""
        env = {"PATH": PATH, **({} if pane is None else {"TERM_SESSION_ID": pane}), **more}
        process = subprocess.Popen(
            ["sh", "-c", script, *arguments], env=env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self._running.append(process)
        below = process.stdout.readline().strip()
        return process.pid, int(below or 0)

    def end(self, pid):
        """End the session *pid* now."""
        (process,) = (each for each in self._running if each.pid == pid)
        self._running.remove(process)
        process.communicate("", timeout=10)

    def close(self):
        """End them all."""
        for process in tuple(self._running):
            self.end(process.pid)


@pytest.fixture
def sessions():
    """No session yet; none is left behind."""
    running = Sessions()
    try:
        yield running
    finally:
        running.close()


def owners(platform, ledger, *pids, env=None):
    """The owners of sessions that run as *pids*."""
    processes = Processes(platform)
    wanted = {pid: processes.start_token(pid) or "" for pid in pids}
    seen = processes.see(wanted, {"PATH": PATH} if env is None else env)
    return discover([a_row(pid) for pid in pids], ledger, seen)


def test_t02_an_event_of_a_descendant_binds_its_session(sessions):
    """T02: the correlation names a process that the session started, and no other's."""
    outer, below = sessions.start(script=STARTS)
    other, _ = sessions.start()
    event = an_event("action", "TK-1", 0, correlation_id=f"run-{below}-x", ts="2999-01-01T00:00Z")
    ledger = a_ledger(*CREATES, event, now=4e10)

    first, second = owners("linux", ledger, outer, other)

    assert ("TK-1", "correlation") == (first.ticket, first.source)
    assert (None, f"no event of {AGENT}") == (second.ticket, second.why)


def test_t02_a_session_inside_a_session_speaks_for_itself(sessions):
    """T02: what the inner one logs does not bind the outer one."""
    outer, inner = sessions.start(script=STARTS)
    event = an_event("action", "TK-1", 0, correlation_id=f"pid:{inner}", ts="2999-01-01T00:00Z")
    ledger = a_ledger(*CREATES, event, now=4e10)

    assert [None, "TK-1"] == [each.ticket for each in owners("linux", ledger, outer, inner)]
    assert ["TK-1"] == [each.ticket for each in owners("linux", ledger, outer)]


@either
def test_t02_an_event_before_the_process_names_an_earlier_one(sessions, platform):
    """T02: the pid has come round since."""
    pid, _ = sessions.start()
    at = time.time() - 5
    event = an_event("action", "TK-1", at - NOW, correlation_id=f"{pid}")

    (owner,) = owners(platform, a_ledger(*CREATES, event, now=at), pid)

    assert (None, f"no event of {AGENT}") == (owner.ticket, owner.why)


@either
def test_t02_the_argument_beats_the_ledger(sessions, platform):
    """T02: one known ticket binds since the start of the process; of two the ledger decides."""
    ledger = a_ledger(*CREATES, an_event("assign", "TK-2", -60, agent=AGENT))
    before = time.time()
    one, _ = sessions.start("claude", "TK-1-fix-x", "TK-9")
    two, _ = sessions.start("claude", "TK-1", "about TK-2")

    first, second = owners(platform, ledger, one, two)

    assert ("TK-1", "main_process_argument") == (first.ticket, first.source)
    assert before - 2 <= first.at <= time.time() + 2
    assert ("TK-2", "session_ledger", NOW - 60) == (second.ticket, second.source, second.at)


@either
def test_t03_a_resumed_session_keeps_the_work_of_its_pane(sessions, platform):
    """T03: events older than the process bind, the newest of them."""
    earlier, _ = sessions.start()
    sessions.end(earlier)
    resumed, _ = sessions.start()
    ledger = a_ledger(
        *CREATES,
        an_event("assign", "TK-1", -3600, agent=AGENT),
        an_event("action", "TK-2", -1800, agent=AGENT),
        an_event("read", "TK-1", -60, agent=AGENT),
    )

    (owner,) = owners(platform, ledger, resumed)

    assert ("TK-2", "session_ledger", NOW - 1800) == (owner.ticket, owner.source, owner.at)


@either
def test_t04_a_ticket_without_a_create_binds_from_no_source(sessions, platform):
    """T04: neither by argument nor by the ledger, until its create is the last line."""
    pid, _ = sessions.start("claude", "TK-9")
    lines = [*CREATES, *(an_event("assign", tk, -60, agent=AGENT) for tk in ("TK-1", "TK-9"))]

    (ghost,) = owners(platform, a_ledger(*lines), pid)
    (created,) = owners(platform, a_ledger(*lines, an_event("create", "TK-9")), pid)

    assert (None, "its arguments name TK-9, which has no create") == (ghost.ticket, ghost.why)
    assert ("TK-9", "main_process_argument") == (created.ticket, created.source)


@either
def test_t05_the_environment_wins_over_an_argument(sessions, platform):
    """T05: an argument that looks like the variable is no variable."""
    trap = "TERM_SESSION_ID=trap"
    pid, _ = sessions.start("claude", trap, f"A=1 {trap} B=2")
    bare, _ = sessions.start("claude", trap, f"A=1 {trap} B=2", pane=None)
    ledger = a_ledger(
        *CREATES,
        an_event("assign", "TK-1", -60, agent=AGENT),
        an_event("assign", "TK-2", -50, agent="claude@trap"),
    )

    first, second = owners(platform, ledger, pid, bare)

    assert ("TK-1", PANE) == (first.ticket, first.tsid)
    assert (None, None) == (second.ticket, second.tsid)
    assert "its environment has no TERM_SESSION_ID" == second.why


@either
@pytest.mark.parametrize("value", ["x\nTERM_SESSION_ID=trap\ny", "env TERM_SESSION_ID=trap claude"])
def test_t05_another_variable_that_holds_the_text_is_no_trap(sessions, platform, value):
    """T05: exact names on Linux; by ps a value that may be another's is not taken."""
    pid, _ = sessions.start("claude", OTHER=value)
    bare, _ = sessions.start("claude", pane=None, OTHER=value)

    first, second = owners(platform, a_ledger(), pid, bare)

    told = {"linux": PANE, "other": None}[platform]
    assert (told, None) == (first.tsid, second.tsid)
    assert first.why is not None
    assert (platform == "other") == ("TERM_SESSION_ID" in first.why)


def test_t05_a_mebibyte_of_environment_hides_nothing(sessions):
    """T05: the variable stands behind ten long ones, and /proc shows it."""
    pid, _ = sessions.start(pane=None, **large_environment())

    (owner,) = owners("linux", a_ledger(), pid)

    assert PANE == owner.tsid


@pytest.mark.skipif(not shutil.which("ps"), reason="no ps")
def test_t05_a_mebibyte_of_environment_makes_ps_say_nothing_false(sessions):
    """T05: where ps cuts the line the pane is not known, and that is said."""
    pid, _ = sessions.start(pane=None, **large_environment())

    (owner,) = owners("other", a_ledger(), pid)

    assert (owner.tsid, owner.why) in (
        (None, "ps may have cut its environment short"),
        (PANE, f"no event of {AGENT}"),
    )


def large_environment():
    """More than a mebibyte, the pane last."""
    return {f"X{n}": "x" * 110_000 for n in range(10)} | {"TERM_SESSION_ID": PANE}


@either
def test_t06_a_session_that_ended_is_nobodys(sessions, platform):
    """T06: gone between the row and the look: said, not raised."""
    gone, _ = sessions.start("claude", "TK-1")
    stays, _ = sessions.start("claude", "TK-2")
    processes = Processes(platform)
    wanted = {pid: processes.start_token(pid) or "" for pid in (gone, stays)}
    sessions.end(gone)

    seen = processes.see(wanted, {"PATH": PATH})
    first, second = discover([a_row(gone), a_row(stays)], a_ledger(*CREATES), seen)

    assert (None, "it has ended, or is hidden from us") == (first.ticket, first.why)
    assert "TK-2" == second.ticket


def test_t06_a_pid_that_came_round_is_nobodys(sessions):
    """T06: another process runs under the number of the row."""
    pid, _ = sessions.start("claude", "TK-1")

    seen = Processes("linux").see({pid: "1"}, {"PATH": PATH})
    (owner,) = discover([a_row(pid)], a_ledger(*CREATES), seen)

    assert (None, "another process has got its pid since") == (owner.ticket, owner.why)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (None, "ps cannot be started: No such file or directory"),
        ("exec /bin/sleep 600", "ps took too long"),
        ("echo junk; echo 1 2 3 4", "it has ended, or is hidden from us"),
        ("echo 'ps: illegal option' >&2; exit 1", "ps failed with exit 1"),
    ],
)
def test_t06_a_ps_that_is_no_help_leaves_sessions_unbound(sessions, tmp_path, script, why):
    """T06: missing, hanging, babbling or failing: within seconds, and recorded."""
    pid, _ = sessions.start("claude", "TK-1")
    if script is not None:
        (tmp_path / "ps").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "ps").chmod(0o700)
    started = time.monotonic()

    (owner,) = owners("other", a_ledger(*CREATES), pid, env={"PATH": str(tmp_path)})

    assert (None, None, why) == (owner.ticket, owner.tsid, owner.why)
    assert time.monotonic() - started < 6


@either
def test_t06_an_agent_of_its_own_name_stays_unbound(sessions, platform):
    """T06: a name that is not the pane's is nobody's."""
    pid, _ = sessions.start()
    ledger = a_ledger(*CREATES, an_event("assign", "TK-1", -60, agent="fable"))

    (owner,) = owners(platform, ledger, pid)

    assert (None, f"no event of {AGENT}") == (owner.ticket, owner.why)


@either
def test_t07_two_sessions_in_one_pane_are_both_told(sessions, platform):
    """T07: with one TERM_SESSION_ID both hold the ticket; nobody chooses between them."""
    pids = [sessions.start()[0], sessions.start()[0]]
    ledger = a_ledger(*CREATES, an_event("assign", "TK-1", -60, agent=AGENT))

    found = owners(platform, ledger, *pids)

    assert pids == [each.pid for each in owners_of("TK-1", found)]
    assert pids == [each.pid for each in in_pane(PANE, found)]
