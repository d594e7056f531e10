"""The table of outcomes against USAGE.md and against itself."""

from __future__ import annotations

import re
from pathlib import Path

import typer

from dispatch.cli import app
from dispatch.cli.options import KISS
from dispatch.health import LOOKS
from dispatch.kept import STATE_NAMES
from dispatch.tally import Tally
from dispatch.verdict import DONE, FAILED, NONE, OPEN, QUEUE, SCALE, TABLE
from tests.acceptance.saying import EVENT_FIELDS, SPOOL_FIELDS

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
    78: {"config-invalid", "unhealthy"},
    130: {"interrupted"},
}


def usage_table(heading: str, head: str = "") -> list[list[str]]:
    """The body of the first table under *heading* in USAGE.md whose first cell begins with *head*.

    Row by row, cell by cell.
    """
    section = USAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1]
    lines = section.split("\n## ", 1)[0].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"| {head}"))
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


def named_in(cell: str) -> list[str]:
    """The words in backquotes in *cell*."""
    return re.findall(r"`([^`]+)`", cell)


def test_usage_names_every_field_of_a_pass():
    """In the order in which `zdo relay --json` prints them."""
    rows = usage_table("When the session is away or busy", head="field")

    assert [name for row in rows for name in named_in(row[0])] == list(Tally().as_json())


def test_usage_names_every_field_of_a_kept_line():
    """In the order in which `zdo spool list --json` prints them."""
    head = "field of `zdo spool list --json`"
    rows = usage_table("When the session is away or busy", head=head)

    assert [name for row in rows for name in named_in(row[0])] == list(SPOOL_FIELDS)


def test_usage_shows_the_states_that_a_kept_line_is_listed_in():
    """The others are delivered."""
    rows = usage_table("When the session is away or busy", head="state")

    shown = [named_in(row[0])[0] for row in rows]
    assert shown == [name for name in STATE_NAMES.values() if name not in ("sent", "delivered")]


def test_usage_shows_the_options_of_the_relay():
    """With the words of their help."""
    command = typer.main.get_command(app.app).commands["relay"]
    helps = {each.opts[0]: each.help for each in command.params}
    rows = usage_table("When the session is away or busy", head="option")

    assert {row[0].strip("`"): row[2] for row in rows} == helps


def test_usage_names_every_field_of_an_event():
    """In the order in which `zdo receipts --json` prints them."""
    rows = usage_table("What has happened since you last looked", head="field of an event")

    assert [name for row in rows for name in named_in(row[0])] == list(EVENT_FIELDS)


def test_usage_shows_the_options_of_a_reader():
    """Every one that only `zdo receipts` has."""
    command = typer.main.get_command(app.app).commands["receipts"]
    rows = usage_table("What has happened since you last looked", head="option of `zdo receipts`")
    shown = {word for row in rows for word in re.findall(r"--[a-z-]+", row[0])}

    assert shown | {"--session-id", "--json"} | {"--from-start"} == {
        each.opts[0] for each in command.params
    }


def test_usage_shows_the_items_of_the_doctor():
    """In the order in which they are looked at."""
    rows = usage_table("Is everything well?", head="code")

    assert [named_in(row[0])[0] for row in rows] == [look.code for look in LOOKS]


def test_usage_gives_the_relays_statuses_their_classes():
    """Every status that the table names is the exit of a class that ends a pass so."""
    rows = usage_table("When the session is away or busy", head="exit")
    told = {int(status) for row in rows for status in row[0].split(", ")}
    fates = {v.exit for v in TABLE.values() if v.fate in (OPEN, FAILED)} - {70}

    # Given up for its time, a line has the class for which it waited.
    assert fates | {0, 2, 67, 69, 73, 74, 75, 76, 78, 130} == told


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
