"""Ledgers: no order, no junk and no way of reading changes what the events say."""

from __future__ import annotations

import json
import tempfile
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from registry.ledger import AHEAD_S, BINDING, LONGEST_LINE, REASONS, Ledger, fold
from registry.ledger_file import Cutter, read_ledger
from registry.ledger_json import from_json, to_json
from tests.fakes.events import NOW, a_line

TICKETS = ("TK-1", "TK-2", "TK-3")
AGENTS = ("claude@one", "claude@two", "self-chosen", "\ud800é")
PIDS = (7, 8)

kinds = st.sampled_from((*BINDING, "read", "status", "blocker"))
# Few, so that many are equal, and some ahead.
times = st.sampled_from((NOW - 7200, NOW - 3600, NOW - 3600.001, NOW, NOW + 300, NOW + 400))
events = st.fixed_dictionaries(
    {
        "ticket": st.sampled_from(TICKETS),
        "kind": kinds,
        "at": times,
        "agent": st.sampled_from((*AGENTS, None)),
        "correlation_id": st.sampled_from(("7", "pid:8", "run-7-x", "nobody", None)),
        "note": st.sampled_from((None, "create", '"create"', "comment\n", "é", "x" * 200)),
    }
)
JUNK = (
    b"",
    b"{",
    b"\0" * 40,
    b"\xff\xfe",
    b"null",
    b'{"type": "create"}',
    b'{"id": "TK-1", "type": "create"}',
    a_line("TK-1", "create")[:-2],
    a_line("TK-9:x", "create", correlation_id="7"),
    a_line("TK-1", "create", ts="2026-11-30T12:00:00"),
    a_line(["TK-1"], "create"),
    a_line("TK-1", ["create"]),
    a_line("TK-1", "create").replace(b"{", b"[", 1),
)
READS = tuple(a_line(t, "read", NOW, agent=AGENTS[0], correlation_id="7") for t in TICKETS)


def line_of(event: dict[str, Any]) -> bytes:
    """The line of an *event* as a tracker writes it."""
    given = dict(event)
    return a_line(given.pop("ticket"), given.pop("kind"), given.pop("at"), **given)


lines_of_events = st.lists(events.map(line_of), max_size=15)


def folded(lines: list[bytes], now: float = NOW) -> Ledger:
    """A ledger of *lines*."""
    ledger = Ledger()
    fold(ledger, lines, now)
    return ledger


def answers(ledger: Ledger) -> dict[str, Any]:
    """What anybody can ask a *ledger*, but for the numbers of lines."""
    newest = {agent: ledger.newest_of_agent(agent) for agent in AGENTS}
    newest |= {str(pid): ledger.newest_of_pid(pid) for pid in PIDS}
    bound = {who: found and (found.at, found.ticket) for who, found in newest.items()}
    return bound | {ticket: ledger.has_create(ticket) for ticket in TICKETS}


def put_between(lines: list[bytes], others: list[tuple[int, bytes]]) -> list[bytes]:
    """*lines* with each of *others* put in at its place."""
    mixed = list(lines)
    for place, other in others:
        mixed.insert(place % (len(mixed) + 1), other)
    return mixed


@settings(max_examples=1000, deadline=None)
@given(st.lists(events, max_size=15))
def test_the_answers_are_those_of_the_plain_rule(given: list[dict[str, Any]]) -> None:
    """Of all binding events that are due: the newest of each, of equal times the later line."""
    due = [
        event | {"line": number}
        for number, event in enumerate(given, 1)
        if event["kind"] in BINDING and event["at"] <= NOW + AHEAD_S
    ]
    expected: dict[str, Any] = {}
    for who in (*AGENTS, *map(str, PIDS)):
        its = [
            (event["at"], event["line"], event["ticket"])
            for event in due
            if event["agent"] == who or who in str(event["correlation_id"])
        ]
        expected[who] = max(its)[::2] if its else None
    for ticket in TICKETS:
        expected[ticket] = any(e["kind"] == "create" and e["ticket"] == ticket for e in due)

    assert expected == answers(folded([line_of(event) for event in given]))


@settings(max_examples=1000, deadline=None)
@given(lines_of_events, st.lists(st.sampled_from(JUNK)))
def test_nothing_is_known_without_its_create(lines: list[bytes], junk: list[bytes]) -> None:
    """T04: whatever else stands in the file."""
    without = [line for line in lines if b'"type": "create"' not in line]

    assert set() == folded(without + junk, NOW + 1e6).known


@settings(max_examples=1000, deadline=None)
@given(lines_of_events, st.lists(st.tuples(st.integers(0), st.sampled_from(READS + JUNK))))
def test_reading_and_junk_change_no_answer(
    lines: list[bytes], others: list[tuple[int, bytes]]
) -> None:
    """T03, T08: anywhere between the events."""
    mixed = folded(put_between(lines, others))

    assert answers(folded(lines)) == answers(mixed)
    assert len(lines) + len(others) == mixed.lines


@settings(max_examples=200, deadline=None)
@given(
    lines_of_events,
    st.lists(st.tuples(st.integers(0), st.sampled_from(READS + JUNK)), max_size=5),
    st.lists(st.tuples(st.integers(1, 900), st.sampled_from([0.0, 50.0, 200.0])), max_size=8),
    st.sampled_from([0, 1, 300]),
)
def test_how_the_file_was_read_changes_no_answer(
    lines: list[bytes],
    others: list[tuple[int, bytes]],
    looks: list[tuple[int, float]],
    worth: int,
) -> None:
    """Grown in any pieces, a look after each, a memory in between or none: as read at once."""
    content = b"\n".join(put_between(lines, others))
    now = NOW
    with tempfile.TemporaryDirectory() as folder:
        path, memory = f"{folder}/events.jsonl", f"{folder}/ledger.json"
        for size, passed in [*looks, (len(content), 0.0)]:
            with open(path, "ab") as file:
                file.write(content[:size])
            content, now = content[size:], now + passed
            remembering = read_ledger(path, memory, now, None, worth=worth)
            at_once = read_ledger(path, None, now, None)

            assert vars(at_once.ledger) == vars(remembering.ledger)
            assert None is at_once.blind is remembering.blind


@settings(max_examples=1000, deadline=None)
@given(lines_of_events, st.lists(st.sampled_from(JUNK)))
def test_a_ledger_survives_its_memory(lines: list[bytes], junk: list[bytes]) -> None:
    """Every field, also the agents that no terminal can print."""
    ledger = folded(lines + junk)

    found = from_json(json.loads(json.dumps(to_json(ledger))))

    assert found is not None
    assert vars(ledger) == vars(found)


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=6)
            | st.dictionaries(st.sampled_from(sorted(vars(Ledger()))), inner)
        ),
    )
)
def test_reading_a_memory_is_total(found: object) -> None:
    """Any JSON value is a ledger or none."""
    assert from_json(found) is None or isinstance(found, dict)


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(st.binary(max_size=200) | st.sampled_from(READS + JUNK), max_size=8),
    st.lists(st.tuples(st.integers(0), st.integers(0, 9), st.binary(max_size=5)), max_size=4),
)
@example(lines=[b"[" * 200_000], changes=[])
@example(lines=[b'{"a":' * 200_000 + b'"create"'], changes=[])
@example(lines=[b'{"type": "create", "id":' + b"9" * 10_000 + b"}"], changes=[])
@example(lines=[b'\xef\xbb\xbf{"type": "create"}'], changes=[])
def test_any_bytes_are_lines(lines: list[bytes], changes: list[tuple[int, int, bytes]]) -> None:
    """Mutated anywhere: every line is counted, and skipped at most once with a known reason."""
    content = b"\n".join(lines)
    for place, out, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + out :]
    cut = content.split(b"\n")

    ledger = folded(cut)

    assert len(cut) == ledger.lines
    assert REASONS.keys() >= ledger.skipped.keys()
    assert ledger.lines >= sum(ledger.skipped.values())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from([0, 1, 90, LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 3 << 20]),
        max_size=4,
    ),
    st.lists(st.sampled_from([1, 90, LONGEST_LINE, LONGEST_LINE + 1, 2 << 20]), max_size=6),
)
def test_lines_are_cut_alike_from_any_blocks(lengths: list[int], sizes: list[int]) -> None:
    """Those that may be are whole; those that are too long are one each, and too long."""
    content = b"".join(b"%c" % (65 + n) * length + b"\n" for n, length in enumerate(lengths))
    cutter, found, at = Cutter(), [], 0
    for size in [*sizes, len(content)]:
        found += cutter.cut(content[at : at + size])
        at += size

        assert len(cutter.rest) <= LONGEST_LINE

    expected = [line for line in content.split(b"\n")[:-1] if len(line) <= LONGEST_LINE]
    assert len(lengths) == len(found)
    assert expected == [line for line in found if len(line) <= LONGEST_LINE]
    assert (len(content), b"", False) == (cutter.offset, cutter.rest, cutter.inside)
