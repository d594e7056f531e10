"""`zdo postbox` and `zdo init`: the session that carries, from its birth to its end."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from carrier.transcript import slug
from dispatch.rig.rig import CONFIG, P
from dispatch.rig.script import T
from dispatch.rig.transcript import Transcript
from registry.ids import parse_uuid
from tests.acceptance.saying import (
    GATED,
    at_gate,
    complained,
    lease,
    open_gate,
    queued,
    shell_claude,
    spool,
)
from tests.fakes.inside import RIGS

DAY = 86_400


@pytest.fixture(params=RIGS, ids=["process", "inside"])
def rig(request):
    """A rig with one running session; the command is a process of its own, or runs here."""
    with request.param() as made:
        made.door()
        yield made


def configured(rig):
    """The station's postbox as the file has it."""
    told = tomllib.loads(Path(rig.config_file).read_text(encoding="utf-8"))
    return told.get("station", {}).get("carrier_session")


def transcript(rig, postbox):
    """Where the transcript of *postbox* is, or would be."""
    folder = slug(os.path.realpath(f"{rig.state}/postbox"))
    return Path(rig.claude_dir, "projects", folder, f"{postbox}.jsonl")


def made(rig, *words):
    """The id of the postbox that *words* made."""
    said = rig.zdo("postbox", *(words or ("new",)), "--json")
    assert (0, "") == (said.exit, said.err), said
    return said.json["postbox"]


# -- init


def test_init_makes_what_is_missing_and_then_nothing(rig):
    """A second one changes no byte, and says so."""
    rig.configure("")
    said = rig.zdo("init")
    postbox = configured(rig)

    assert (0, "") == (said.exit, said.err)
    assert "(2.1.332)" in said.out
    assert f"{postbox}, made, and written into {rig.config_file}" in said.out
    assert transcript(rig, postbox).exists()
    assert 0 == rig.zdo("kiss", "fable", "hello").exit

    before = Path(rig.config_file).read_bytes()
    again = rig.zdo("init", "--json").json
    assert (postbox, False, "2.1.332") == (again["postbox"], again["made"], again["version"])
    assert before == Path(rig.config_file).read_bytes()


def test_init_says_what_is_missing(rig):
    """No claude, no folder of Claude Code, a broken file: each in one sentence."""
    os.unlink(f"{rig.bin}/claude")
    complained(rig.zdo("init"), "carrier-spawn", 69)

    rig.install_claude()
    said = rig.zdo("init", env={"CLAUDE_CONFIG_DIR": f"{rig.home}/nowhere"})
    complained(said, "config-invalid", 78)
    assert "start claude once" in said.err

    rig.configure("[")
    assert "config-invalid" == rig.zdo("init", "--json").json["class"]


# -- new


def test_a_postbox_is_made_by_a_blocked_prompt(rig):
    """In the folder of carriers, named, without a model turn; the configuration keeps the rest."""
    postbox = made(rig)

    assert CONFIG in Path(rig.config_file).read_text(encoding="utf-8")
    assert postbox == configured(rig) == parse_uuid(postbox)
    (run,) = rig.runs()
    argv = run["argv"][1:]
    assert ["-p", "--session-id", postbox, "--name", "zdo-postbox"] == argv[:5]
    assert ["--tools=", "--", "zdo postbox"] == [argv[7], *argv[-2:]]
    assert os.path.realpath(f"{rig.state}/postbox") == run["cwd"]
    assert "http://127.0.0.1:1" == run["env"]["ANTHROPIC_BASE_URL"]
    assert not {"ZDO_CARRIER_SESSION", "ZDO_CONFIG"} & run["env"].keys()
    assert [] == os.listdir(f"{rig.state}/attempts")
    assert 0 == rig.zdo("kiss", "fable", "hello").exit
    assert postbox == rig.runs()[-1]["argv"][3]


def test_a_target_may_have_its_own(rig):
    """Then it carries for that one alone."""
    postbox = made(rig, "new", "--for", "fable", "--name", "mine")

    targets = tomllib.loads(Path(rig.config_file).read_text(encoding="utf-8"))["targets"]
    assert postbox == targets["fable"]["carrier_session"]
    assert configured(rig) is None
    assert ["--name", "mine"] == rig.runs()[0]["argv"][4:6]
    complained(rig.zdo("postbox", "new", "--for", "nobody"), "target-unknown", 67)


def test_one_that_exists_is_not_replaced_by_the_way(rig):
    """There is a command that says so."""
    postbox = made(rig)

    said = rig.zdo("postbox", "new")

    complained(said, "usage", 64)
    assert "zdo postbox rotate" in said.err
    assert postbox == configured(rig)


@pytest.mark.parametrize(
    ("behaviour", "name", "status", "said"),
    [
        ({"outcome": "unknown-option"}, "carrier-exit", 76, "unknown option"),
        ({"outcome": "empty"}, "carrier-output", 76, "unreadable (empty)"),
        ({"outcome": "success"}, "carrier-output", 76, "was not blocked"),
        ({"outcome": "connection-refused", "hook": "none"}, "carrier-output", 76, "not blocked"),
        ({"session": T}, "carrier-output", 76, f"made session {T}"),
        ({"hook": "none", "outcome": "hook-blocked"}, "carrier-output", 76, "no transcript"),
        ({"kill": [9, "before"]}, "carrier-exit", 76, "ended with -9"),
    ],
)
def test_what_is_not_shown_to_exist_is_not_configured(rig, behaviour, name, status, said):
    """Whatever claude did instead is told; the file is as it was, and nothing runs."""
    rig.install_claude(**behaviour)

    told = rig.zdo("postbox", "new")

    complained(told, name, status)
    assert said in told.err
    assert CONFIG == Path(rig.config_file).read_text(encoding="utf-8")
    assert [] == os.listdir(f"{rig.state}/attempts")


def test_a_claude_that_hangs_is_ended(rig):
    """At the configured time."""
    rig.install_claude(hang_s=60)
    rig.configure("[carrier]\ntimeout_s = 0.5\n")

    complained(rig.zdo("postbox", "new"), "carrier-timeout", 76)

    assert not [entry for entry in rig.log() if entry["event"] == "end"]


def test_a_claude_that_cannot_be_started_is_said(rig):
    """A program that is none."""
    Path(rig.claude).write_text("#!/no/such/interpreter\n", encoding="utf-8")

    complained(rig.zdo("postbox", "new"), "carrier-exit", 76)


def test_what_a_killed_maker_left_is_swept(rig):
    """Its folder, once it is old; one that is at work now is left alone."""
    made(rig)
    old, fresh = (Path(rig.state, "attempts", f"birth-{name}") for name in ("old", "fresh"))
    for folder in (old, fresh):
        folder.mkdir()
    os.utime(old, (1, 1))

    made(rig, "rotate")

    assert (False, True) == (old.exists(), fresh.exists())


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
@pytest.mark.parametrize("verb", ["new", "rotate"])
def test_killed_at_any_moment_the_configuration_names_one_that_exists(rig, verb):
    """The old one or the new one; what was made and is nobody's is listed."""
    if verb == "rotate":
        made(rig)
    for part in range(12):
        process = rig.start("postbox", verb)
        try:
            process.communicate(timeout=0.05 + part * 0.03)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        postbox = configured(rig)
        assert postbox is None or transcript(rig, postbox).exists()
        if verb == "new" and postbox is not None:
            rig.configure(CONFIG)
    listed = {each["session_id"] for each in rig.zdo("postbox", "list", "--json").json["postboxes"]}
    assert {path.stem for path in transcript(rig, P).parent.glob("*.jsonl")} <= listed


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
def test_two_at_once_leave_one_that_is_configured(rig):
    """The other is nobody's, whole, and listed."""
    asked = [rig.start("postbox", "new", "--json") for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in asked]

    assert [0, 0] == [process.returncode for process in asked], ended
    listed = rig.zdo("postbox", "list", "--json").json["postboxes"]
    assert [["station"], []] == [each["used_by"] for each in listed]
    assert {"ready"} == {each["state"] for each in listed}


# -- list, check


def test_every_state_is_seen(rig):
    """Missing, ready, misplaced, open: in the list, and what mends it in the check."""
    rig.configure(f'[station]\ncarrier_session = "{P}"\n')
    assert "missing" in rig.zdo("postbox", "list").out
    said = rig.zdo("postbox", "check")
    complained(said, "unhealthy", 78)
    assert "does not exist: zdo postbox new" in said.err

    Transcript(rig.claude_dir, P, "/somewhere/else").block("zdo postbox", "made")
    assert "zdo postbox rotate" in rig.zdo("postbox", "check").err
    (told,) = rig.zdo("postbox", "list", "--json").json["postboxes"]
    assert ("misplaced", False) == (told["state"], told["in_place"])
    Transcript(rig.claude_dir, P, "/somewhere/else").add({"type": "assistant"})
    assert (0, f"{P}  is ready\n") == (
        (checked := rig.zdo("postbox", "check")).exit, checked.out,
    )  # fmt: skip

    rig.door(session_id=P, name="busy")
    said = rig.zdo("postbox", "check")
    complained(said, "unhealthy", 78)
    assert "is open as pid" in said.err
    with lease(rig):
        assert "carrying" in rig.zdo("postbox", "list").out
    rig.configure('[station]\ncarrier_session = ""\n')
    assert "no postbox is configured" in rig.zdo("postbox", "check").out


def test_a_cold_one_is_told_of_and_kept_young(rig):
    """Claude Code removes what nobody touched for cleanupPeriodDays."""
    path = transcript(rig, made(rig))
    for days, said in ((22, 0), (25, 78), (40, 78)):
        at = time.time() - days * DAY
        os.utime(path, (at, at))
        assert said == rig.zdo("postbox", "check").exit
    Path(rig.claude_dir, "settings.json").write_text('{"cleanupPeriodDays": 365}')
    assert 0 == rig.zdo("postbox", "check").exit
    for odd in ("[]", '{"cleanupPeriodDays": true}', "{"):
        Path(rig.claude_dir, "settings.json").write_text(odd)
        assert 0 == rig.zdo("postbox", "check").exit
    Path(rig.claude_dir, "settings.json").unlink()

    told = rig.zdo("postbox", "check", "--touch", "--json")

    assert (0, None) == (told.exit, told.json["postboxes"][0]["wrong"])
    assert time.time() - path.stat().st_mtime < 60


def test_a_targets_own_is_mended_for_it(rig):
    """The command names the target; a postbox that is another target is no session to look at."""
    rig.configure(
        f'[station]\ncarrier_session = ""\n[targets.fable]\nsession = "{T}"\n'
        f'carrier_session = "{P}"\n[targets.two]\nname = "x"\ncarrier_session = "fable"\n'
        '[targets.three]\nname = "y"\ncarrier_session = "two"\n'
    )

    said = rig.zdo("postbox", "check")

    assert "zdo postbox new --for fable" in said.err
    users = [each["used_by"] for each in rig.zdo("postbox", "list", "--json").json["postboxes"]]
    assert [["fable"], ["two"]] == users


# -- rotate


def test_a_new_one_takes_the_place_of_the_old(rig):
    """The old one stays until it is removed, and its removal says for whom it carried."""
    old = made(rig)

    said = rig.zdo("postbox", "rotate")
    new = configured(rig)

    assert 0 == said.exit
    assert new != old
    assert f"zdo postbox remove {old}" in said.out
    assert f"removed: {old}\n" == rig.zdo("postbox", "remove", old.upper()).out
    assert (False, True) == (transcript(rig, old).exists(), transcript(rig, new).exists())
    said = rig.zdo("postbox", "remove", new)
    assert f"removed: {new}; it carried for station\n" == said.out
    assert configured(rig) is None


def test_only_a_large_one_is_replaced_if_so_asked(rig):
    """By the size of its transcript."""
    old = made(rig)

    said = rig.zdo("postbox", "rotate", "--over", "1")
    assert f"{old} stays: 0.0 MiB, not over 1\n" == said.out
    with open(transcript(rig, old), "a") as file:
        file.write("\n" * (2 << 20))
    assert old != made(rig, "rotate", "--over", "1")


@pytest.mark.parametrize(
    "words",
    [("--over", "nan"), ("--over", "-1"), ("--name", ""), ("--name", "-x"), ("--name", "a\nb")],
)
def test_odd_words_are_refused(rig, words):
    """Before anything is made."""
    complained(rig.zdo("postbox", "rotate", *words), "usage", 64)

    assert [] == rig.runs()


def test_there_need_be_no_old_one(rig):
    """A missing one is replaced too."""
    rig.configure(f'[station]\ncarrier_session = ""\n[targets.fable]\nsession = "{T}"\n')
    assert made(rig, "rotate") == configured(rig)
    assert made(rig, "rotate", "--for", "fable") != configured(rig)


def test_a_carrier_under_way_is_waited_for(rig):
    """Its line is delivered and judged; the new postbox carries what comes after it."""
    old = made(rig)
    claude = Path(rig.claude).read_bytes()
    (first,) = queued(rig, "fable", "one")
    (second,) = queued(rig, "fable", "two")
    shell_claude(rig, GATED)
    relay = rig.start("relay")
    at_gate(rig, "before")
    relay.send_signal(signal.SIGKILL)
    relay.communicate()
    rotation = rig.start("postbox", "rotate")
    with pytest.raises(subprocess.TimeoutExpired):
        rotation.communicate(timeout=0.5)
    assert old == configured(rig)

    for gate in ("before", "after"):
        open_gate(rig, gate)
    # The old lease is free now; the fake that answers births is back.
    Path(rig.claude).write_bytes(claude)
    out, err = rotation.communicate(timeout=60)

    assert (0, "") == (rotation.returncode, err), out
    assert old != configured(rig)
    assert 0 == rig.zdo("relay").exit
    rig.let_time_pass()
    rig.zdo("relay")
    assert ["one", "two"] == rig.lines()
    assert [] == spool(rig)
    assert {"delivered-start", "surfaced"} >= {
        rig.zdo("verify", "--json", each).json["class"] for each in (first, second)
    }


# -- remove


def test_what_is_not_ours_to_remove_stays(rig):
    """Unknown, open, in use, made elsewhere, worked in: each refused, nothing changed."""
    complained(rig.zdo("postbox", "remove", T), "usage", 64)
    postbox = made(rig)
    with lease(rig, postbox):
        complained(rig.zdo("postbox", "remove", postbox), "carrier-busy", 75)
    Transcript(rig.claude_dir, postbox, os.path.realpath(f"{rig.state}/postbox")).add(
        {"type": "assistant", "message": {}}
    )
    assert "turns of a model" in rig.zdo("postbox", "remove", postbox).err

    rig.configure(f'[station]\ncarrier_session = "{P}"\n')
    Transcript(rig.claude_dir, P, "/somewhere/else").block("zdo postbox", "made")
    assert "not made in the folder" in rig.zdo("postbox", "remove", P).err
    rig.door(session_id=P, name="busy")
    assert "is open as pid" in rig.zdo("postbox", "remove", P).err

    assert (P, True) == (configured(rig), transcript(rig, postbox).exists())


def test_one_that_is_gone_already_leaves_the_configuration(rig):
    """There is nothing to unlink then."""
    rig.configure(f'[station]\ncarrier_session = "{P}"\n')

    assert 0 == rig.zdo("postbox", "remove", P).exit

    assert configured(rig) is None


def test_a_folder_that_cannot_be_written_is_said(rig):
    """The state folder is one that zdo refuses."""
    os.mkdir(rig.state, 0o700)
    Path(rig.state, "attempts").touch()

    complained(rig.zdo("postbox", "new"), "spool-unwritable", 73)
