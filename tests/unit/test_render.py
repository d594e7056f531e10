"""What a person reads: plain lines, and nothing in them acts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatch import render
from dispatch.fsck import Findings
from dispatch.result import CarrierFacts, Plan, TargetFacts
from dispatch.salvage import Saved
from dispatch.verdict import TABLE
from registry.targets import Target
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.evidence import OTHER, a_config, an_evidence
from tests.fakes.household import asked, conclude


@given(st.text())
def test_a_cleaned_text_is_one_printable_line(text):
    """Whatever somebody called a session."""
    assert render.clean(text).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\x1b[2J", "\\x1b[2J"), ("a\nb", "a\\nb"), ("\ud800", "\\ud800"), ("é", "é"), (None, "None")],
)
def test_what_would_act_is_written_out(text, shown):
    """A terminal gets letters."""
    assert shown == render.clean(text)


def test_a_failure_is_class_reason_and_what_to_do():
    """INTERFACE 5: one line."""
    assert render.failure_line("usage", "odd\nwords", "see zdo --help") == (
        "zdo: usage: odd\\nwords; see zdo --help"
    )


def test_a_delivery_is_one_sentence():
    """The name first, the session short."""
    assert render.kiss_line(conclude(an_evidence())) == (
        f"delivered-start: fable (session {T[:8]}, pid 4201, idle); proof: written;"
        f" delivery {DELIVERY}"
    )


def test_a_session_addressed_by_its_id_is_not_named_twice():
    """The id is the name."""
    target = TargetFacts(id=T, session_id=T, pid=1, status="busy", route="session")

    assert f"{T} (pid 1, busy)" in render.kiss_line(asked(target=target))


def test_a_plan_shows_argv_one_word_a_line():
    """An empty word and one with a blank are quoted, so that they can be seen."""
    plan = Plan(argv=("claude", "--tools=", "", "zdo knock x"), env=("HOME", "PATH"))
    shown = render.plan_lines(asked(verdict=TABLE["dry-run"], plan=plan))

    assert shown == [
        f"target   {T}  fable  pid 4201  idle  by target",
        f"postbox  {P}",
        "argv",
        "  claude",
        "  --tools=",
        "  ''",
        "  'zdo knock x'",
        "environment",
        "  HOME PATH",
    ]


def test_without_a_plan_only_the_sessions_are_shown():
    """A refused dry run got no further."""
    result = asked(carrier=CarrierFacts())

    assert render.resolve_lines(result) == render.plan_lines(result)


def a_line(**changes):
    """A kept line as the shelf shows it, with *changes*."""
    plain = {
        "delivery_id": DELIVERY,
        "target": "fable",
        "state": "queued",
        "attempts": 0,
        "bytes": 15,
        "class": "queued",
        "reason": None,
        "held_by": None,
    }
    return plain | changes


def test_a_queued_line_is_one_sentence():
    """There is no session and no proof to tell of."""
    shown = render.kiss_line(asked(verdict=TABLE["queued"]))

    assert shown == f"queued: fable; delivery {DELIVERY}"


def test_the_kept_lines_stand_in_columns():
    """Why each waits: its own last class and reason, or the line that it waits behind."""
    lines = [
        a_line(),
        a_line(target="\x1b[31m", state="dead", attempts=24),
        a_line(**{"class": "carrier-exit"}, reason="it ended\nwith 1"),
        a_line(held_by=T),
        a_line(**{"class": None}),
    ]
    head, *rows = render.spool_lines(lines)

    assert ["DELIVERY", "TARGET", "STATE", "TRIES", "BYTES", "WHY"] == head.split()
    assert [row[head.index("WHY") :] for row in rows] == [
        "queued",
        "queued",
        "carrier-exit: it ended\\nwith 1",
        f"behind {T[:8]}",
        "-",
    ]
    assert [DELIVERY, "\\x1b[31m", "dead", "24", "15", "queued"] == rows[1].split()


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "fable unknown, proof none"),
        ({"reason": "no\nend"}, "fable unknown, proof none: no\\nend"),
        ({"target": TargetFacts()}, "- unknown, proof none"),
    ],
)
def test_an_open_delivery_is_one_line(changes, shown):
    """Which, to whom, how it stands, and why."""
    assert render.open_line(asked(**changes)) == f"{DELIVERY} {shown}"


SAVED = Saved("/s/corrupt/x", lines=3, events=9, doubted=1, dead=2, lost_lines=4, lost_events=5)


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (Findings("/s/zdo.db", "absent"), ["fsck: there is no /s/zdo.db yet"]),
        (
            Findings("/s/zdo.db", "healthy", lines=2, events=7),
            ["fsck: /s/zdo.db is whole; lines: 2, entries: 7"],
        ),
        (
            Findings("/s/zdo.db", "damaged", saved=SAVED, complaints=("page 3\x1b",)),
            [
                (
                    "fsck: saved lines: 3 (in doubt: 1, damaged: 2), entries: 9, readers: 0;"
                    " lost at least: lines 4, entries 5, readers 0"
                ),
                "was damaged: page 3\\x1b",
            ],
        ),
    ],
)
def test_a_look_at_the_spool_has_one_line_for_all(found, shown):
    """What is there, or what was saved."""
    assert render.fsck_lines(found) == shown


def test_every_oddity_of_the_spool_has_a_line_of_its_own():
    """None of them is only a number in an object."""
    found = Findings(
        "/s/zdo.db",
        "healthy",
        damaged_lines=("a",),
        odd_lines=("b",),
        damaged_events=2,
        contradicted=("c",),
        orphans=3,
        stray_folders=("d", "e"),
        missing_folders=("f",),
    )

    assert render.fsck_lines(found)[1:] == [
        "damaged line: a",
        "odd line: b",
        "damaged entries: 2",
        "not as the journal says: c",
        "claimed by nobody alive, for zdo relay: 3",
        "folder without a line: d",
        "folder without a line: e",
        "open line without its folder: f",
    ]


def test_the_targets_show_the_postbox_that_would_carry():
    """Their own, else the station's; none on purpose is said."""
    targets = (
        Target("fable", "session", T, None),
        Target("clerk", "name", "clerk", OTHER),
        Target("mute", "ticket", "TK-7", ""),
    )

    assert [f"session  {T}", f"{P}"] == [
        "  ".join(render.target_lines(a_config(*targets))[1].split()[1:3]),
        render.target_lines(a_config(*targets))[1].split()[3],
    ]
    assert [OTHER, "none"] == [
        line.split()[-1] for line in render.target_lines(a_config(*targets))[2:]
    ]


def test_no_targets_is_the_head_alone():
    """An empty table is a table."""
    assert render.target_lines(a_config()) == ["TARGET  BY  VALUE  POSTBOX"]


@pytest.mark.parametrize(
    ("name", "reason", "shown"),
    [
        (None, None, "t accepted"),
        ("unknown", None, "t accepted unknown"),
        ("unknown", "no\nend", "t accepted unknown: no\\nend"),
    ],
)
def test_an_event_is_one_line(name, reason, shown):
    """When, what, which class, why."""
    assert shown == render.event_line("t", "accepted", name, reason)


def test_an_id_is_short_for_a_person():
    """And a hyphen where there is none."""
    assert [T[:8], "-", "-"] == [render.short(T), render.short(None), render.short("")]
