"""The table of outcomes against USAGE.md and against itself."""

from __future__ import annotations

from pathlib import Path

from dispatch.cli.options import KISS
from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE, SCALE, TABLE

USAGE = Path(__file__).parents[2] / "USAGE.md"

INTERFACE_ROWS = {
    0: {"delivered-start", "surfaced", "queued", "dry-run"},
    2: {"carrier-misbound", "carrier-unbound", "carrier-live", "nested-kiss"},
    3: {
        "unknown",
        "carrier-mismatch",
        "door-mismatch",
        "receipt-missing",
        "receipt-foreign",
        "door-held",
        "not-surfaced",
    },
    64: {"usage"},
    65: {"line-invalid", "key-conflict"},
    67: {"target-unknown", "target-ambiguous", "ticket-unbound"},
    69: {"target-not-running", "carrier-spawn", "expired"},
    70: {"internal"},
    73: {"spool-unwritable"},
    74: {"journal-unwritable"},
    75: {"carrier-busy", "target-status", "door-dropped"},
    76: {"carrier-exit", "carrier-output", "carrier-timeout", "wrapper-not-run"},
    77: {"door-refused", "door-denied"},
    78: {"config-invalid"},
    130: {"interrupted"},
}


def usage_table(heading: str) -> list[list[str]]:
    """The body rows of the first table under *heading* in USAGE.md, cell by cell."""
    section = USAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    lines = section.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    body = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        body.append([cell.strip() for cell in line.strip("|").split("|")])
    return body


def test_every_class_has_its_exit_status_of_the_interface():
    """Scripts rely on the pairs of class and exit status, so none may move."""
    found: dict[int, set[str]] = {}
    for row in TABLE.values():
        found.setdefault(row.exit, set()).add(row.name)

    assert found == INTERFACE_ROWS


def test_usage_shows_the_same_rows_as_the_code():
    """USAGE.md is the table that people read; it may not differ by a word."""
    expected = [[str(v.exit), f"`{v.name}`", v.state, v.fate, v.advice] for v in TABLE.values()]

    assert usage_table("Exit statuses and classes") == expected


def test_usage_shows_the_options_of_kiss():
    """Every option of kiss stands in USAGE.md with the words of its help."""
    expected = [[f"`{o.flag}`", o.kind, o.help] for o in KISS]

    assert usage_table("Options of `zdo kiss`") == expected


def test_every_row_is_complete_and_from_the_vocabulary():
    """A class without advice, fate or state would leave its reader alone."""
    for row in TABLE.values():
        assert row.fate in {DONE, QUEUE, OPEN, FAILED, NONE}
        assert row.state in {*SCALE, "held", "unknown"}
        assert row.advice


def test_only_provably_untouched_outcomes_may_be_repeated():
    """What is open is never what the queue tries again by itself."""
    repeatable = {row.name for row in TABLE.values() if row.fate == QUEUE}

    assert repeatable == {
        "queued",
        "target-not-running",
        "carrier-spawn",
        "carrier-busy",
        "target-status",
        "door-dropped",
        "carrier-exit",
        "carrier-output",
        "carrier-timeout",
        "wrapper-not-run",
        "interrupted",
    }
