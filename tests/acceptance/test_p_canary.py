"""P14: a queued line is in the spool, its attempts' folders and the door, and nowhere else."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import P, Rig
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    SHELL,
    at_gate,
    open_gate,
    shell_claude,
    wait_for,
)
from tests.acceptance.test_canary import CANARY, Watch, where
from tests.torture.copies import Break, broken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.rig.rig import Said

U = "a0000022-0000-4000-8000-000000000022"
TWO = CONFIG + f'[targets.other]\nsession = "{U}"\ncarrier_session = "{P}"\n'
LINES = [("fable", f"{CANARY} 1"), ("other", f"{CANARY} 2"), ("fable", f"{CANARY} 3")]

SPOOL = ("state/zdo.db", "state/zdo.db-journal")
DOOR = "home/.claude/projects/"

ARGV_BUILT = Break(
    "dispatch/post.py", "        argv=argv,\n", "        argv=[*argv, timed[0].envelope.line],\n"
)
ENVIRON_BUILT = Break(
    "dispatch/post.py",
    "        env=env,\n",
    '        env={**env, "LINE": timed[0].envelope.line},\n',
)
CRASHES = Break(
    "dispatch/serve.py",
    "    letters = [\n",
    "    raise ValueError([each.line.body for each in ready])\n    letters = [\n",
)


@pytest.fixture
def rig(own_rig) -> Iterator[Rig]:
    """A rig with two targets behind one postbox; whatever is left over in it is ended."""
    own_rig.configure(TWO)
    yield own_rig
    for gate in ("before", "after"):
        open_gate(own_rig, gate)


def queue(rig: Rig, *more: str) -> list[Said]:
    """LINES wait for the relay; they came on stdin, as their sender's argv is his own affair."""
    return [rig.zdo("kiss", "--queue", to, "-", *more, stdin=text) for to, text in LINES]


def texts(lines: list[Said]) -> str:
    """All that was said."""
    return "".join(said.out + said.err for said in lines)


def watched_round(rig: Rig) -> tuple[Watch, str, set[str], set[str]]:
    """A round of LINES under watch: who was seen, what was said, where the line was in between."""
    rig.door(eof_after=0.1)
    rig.door(session_id=U, name="other", eof_after=0.1)
    shell_claude(rig, GATED)
    with Watch(rig) as watch:
        said = texts(queue(rig))
        relay = rig.start("relay", "--json")
        at_gate(rig, "before")
        wait_for(lambda: watch.saw(f"{rig.bin}/claude"), "the sight of the carrier")
        before = where(rig)
        open_gate(rig, "before")
        at_gate(rig, "after")
        after = where(rig)
        wait_for(lambda: watch.saw("carrier.wrapper"), "the sight of the wrapper")
        open_gate(rig, "after")
        out, err = relay.communicate(timeout=20)
    return watch, said + out + err, before, after


def test_p14_a_round_of_queued_lines_shows_them_to_nobody(rig):
    """P14: no argv, no environment, no word of queue or relay; on disk only spool and folders."""
    watch, said, before, after = watched_round(rig)

    assert set() == watch.found
    assert CANARY not in said
    for found, name in ((before, "permit"), (after, "intent")):
        files = {path for path in found if not path.startswith((*SPOOL, DOOR))}
        assert len(LINES) == len(files)
        assert {name} == {os.path.basename(path) for path in files}
    assert [] == [path for path in where(rig) if not path.startswith((*SPOOL, DOOR))]
    assert [] == os.listdir(f"{rig.state}/attempts")


@pytest.mark.parametrize(("fault", "file"), [(ARGV_BUILT, "argv"), (ENVIRON_BUILT, "environ")])
def test_p14_control_a_carrier_that_is_given_the_line_is_seen(fault, file):
    """P14, control: the same watch finds the line in the argv or environment of the carrier."""
    with broken(fault) as copy, Rig(copy) as rig:
        rig.configure(TWO)
        watch, _, _, _ = watched_round(rig)

        assert watch.found, file


def test_p14_a_waiting_line_is_in_the_spool_alone(rig):
    """P14: neither ballast, lock nor any log has it, and no command about it quotes it."""
    told = queue(rig, "--key", "k")[:1] + queue(rig)
    rig.zdo("relay")
    told += [rig.zdo("relay"), rig.zdo("relay", "--json")]
    listed = rig.zdo("spool", "list", "--json")
    own = [each["delivery_id"] for each in listed.json["lines"]]
    told += [listed, rig.zdo("spool", "list")]
    for words in (
        ["spool", "show", own[0]], ["show", own[0]], ["show", "--json", own[0]],
        ["verify", own[0]], ["verify", "--open"], ["verify", "--open", "--json"],
        ["spool", "requeue", own[0]], ["spool", "drop", own[0]], ["spool", "list", "--dead"],
        ["fsck"], ["fsck", "--json"],
    ):  # fmt: skip
        told.append(rig.zdo(*words))

    assert CANARY not in texts(told)
    assert where(rig) <= set(SPOOL)
    assert "state/zdo.db" in where(rig)


@pytest.mark.parametrize(
    ("script", "shell"),
    [
        ({"accept": "hold"}, SHELL % ""),
        ({"accept": "bare"}, "#!/bin/sh\nexit 1\n"),
        ({"accept": "dropped"}, SHELL % ""),
        ({"accept": "bare"}, SHELL % "kill -9 $$"),
        ({"status": "stopped"}, SHELL % ""),
        ({}, "not a program"),
    ],
)
def test_p14_no_failure_of_a_pass_says_the_line(rig, script, shell):
    """P14: held, dropped, killed or never started: passes and what tells of them are silent."""
    rig.door(**script)
    shell_claude(rig, shell)
    told = queue(rig)
    told += [rig.zdo("relay", "--json"), rig.zdo("relay")]
    told += [rig.zdo("spool", "list", "--json"), rig.zdo("verify", "--open", "--json")]

    assert CANARY not in texts(told)
    allowed = (*SPOOL, DOOR, "state/attempts/")
    assert [] == [path for path in where(rig) if not path.startswith(allowed)]


def test_p14_a_crash_of_ours_with_the_line_in_hand_does_not_quote_it():
    """P14: an error that holds the line is told by its kind and its place."""
    with broken(CRASHES) as copy, Rig(copy) as rig:
        rig.configure(TWO)
        rig.door()
        told = queue(rig)

        crashed = rig.zdo("relay", "--json")

        assert "ValueError" in crashed.err + crashed.out
        assert CANARY not in texts([*told, crashed])
        assert where(rig) <= set(SPOOL)


def test_p14_a_damaged_spool_is_moved_and_not_quoted(rig):
    """P14: fsck tells of damage by counts; the line stands in the spool and in what was moved."""
    told = queue(rig)
    with open(f"{rig.state}/zdo.db", "r+b") as file:
        file.seek(20_000)
        file.write(b"\xff" * 3000)

    told += [rig.zdo("fsck"), rig.zdo("fsck", "--json"), rig.zdo("relay"), rig.zdo("spool", "list")]

    assert CANARY not in texts(told)
    allowed = (*SPOOL, "state/corrupt/")
    assert [] == [path for path in where(rig) if not path.startswith(allowed)]


def test_p14_a_queue_that_refuses_a_line_keeps_it_nowhere(rig):
    """P14: refused for its bytes or for its address, the line is nowhere afterwards."""
    for words, text in (
        (["fable", "-"], f"{CANARY}\x1b"),
        (["nobody", "-"], CANARY),
        (["itself", "-"], CANARY),
        (["fable", "-", "--or-queue"], CANARY),
    ):
        said = rig.zdo("kiss", "--queue", *words, stdin=text)
        assert said.exit != 0, words
        assert CANARY not in said.out + said.err
    assert set() == where(rig)


def test_p14_the_watch_sees_what_is_there(rig):
    """P14, control: a process with the line in its argv, and one with it in its environment."""
    for words, env in (([CANARY], {}), ([], {"X": CANARY})):
        argv = ["/bin/sh", "-c", "read never", *words]
        with Watch(rig) as watch:
            pipe = subprocess.PIPE
            with subprocess.Popen(argv, cwd=rig.root, stdin=pipe, env=rig.env | env) as seen:
                wait_for(lambda w=watch, s=seen: s.pid in w.found, "the sight of it")
                seen.kill()
