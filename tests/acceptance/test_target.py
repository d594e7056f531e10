"""`zdo target`: recipients come into the configuration, change and leave it, and none is lost."""

from __future__ import annotations

import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from dispatch.rig.rig import CONFIG, P
from dispatch.rig.script import T
from tests.acceptance.saying import complained
from tests.fakes.inside import RIGS

WRITERS = 20


@pytest.fixture(params=RIGS, ids=["process", "inside"])
def rig(request):
    """A rig with one running session; the command is a process of its own, or runs here."""
    with request.param() as made:
        made.door()
        yield made


def targets(rig):
    """The configured targets as the file has them."""
    return tomllib.loads(Path(rig.config_file).read_text(encoding="utf-8")).get("targets", {})


def test_a_new_target_is_kissed_by_its_name(rig):
    """One sentence, one more table in the file, and it works."""
    said = rig.zdo("target", "add", "main", "--session", T.upper())

    assert f"added: main (session {T}) in {rig.config_file}\n" == said.out
    assert (0, "") == (said.exit, said.err)
    assert Path(rig.config_file).read_text(encoding="utf-8").startswith(CONFIG)
    assert 0 == rig.zdo("kiss", "main", "hello").exit
    assert ["hello"] == rig.lines()


def test_it_is_changed_and_removed(rig):
    """What is given changes; `zdo targets` shows it; a removed one is unknown."""
    rig.zdo("target", "add", "main", "--name", "fable", "--carrier", "itself")

    said = rig.zdo("target", "edit", "main", "--ticket", "tk-5")
    assert (0, f"changed: main (ticket TK-5) in {rig.config_file}\n") == (said.exit, said.out)
    assert {"ticket": "tk-5", "carrier_session": "itself"} == targets(rig)["main"]
    assert 0 == rig.zdo("target", "edit", "main", "--no-carrier").exit
    assert {"ticket": "tk-5"} == targets(rig)["main"]
    assert "main    ticket   TK-5" in rig.zdo("target", "list").out

    assert f"removed: main in {rig.config_file}\n" == rig.zdo("target", "remove", "main").out
    assert {"fable", "itself"} == set(targets(rig))


def test_as_one_object(rig):
    """What was done, the target as zdo understood it, and the file."""
    told = rig.zdo("target", "add", "--json", "main", "--session", T).json

    assert ("target", None, 0, "add") == (
        told["command"], told["class"], told["exit"], told["what"],
    )  # fmt: skip
    found = {"id": "main", "kind": "session", "value": T, "carrier_session": None}
    assert (found, rig.config_file) == (told["target"], told["path"])
    assert rig.zdo("target", "remove", "main", "--json").json["target"] is None
    refused = rig.zdo("target", "remove", "main", "--json")
    assert ("target-unknown", 67) == (refused.json["class"], refused.exit)


@pytest.mark.parametrize(
    ("words", "name", "status"),
    [
        (("add", "fable", "--name", "x"), "usage", 64),
        (("add", "new"), "usage", 64),
        (("add", "new", "--name", "x", "--ticket", "TK-1"), "usage", 64),
        (("edit", "fable"), "usage", 64),
        (("edit", "fable", "--carrier", P, "--no-carrier"), "usage", 64),
        (("edit", "nobody", "--name", "x"), "target-unknown", 67),
        (("remove", "nobody"), "target-unknown", 67),
        (("add", "a\nb", "--name", "x"), "usage", 64),
        (("add", "new", "--session", "x"), "usage", 64),
        (("add", "new", "--name", "x", "--carrier", "new"), "usage", 64),
    ],
)
def test_what_cannot_be_is_refused(rig, words, name, status):
    """With a class, a sentence and a way on; the file is as it was."""
    complained(rig.zdo("target", *words), name, status)

    assert CONFIG == Path(rig.config_file).read_text(encoding="utf-8")


def test_a_postbox_that_others_use_is_not_removed(rig):
    """The sentence names who needs it."""
    rig.zdo("target", "add", "main", "--session", T, "--carrier", "itself")

    said = rig.zdo("target", "remove", "itself")

    complained(said, "usage", 64)
    assert "is the postbox of 'main'" in said.err


def test_who_does_not_run_now_is_warned_of(rig):
    """It is put there all the same: it may come back."""
    said = rig.zdo("target", "add", "main", "--name", "nobody")

    assert 0 == said.exit
    assert "zdo: warning: no running session has the name nobody now\n" == said.err
    assert "" == rig.zdo("target", "add", "two", "--name", "fable").err
    assert "" == rig.zdo("target", "add", "three", "--ticket", "TK-1").err
    Path(rig.claude_dir, "sessions").rename(f"{rig.claude_dir}/gone")
    Path(rig.claude_dir, "sessions").touch()
    assert "" == rig.zdo("target", "add", "four", "--name", "x").err


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
def test_many_writers_lose_nothing(rig):
    """Each adds its own at the same moment; all stand there afterwards, beside the old ones."""
    asked = [rig.start("target", "add", f"t{n}", "--ticket", f"TK-{n}") for n in range(WRITERS)]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in asked]

    assert [0] * WRITERS == [status for _, _, status in ended], ended
    assert {"fable", "itself", *(f"t{n}" for n in range(WRITERS))} == set(targets(rig))
    assert Path(rig.config_file).read_text(encoding="utf-8").startswith(CONFIG)


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
def test_a_killed_writer_leaves_a_whole_file(rig):
    """Killed at any moment: the file parses, and who said `added` stands in it."""
    said, began = set(), time.monotonic()
    rig.zdo("target", "add", "t", "--ticket", "TK-1")
    whole = time.monotonic() - began
    for n in range(24):
        process = rig.start("target", "add", f"t{n}", "--ticket", f"TK-{n}")
        try:
            # The whole length of a command, and more of its end.
            out, _ = process.communicate(timeout=whole * (n + 1) / 20)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            out, _ = process.communicate()
        if out.startswith("added"):
            said.add(f"t{n}")
        assert said <= set(targets(rig))
        assert {"fable", "itself", "t"} <= set(targets(rig))
    assert 0 == rig.zdo("target", "add", "last", "--ticket", "TK-9").exit


# -- words


def test_explain_tells_what_a_class_means(rig):
    """By its name, by its status, or all of them; for a program too."""
    assert "The line may be in. Do not repeat it" in rig.zdo("explain", "unknown").out
    assert 5 == rig.zdo("explain", "76").out.count("\n")
    whole = rig.zdo("explain")
    assert (0, 40) == (whole.exit, whole.out.count("\n"))
    (told,) = rig.zdo("explain", "--json", "door-held").json["classes"]
    assert ("door-held", 3, "open") == (told["class"], told["exit"], told["fate"])


def test_explain_knows_what_it_does_not_know(rig):
    """A near name is suggested, and nothing is guessed."""
    said = rig.zdo("explain", "door-hold")

    complained(said, "usage", 64)
    assert "close: door-held" in said.err


def offered(rig, *words):
    """What bash would offer behind *words*, the last of them half typed."""
    line = " ".join(["zdo", *words])
    env = {"_ZDO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    said = rig.zdo(env=env)
    assert "" == said.err
    return said.out.split()


def test_the_shell_is_offered_what_fits(rig):
    """Targets and running names, deliveries, classes; nothing where nothing is to be had."""
    rig.door(name="api", session_id="388e03f6-0000-4000-8000-000000000002")
    rig.zdo("kiss", "fable", "hello")

    assert ["fable"] == offered(rig, "kiss", "fa")
    assert ["api"] == offered(rig, "resolve", "a")
    assert ["fable", "itself"] == sorted(offered(rig, "target", "remove", ""))
    assert ["door-denied", "door-dropped"] == sorted(offered(rig, "explain", "door-d"))
    (delivery,) = offered(rig, "show", "")
    assert 0 == rig.zdo("show", delivery).exit

    rig.configure("[")
    assert ["api"] != offered(rig, "kiss", "a")
    Path(rig.state, "zdo.db").write_bytes(b"x" * 8192)
    assert [] == offered(rig, "show", "")
