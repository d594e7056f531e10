"""`zdo watch`: everything at a glance, and what needs somebody first."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from pathlib import Path

import pexpect
import pytest

from dispatch.rig.script import T
from tests.acceptance.saying import complained, queued
from tests.fakes.inside import RIGS
from tests.fakes.tickets import Tickets

OTHER = "388e03f6-0000-4000-8000-000000000002"
CONFIG = f"""\
[targets.fable]
session = "{T}"
[targets.api]
session = "{OTHER}"
[targets.away]
session = "7d1c0e2a-0000-4000-8000-00000000000a"
"""


@pytest.fixture(params=RIGS, ids=["process", "inside"])
def rig(request):
    """A rig with a session; the command is a process of its own, or runs here."""
    with request.param() as made:
        made.configure(CONFIG)
        made.door(env={"TERM_SESSION_ID": "w0"})
        yield made


def watched(rig, *words):
    """What the view shows, as lines."""
    said = rig.zdo("watch", *words)
    assert (0, "") == (said.exit, said.err), said
    return said.out.splitlines()


def told(rig):
    """The view as one object."""
    said = rig.zdo("watch", "--json")
    assert (0, "watch", None) == (said.exit, said.json["command"], said.json["class"])
    return said.json


def test_a_quiet_house_needs_nobody(rig):
    """A session, its ticket, its door; no line was ever kept."""
    tickets = Tickets(rig.home)
    tickets.add("TK-7", "create", 60)
    tickets.add("TK-7", "assign", agent="claude@w0")

    lines = watched(rig)

    assert "Nothing needs you." in lines
    assert any(re.fullmatch(r"fable +idle +[0-9]+s +TK-7 +open +/home/u/w", each) for each in lines)
    assert not any("WAITING FOR" in each or each.startswith("LAST") for each in lines)
    assert re.search(r"sessions 1   lines waiting 0   relay never", lines[0])


def test_what_needs_somebody_stands_first(rig):
    """Held, in doubt, given up: each with the commands that end it, and they are right."""
    rig.door(name="api", session_id=OTHER, accept="hold")
    (held,) = queued(rig, "api", "one")
    rig.zdo("relay")
    rig.install_claude(outcome="empty")
    (doubt,) = queued(rig, "fable", "two")
    rig.zdo("relay")
    rig.install_claude()
    rig.zdo("spool", "requeue", held)
    (dead,) = queued(rig, "away", "three")
    (waiting,) = queued(rig, "away", "four")
    _make_dead(rig, dead)

    view = told(rig)

    needs = {each["delivery"]: each for each in view["needs"]}
    assert {held: "held", doubt: "doubt", dead: "dead"} == {
        key: each["kind"] for key, each in needs.items()
    }
    assert ["approve it in the session", f"zdo verify {held}"] == needs[held]["do"]
    lines = watched(rig)
    assert lines.index("NEEDS YOU") < next(
        i for i, x in enumerate(lines) if x.startswith("SESSION")
    )
    for words in (needs[doubt]["do"][0], *needs[dead]["do"]):
        assert f"      {words}" in lines
        assert 0 == rig.zdo(*words.split()[1:]).exit, words
    # The doubt had been read all the same, so that its look has settled it.
    assert [held] == [each["delivery"] for each in told(rig)["needs"]]
    assert [("away", 1)] == [(each["target"], each["waiting"]) for each in told(rig)["queues"]]
    assert waiting


def _make_dead(rig, delivery):
    """The relay has given up on *delivery*."""
    link = sqlite3.connect(f"{rig.state}/zdo.db")
    link.execute("UPDATE line SET state = 50, status = '4.004.007' WHERE key = ?", (delivery,))
    link.commit()
    link.close()


def test_a_relay_that_does_not_come_is_missed(rig):
    """Once lines wait; the command that serves them is named."""
    queued(rig, "away", "one")
    assert "      zdo relay" in watched(rig)
    assert told(rig)["relay_is_late"] is True
    rig.zdo("relay")
    assert told(rig)["relay_is_late"] is False
    assert told(rig)["relay_ago_s"] < 60


def test_many_are_counted(rig):
    """The first few are shown, and how many more there are."""
    queued(rig, "away", *(f"line {n}" for n in range(3)))
    link = sqlite3.connect(f"{rig.state}/zdo.db")
    names = [row[1] for row in link.execute("PRAGMA table_info(line)") if row[1] != "id"]
    values = {"key": "?", "state": "13"}
    chosen = ", ".join(values.get(name, name) for name in names)
    copied = f"INSERT INTO line({', '.join(names)}) SELECT {chosen} FROM line WHERE id = 1"  # noqa: S608 - ours
    link.executemany(copied, [(f"00000000-0000-4000-8000-{n:012}",) for n in range(12)])
    link.commit()
    link.close()

    view = told(rig)

    assert (8, True, 3) == (len(view["needs"]), view["more_needs"], view["waiting"])
    assert "      and more: zdo spool list, zdo verify --open" in watched(rig)


def test_last_verdicts_are_shown(rig):
    """The newest first, refusals too."""
    rig.zdo("kiss", "fable", "one")
    rig.zdo("kiss", "nobody", "two")

    latest = told(rig)["latest"]

    assert ["target-unknown", "delivered-start"] == [each["name"] for each in latest]
    assert "fable" == latest[1]["target"]


def test_names_of_others_do_not_act(rig):
    """Escapes and line ends in a session's name are written out."""
    rig.registry.add(name="\x1b[2Jevil\nname", cwd="/x\x07" + "y" * 200)

    said = "\n".join(watched(rig))

    assert "\\x1b[2Jevil\\nname" in said
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", said)


@pytest.mark.parametrize("state", ["garbage", "folder", "empty", "locked away"])
def test_what_cannot_be_read_is_told_in_its_place(rig, state):
    """The rest is shown; the database is not touched."""
    rig.zdo("kiss", "fable", "one")
    path = Path(rig.state, "zdo.db")
    path.unlink()
    if state == "garbage":
        path.write_bytes(os.urandom(8192))
    elif state == "folder":
        path.mkdir()
    elif state == "empty":
        path.touch()
    else:
        path.symlink_to("/nowhere")

    view = told(rig)

    assert (state in ("garbage", "empty")) == any(x.startswith("lines: ") for x in view["troubles"])
    assert ["fable"] == [each["name"] for each in view["sessions"]]
    if view["troubles"]:
        assert view["troubles"][0] in watched(rig)


def test_rows_that_cannot_be_read_are_told(rig):
    """And the lines are shown all the same; so it is with a configuration that is none."""
    rig.zdo("kiss", "fable", "one")
    rig.registry.add(damage="torn")
    assert "1 rows are no sessions: zdo sessions --all" in watched(rig)
    rig.close_doors()
    assert "No session runs." in watched(rig)
    rig.configure("[")

    view = told(rig)

    assert view["troubles"][0].startswith("sessions: ")
    assert 1 == len(view["latest"])


@pytest.mark.parametrize("interval", ["0", "nan", "1e9", "-1"])
def test_an_interval_is_a_time(rig, interval):
    """From a fifth of a second to a day."""
    complained(rig.zdo("watch", "--interval", interval), "usage", 64)


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
def test_on_a_terminal_it_stays_and_leaves_it_as_it_was(rig):
    """Drawn anew, also after a change of size; Ctrl-C ends it with 0."""
    command = rig.command("watch", "--interval", "0.2")
    env = rig.env | {"TERM": "xterm-256color"}
    seen = pexpect.spawn(command[0], command[1:], env=env, encoding="utf-8", dimensions=(30, 80))
    seen.expect("Nothing needs you", timeout=20)
    seen.setwinsize(40, 120)
    queued(rig, "away", "one")
    seen.expect("zdo relay", timeout=20)
    rig.zdo("relay")
    seen.expect("Nothing needs you", timeout=20)

    seen.kill(signal.SIGINT)
    rest = seen.read()
    seen.close()

    assert 0 == seen.exitstatus
    # The other screen, and the cursor, are given back.
    assert "\x1b[?1049l" in rest
    assert "\x1b[?25h" in rest


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
def test_it_holds_nobody_up(rig):
    """While it watches as fast as it may, kisses arrive as ever, and nothing is written."""
    rig.zdo("kiss", "fable", "first")
    command = rig.command("watch", "--interval", "0.2")
    env = rig.env | {"TERM": "xterm"}
    seen = pexpect.spawn(command[0], command[1:], env=env, encoding="utf-8", dimensions=(30, 80))
    seen.expect("Nothing needs you", timeout=20)
    began = time.monotonic()

    for n in range(5):
        assert 0 == rig.zdo("kiss", "fable", f"line {n}").exit

    assert time.monotonic() - began < 20
    before = Path(rig.state, "zdo.db").stat().st_mtime_ns
    seen.expect("delivered-start", timeout=20)
    assert before == Path(rig.state, "zdo.db").stat().st_mtime_ns
    seen.kill(signal.SIGTERM)
    seen.expect(pexpect.EOF, timeout=20)
    seen.close()
    assert 0 == seen.exitstatus


def test_the_object_is_whole(rig):
    """Every field is there, also of an empty house."""
    assert [
        "v", "command", "class", "exit", "sender", "at", "needs", "more_needs", "sessions",
        "skipped", "queues", "waiting", "latest", "relay_ago_s", "relay_is_late", "troubles",
    ] == list(told(rig))  # fmt: skip
    assert json.dumps(told(rig))
