"""The fold of ticket events: what binds is taken, everything else has its reason."""

from __future__ import annotations

import re
from typing import Any

import pytest

from registry import ledger as module
from registry.ledger import (
    AHEAD_S,
    BINDING,
    LONGEST_LINE,
    REASONS,
    Entry,
    Ledger,
    fold,
    pid_named,
    ticket_of,
    tickets_in,
)
from tests.fakes.events import NOW, a_line

AGENT = "claude@pane"
UUID = "12345678-1234-4234-8234-123456789abc"


def folded(*lines: bytes, now: float = NOW, pattern: re.Pattern[str] | None = None) -> Ledger:
    """A ledger of *lines*."""
    ledger = Ledger()
    fold(ledger, lines, now, pattern)
    return ledger


@pytest.mark.parametrize(
    ("text", "ticket"),
    [
        ("TK-11665", "TK-11665"),
        ("TK-11665-fix-x", "TK-11665"),
        ("tk-11665", "TK-11665"),
        ("tK-1-", "TK-1"),
        ("TK-1-ü", "TK-1"),
        ("TK-007", "TK-007"),
        ("TK-1166", "TK-1166"),
    ],
)
def test_an_id_is_of_the_ticket_before_its_words(text: str, ticket: str) -> None:
    """T01: upper case, matched whole, zeros as they are."""
    assert ticket == ticket_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "TK", "TK-", "TK--1", "TK-x", "TK-1x", "TK-11665:x", "TK-1 ", " TK-1", "XTK-1", "TK_1",
        "TK-\uff11", "TK-²", "T\u212a-1", "\uff34K-1", "TK-1\n", "TK-1-a\nb", "11665", "TK-+1",
        None, 11665, True, ["TK-1"], {"id": "TK-1"}, b"TK-1",
    ],
)  # fmt: skip
def test_what_is_no_id_of_a_ticket_is_none(text: object) -> None:
    """Other words, other digits, other types."""
    assert ticket_of(text) is None


@pytest.mark.parametrize(
    ("text", "tickets"),
    [
        ("TK-1", {"TK-1"}),
        ("work on tk-11665-fix-x, then TK-7.", {"TK-11665", "TK-7"}),
        ("TK-1 TK-1 tk-1", {"TK-1"}),
        ("TK-1\nTK-2", {"TK-1", "TK-2"}),
        ("/home/u/TK-1/éTK-2", {"TK-1", "TK-2"}),
        ("--ticket=TK-1", {"TK-1"}),
        ("XTK-1 TK-1x TK-12_ _TK-3 TK- TK-x 4TK-5 T\u212a-6", set()),
        ("", set()),
    ],
)
def test_a_text_names_tickets_as_words_of_their_own(text: str, tickets: set[str]) -> None:
    """A letter, a digit or an underscore beside makes it another word; a hyphen does not."""
    assert tickets == tickets_in(text)


@pytest.mark.parametrize(
    "correlation",
    [
        "4201", 4201, "pid:4201", "4201-", "4201-x", "4201-17-x", "run-4201-x", "run-4201-",
        "_r2-4201-x-9", "deadbeef-4201-abc", "0000004201",
    ],
)  # fmt: skip
def test_a_correlation_names_a_process(correlation: object) -> None:
    """INTERFACE 7: `<pid>`, `pid:<pid>`, `<pid>-…`, `<word>-<pid>-…`; a number is one too."""
    assert pid_named(correlation, None) == 4201


@pytest.mark.parametrize(
    "correlation",
    [
        "", "-", "x", "run-4201", "run-x-4201", "run--4201-", "pid:", "pid:4201-x", "PID:4201",
        "pid: 4201", " 4201", "4201 ", "4201:x", "+4201", "42.01", "\uff14201", "r n-4201-x",
        "r.n-4201-x", "2b-4201-x", "ü-4201-x", "0", "pid:0", "0-x", str(1 << 31), "00000004201",
        0, -4201, 1 << 31, True, 42.01, None, ["4201"], {"pid": 4201},
    ],
)  # fmt: skip
def test_another_correlation_names_nobody(correlation: object) -> None:
    """Neither by a near form nor by a number that no process has."""
    assert pid_named(correlation, None) is None


def test_no_number_is_too_long() -> None:
    """Of a ticket it is the number; of a process it is none, and costs nothing."""
    digits = "9" * 5000

    assert f"TK-{digits}" == ticket_of(f"TK-{digits}-x")
    assert {f"TK-{digits}"} == tickets_in(f"TK-{digits}")
    for correlation in (digits, f"run-{digits}-x", 10**5000, -(10**5000)):
        assert pid_named(correlation, None) is None


def test_the_highest_pid_and_the_longest_correlation_are_in() -> None:
    """Both limits are themselves allowed, and nothing above."""
    assert pid_named("4201-" + "x" * 196, None) is None
    assert pid_named(str((1 << 31) - 1), None) == pid_named((1 << 31) - 1, None) == (1 << 31) - 1
    assert pid_named("4201-" + "x" * 195, None) == 4201


@pytest.mark.parametrize(
    "correlation",
    [
        UUID, UUID.upper(), f"{UUID}-x", f"{UUID}:x", UUID.replace("-", ""),
        "abcdef12-3456-4234-8234-123456789abc", "abcdef12-3456-4234-8234-123456789abc-x",
        "a2345678123442348234123456789012-4201-x", f"urn:uuid:{UUID}", f"{{{UUID}}}",
    ],
)  # fmt: skip
def test_a_uuid_names_nobody(correlation: str) -> None:
    """Its first digits are no pid, whatever follows."""
    assert pid_named(correlation, None) is None


@pytest.mark.parametrize("correlation", ["TK-4201-x", "tk-4201-x"])
def test_a_ticket_names_nobody(correlation: str) -> None:
    """It has the form of a word and a pid, and would bind whoever has that pid."""
    assert pid_named(correlation, None) is None


@pytest.mark.parametrize(
    ("pattern", "correlation", "pid"),
    [
        (r"job/(\d+)", "job/4201", 4201),
        (r"job/(\d+)", "job/4201/x", 4201),
        (r"job/(\d+)", "x job/4201", None),
        (r"job/(\d+)", "4201", None),
        (r"job/(\w+)", "job/x", None),
        (r"job/(\d+)?", "job/", None),
        (r"job/(\d*)", "job/", None),
        (r".*-(\d+)$", f"{UUID[:-4]}-4201", 4201),
        (r"(\d+)", "\uff14\uff12\uff10\uff11", None),
        (r"x*(\d+)", "x" * 197 + "4201", None),
    ],
)
def test_a_pattern_stands_in_place_of_the_forms(
    pattern: str, correlation: str, pid: int | None
) -> None:
    """`[tickets] correlation`: at the start of the id, the pid in its group."""
    assert pid == pid_named(correlation, re.compile(pattern))


@pytest.mark.parametrize("kind", BINDING)
def test_work_on_a_ticket_binds(kind: str) -> None:
    """T03: by the agent and by the process that the correlation names."""
    ledger = folded(a_line("TK-7-x", kind, correlation_id="pid:4201"))

    entry = Entry(at=NOW, line=1, ticket="TK-7")
    assert entry == ledger.newest_of_agent(AGENT)
    assert entry == ledger.newest_of_pid(4201)
    assert ledger.newest_of_agent("claude@other") is None
    assert ledger.newest_of_pid(4202) is None
    assert (kind == "create") == ledger.has_create("TK-7")
    assert {} == ledger.skipped


@pytest.mark.parametrize(
    "kind",
    ["read", "status", "blocker", "Create", "create ", "", 7, ["create"], {"create": 1}, None],
)
def test_other_events_neither_bind_nor_create(kind: Any) -> None:
    """Nor are they counted as skipped; a word of BINDING elsewhere in the line is no type."""
    ledger = folded(a_line("TK-1", kind, correlation_id="4201", note="create"))

    assert (1, set(), {}, {}, {}) == (
        ledger.lines,
        ledger.known,
        ledger.agents,
        ledger.pids,
        ledger.skipped,
    )


@pytest.mark.parametrize("changes", [{}, {"agent": None}, {"agent": 7, "correlation_id": []}])
def test_a_create_counts_whoever_made_it(changes: dict[str, Any]) -> None:
    """Its agent and its correlation may be missing or of any type."""
    ledger = folded(a_line("TK-1", "create", **changes))

    assert ledger.has_create("TK-1")
    assert not ledger.has_create("TK-2")
    assert ({AGENT} if changes == {} else set()) == set(ledger.agents)


def test_the_newest_wins_and_of_equal_times_the_later_line() -> None:
    """T03: whatever the order in the file; a zone is only another spelling of the time."""
    ledger = folded(
        a_line("TK-1", at=NOW - 1800),
        a_line("TK-2", at=NOW - 3600),
        a_line("TK-3", ts="2026-11-30T13:30:00+02:00", agent="two"),
        a_line("TK-4", ts="2026-11-30T11:30:00Z", agent="two"),
        a_line("TK-5", ts="2026-11-30T11:29:59.999999Z", agent="two"),
    )

    assert Entry(NOW - 1800, 1, "TK-1") == ledger.newest_of_agent(AGENT)
    assert Entry(NOW - 1800, 4, "TK-4") == ledger.newest_of_agent("two")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "TK-1", "type": "create"', "torn"),
        (b'"create"', "torn"),
        (b'["create"]', "torn"),
        (b'{"type": "create"}{"type": "create"}', "torn"),
        (b'\xff{"type": "create"}', "torn"),
        (b"\0" * 100, "torn"),
        (b"{" * 100_000 + b'"create"', "torn"),
        (b'{"type": "create", "n": ' + b"9" * 5000 + b"}", "torn"),
        (a_line("TK-1", "create").decode().encode("utf-16"), "torn"),
        (a_line("TK-1", "create", note="x" * LONGEST_LINE), "too-long"),
        (a_line("TK-1", "read", note="x" * LONGEST_LINE), "too-long"),
        (a_line("PROJ-1", "create"), "no-ticket"),
        (a_line(7, "create"), "no-ticket"),
        (a_line(None, "create"), "no-ticket"),
        (a_line("TK-1", "create", ts=None), "no-time"),
        (a_line("TK-1", "create", ts=NOW), "no-time"),
        (a_line("TK-1", "create", ts="2026-11-30T10:00:00"), "no-time"),
        (a_line("TK-1", "create", ts="2026-11-30"), "no-time"),
        (a_line("TK-1", "create", ts="2026-13-30T10:00:00Z"), "no-time"),
        (a_line("TK-1", "create", ts="yesterday"), "no-time"),
        (a_line("TK-1", "create", ts="\ud800"), "no-time"),
        (a_line("TK-1", "create", ts="\uff12\uff10\uff12\uff16-11-30T10:00:00Z"), "no-time"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_line_that_cannot_count_is_skipped_with_its_reason(line: bytes, reason: str) -> None:
    """T08: and the lines around it count as before."""
    ledger = folded(a_line("TK-2", "create"), line, a_line("TK-3", "create"))

    assert ({reason: 1}, {"TK-2", "TK-3"}, 3) == (ledger.skipped, ledger.known, ledger.lines)
    assert reason in REASONS


@pytest.mark.parametrize("line", [b"", b" \t", b"\r", b"\n"])
def test_a_blank_line_is_a_line_and_no_fault(line: bytes) -> None:
    """It is counted, and nothing is skipped."""
    ledger = folded(line)

    assert (1, {}) == (ledger.lines, ledger.skipped)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" "])
def test_a_line_may_have_its_end(end: bytes) -> None:
    """The end is no part of the event."""
    assert folded(a_line("TK-1", "create") + end).has_create("TK-1")


@pytest.mark.parametrize(
    "line",
    [
        a_line("TK-1", "create").replace(b"create", rb"cr\u0065ate"),
        a_line("TK-1", "create").replace(b"type", rb"t\u0079pe"),
        a_line("TK-1", "read")[:-1] + b',"type":"create"}',
        b" " + a_line("TK-1", "create"),
        a_line("TK-1", "create").replace(b'"type": ', b'"type" \t:'),
    ],
)
def test_no_spelling_of_a_create_is_overlooked(line: bytes) -> None:
    """Escaped letters, a key written twice, blanks: what JSON means counts."""
    assert folded(line).has_create("TK-1")


def test_the_longest_line_is_in() -> None:
    """The limit itself is allowed."""
    room = LONGEST_LINE - len(a_line("TK-1", "create", note=""))

    assert folded(a_line("TK-1", "create", note="x" * room)).has_create("TK-1")


@pytest.mark.parametrize("ts", ["0001-01-01T00:00:00+23:59", "1969-12-31T23:00:00Z"])
def test_a_time_before_all_clocks_is_a_time(ts: str) -> None:
    """It is old, nothing else."""
    ledger = folded(a_line("TK-1", ts=ts), a_line("TK-2"))

    assert ({}, "TK-2") == (ledger.skipped, ledger.agents[AGENT][2])


def test_a_fast_clock_is_borne_and_no_more() -> None:
    """Up to AHEAD_S an event counts; later it waits, and is judged again at the next read."""
    ledger = folded(
        a_line("TK-1", "create", at=NOW + AHEAD_S),
        a_line("TK-2", "create", at=NOW + AHEAD_S + 1, correlation_id="4201"),
    )
    assert ({"TK-1"}, {}, {}) == (ledger.known, ledger.skipped, ledger.pids)
    assert Entry(NOW + AHEAD_S, 1, "TK-1") == ledger.newest_of_agent(AGENT)
    fold(ledger, [], NOW + 0.5)
    assert not ledger.has_create("TK-2")

    fold(ledger, [], NOW + 1)

    assert ledger.has_create("TK-2")
    entry = Entry(NOW + AHEAD_S + 1, 2, "TK-2")
    assert entry == ledger.newest_of_agent(AGENT) == ledger.newest_of_pid(4201)
    assert [] == ledger.ahead


def test_the_future_has_an_end() -> None:
    """What is dated ahead is bounded; the rest is counted."""
    most = module._AHEAD_MOST

    ledger = folded(*(a_line(f"TK-{n}", "create", at=NOW + 9e6) for n in range(most + 2)))

    assert (most, {"ahead": 2}, set()) == (len(ledger.ahead), ledger.skipped, ledger.known)
    fold(ledger, [], NOW + 9e6)
    assert most == len(ledger.known)


def test_lines_are_counted_over_several_folds() -> None:
    """The number of a line is that in the file."""
    ledger = folded(a_line("TK-1"), a_line("TK-1", "read"))

    fold(ledger, iter([b"", a_line("TK-2")]), NOW)

    assert Entry(NOW, 4, "TK-2") == ledger.newest_of_agent(AGENT)


def test_a_pattern_is_asked_for_each_event() -> None:
    """In place of the forms, which then name nobody."""
    lines = (
        a_line("TK-1", correlation_id="job/4201"),
        a_line("TK-2", correlation_id="4202"),
    )

    ledger = folded(*lines, pattern=re.compile(r"job/(\d+)"))

    assert {4201: (NOW, 1, "TK-1")} == ledger.pids
