"""`zdo report`: what became of deliveries, counted from what really happened."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pexpect
import pytest

from dispatch.rig.script import T
from tests.acceptance.saying import complained, queued
from tests.fakes.inside import RIGS

AWAY = "7d1c0e2a-0000-4000-8000-00000000000a"
OTHER = "388e03f6-0000-4000-8000-000000000002"
CONFIG = f"""\
[targets.fable]
session = "{T}"
[targets.api]
session = "{OTHER}"
[targets.away]
session = "{AWAY}"
"""


@pytest.fixture(params=RIGS, ids=["process", "inside"])
def rig(request):
    """A rig with two sessions, one of which holds lines."""
    with request.param() as made:
        made.configure(CONFIG)
        made.door()
        made.door(name="api", session_id=OTHER, accept="hold")
        yield made


def told(rig, *words):
    """The report as one object."""
    said = rig.zdo("report", "--json", *words)
    assert (0, "") == (said.exit, said.err), said
    assert 1 == said.out.count("\n")
    return said.json


def staged(rig):
    """One delivery of most fates; the ids of those that are held and in doubt."""
    rig.zdo("kiss", "fable", "one")
    held = rig.zdo("kiss", "--json", "api", "two").json["delivery_id"]
    rig.zdo("kiss", "away", "three")
    queued(rig, "away", "four")
    rig.install_claude(outcome="empty")
    doubt = rig.zdo("kiss", "--json", "fable", "five").json["delivery_id"]
    return held, doubt


def test_what_happened_is_counted(rig):
    """By fate, by class, by day, by target; each line once."""
    held, doubt = staged(rig)

    found = told(rig)

    assert ("report", None, 0, None, None) == (
        found["command"], found["class"], found["exit"], found["target"], found["html"],
    )  # fmt: skip
    fates = {"surfaced": 1, "waiting": 1, "held": 1, "doubt": 1, "refused": 1}
    assert fates == {fate: count for fate, count in found["fates"].items() if count}
    classes = {each["class"]: each["deliveries"] for each in found["classes"]}
    assert 1 == classes["delivered-start"] == classes["door-held"] == classes["queued"]
    assert 5 == found["deliveries"] == sum(classes.values())
    assert 5 == sum(sum(day["fates"].values()) for day in found["days"])
    assert {"fable": 2, "api": 1, "away": 2} == {
        each["target"]: each["deliveries"] for each in found["targets"]
    }
    assert [held] == [each["delivery_id"] for each in found["held"]]
    assert [doubt] == [each["delivery_id"] for each in found["doubt"]]
    assert f"zdo verify {doubt}" in found["doubt"][0]["advice"]
    assert 3 == found["to_door"]["count"]
    assert 0 < found["to_door"]["median_s"] < 30
    assert 0 < found["to_surfaced"]["median_s"] < 30
    # The line in doubt is one: what its carrier was is not known, that it is in is.
    assert (2, 0) == (found["to_surfaced"]["count"], found["to_surfaced"]["later_looks"])


def test_of_one_target(rig):
    """By the address, and by the session in any spelling."""
    staged(rig)

    assert 2 == told(rig, "--target", "fable")["deliveries"]
    assert 2 == told(rig, "--target", T.upper())["deliveries"]
    assert 0 == told(rig, "--target", "nobody")["deliveries"]
    assert "0 deliveries to no\\x1bbody" in rig.zdo("report", "--target", "no\x1bbody").out


def test_since_when(rig):
    """What began earlier is left out, and the object says from when on."""
    rig.zdo("kiss", "fable", "one")

    assert (
        1 == told(rig, "--since", "1m")["deliveries"] == told(rig, "--since", "all")["deliveries"]
    )
    assert told(rig, "--since", "all")["since"] is None
    assert "2026-01-02T00:00:00.000Z" == told(rig, "--since", "2026-01-02")["since"]


@pytest.mark.parametrize("when", ["", "7", "soon", "0d", "2999-01-01", "7d\x1b[31m"])
def test_nonsense_is_refused(rig, when):
    """Usage, in one sentence that does not act."""
    said = rig.zdo("report", "--since", when)

    complained(said, "usage", 64)
    assert said.err[:-1].isprintable()
    assert 64 == rig.zdo("report", "--json", "--since", when).json["exit"]


def test_a_person_reads_it(rig):
    """Counts, times, and the command for what is in doubt; nothing that only a terminal shows."""
    _, doubt = staged(rig)

    said = rig.zdo("report")

    assert (0, "") == (said.exit, said.err)
    lines = said.out.splitlines()
    assert "5 deliveries" == lines[0]
    assert "surfaced  1  20.0 %" in lines
    assert any(doubt in each for each in lines)
    assert "█" not in said.out


def test_looking_makes_nothing(rig):
    """Where no line was ever kept there are no figures, and no database afterwards either."""
    assert 0 == told(rig)["deliveries"]
    assert "0 deliveries" in rig.zdo("report").out
    assert not os.path.exists(f"{rig.state}/zdo.db")


def test_a_page(rig):
    """Whole, for its owner alone, in place of the one before; or on stdout."""
    rig.zdo("kiss", "fable", "one")
    path = Path(rig.root, "page.html")
    path.write_text("old", encoding="utf-8")
    os.chmod(path, 0o644)

    said = rig.zdo("report", "--html", str(path))

    assert (0, f"written: {path} (1 delivery)\n") == (said.exit, said.out)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    text = path.read_text(encoding="ascii")
    assert text.startswith("<!DOCTYPE html>\n")
    assert text.endswith("</html>\n")
    assert str(path) == told(rig, "--html", str(path))["html"]
    assert rig.zdo("report", "--html", "-").out.endswith("</html>\n")


def test_a_page_by_a_link_is_written_where_it_leads(rig):
    """The link stays."""
    link, path = Path(rig.root, "link.html"), Path(rig.root, "page.html")
    link.symlink_to(path)

    assert 0 == rig.zdo("report", "--html", str(link)).exit
    assert link.is_symlink()
    assert path.read_text(encoding="ascii").endswith("</html>\n")


def test_a_page_that_cannot_be_written(rig):
    """A sentence and 73; nothing is put in the place of a pipe or a folder."""
    pipe = f"{rig.root}/pipe"
    os.mkfifo(pipe)
    for path in (rig.home, pipe, f"{rig.root}/none/page.html", f"{rig.root}/a\x1b/b"):
        said = rig.zdo("report", "--html", path)
        complained(said, "spool-unwritable", 73)
        assert "give the path of a file" in said.err
        assert said.err[:-1].isprintable()
    found = rig.zdo("report", "--json", "--html", rig.home).json
    assert ("report", 73, "spool-unwritable") == (found["command"], found["exit"], found["class"])
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


@pytest.mark.parametrize("words", [("--html", ""), ("--html", "-", "--json")])
def test_one_thing_on_stdout(rig, words):
    """A page and an object do not go there together."""
    complained(rig.zdo("report", *words), "usage", 64)


def test_a_damaged_database_is_a_sentence(rig):
    """And one object."""
    rig.zdo("kiss", "fable", "one")
    Path(rig.state, "zdo.db").write_bytes(b"\0" * 8192)

    assert "fsck" in rig.zdo("report").err
    assert 73 == rig.zdo("report", "--json").json["exit"]


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
@pytest.mark.parametrize(("locale", "block"), [("C.UTF-8", "█"), ("C", "#")])
def test_a_terminal_gets_bars(rig, locale, block):
    """Of blocks, or of what its locale can spell."""
    rig.zdo("kiss", "fable", "one")
    command = rig.command("report")
    env = rig.env | {
        "LANG": locale,
        "LC_ALL": locale,
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
    }
    seen = pexpect.spawn(command[0], command[1:], env=env, encoding="utf-8", dimensions=(50, 60))
    shown = seen.read()
    seen.close()

    assert 0 == seen.exitstatus
    assert f"surfaced  1  {block}" in shown
    assert all(len(line) <= 60 for line in shown.splitlines())


def test_every_field_is_there(rig):
    """Also of a house where nothing ever happened."""
    fields = [
        "v", "command", "class", "exit", "sender", "since", "until", "target", "html", "entries",
        "deliveries", "fates", "classes", "days", "to_surfaced", "to_door", "held", "doubt", "dead",
        "tries", "targets",
    ]  # fmt: skip

    assert fields == list(told(rig))
    staged(rig)
    assert fields == list(told(rig))
