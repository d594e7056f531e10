"""What people run around a kiss, with the real binary: init, postbox, selftest, doctor."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.contract.installed import zdo_command
from tests.contract.sessions import eventually

pytestmark = pytest.mark.contract

STRACE = shutil.which("strace")
STEPS = ["target", "postbox", "line", "guard", "end", "traces"]


class Newcomer:
    """Somebody with the home of *rig*, and a zdo that nobody has used yet."""

    def __init__(self, rig, folder):
        self.rig, self.folder = rig, folder
        self.own = {
            "ZDO_CLAUDE_BIN": str(rig.claude),
            "ZDO_STATE_DIR": f"{folder}/state",
            "ZDO_CONFIG": f"{folder}/zdo.toml",
        }

    def zdo(self, *words):
        """Exit status, stdout and stderr of a command."""
        ended = subprocess.run(
            [*zdo_command(), *words],
            env=self.rig.env(**self.own),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def asked(self):
        """How often any session asked a model."""
        return len(self.rig.api.asked())


@pytest.fixture
def newcomer(rig, tmp_path):
    """A zdo of its own; the sessions that the test starts end with it."""
    before = rig.running()
    yield Newcomer(rig, tmp_path)
    rig.end(before)


def processes():
    """What every process on this machine was started as."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found[path.parent.name] = path.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def scratch():
    """The folders of selftests whose owners do not run any more."""
    names = {name for name in os.listdir("/tmp") if name.startswith("zdo-selftest-")}
    return {name for name in names if not os.path.exists(f"/proc/{name.split('-')[2]}")}


def files(*folders):
    """Every path below *folders*."""
    return {str(path) for folder in folders for path in Path(folder).rglob("*")}


def test_from_nothing_to_a_proven_line_in_three_commands(newcomer):
    """init, sessions, kiss: no model turn is asked for, and the line is in the next input."""
    status, out, err = newcomer.zdo("init")
    assert (0, "") == (status, err), out
    assert "(2.1.332)" in out
    target = newcomer.rig.terminal("newcomers")

    status, out, _ = newcomer.zdo("sessions")
    assert (0, True) == (status, "newcomers" in out)
    asked = newcomer.asked()
    status, out, err = newcomer.zdo("kiss", "newcomers", "tests are green")

    assert (0, "") == (status, err)
    session = newcomer.rig.session_id(target)
    assert eventually("the line surfaces", lambda: newcomer.rig.surfaced(session))
    # The target's own turn about the line, and none of anybody else.
    assert newcomer.asked() - asked <= 1


def test_a_postbox_is_replaced_and_removed(newcomer):
    """rotate, kiss through the new one, remove the old one; the real binary agrees throughout."""
    newcomer.rig.terminal("newcomers")
    assert 0 == newcomer.zdo("init")[0]
    asked = newcomer.asked()
    first = json.loads(newcomer.zdo("postbox", "list", "--json")[1])["postboxes"][0]

    status, out, err = newcomer.zdo("postbox", "rotate", "--json")
    second = json.loads(out)["postbox"]

    assert (0, first["session_id"]) == (status, json.loads(out)["old"]), err
    status, out, err = newcomer.zdo("kiss", "--json", "newcomers", "through the new one")
    assert (0, second) == (status, json.loads(out)["carrier"]["result_session_id"]), err
    assert 0 == newcomer.zdo("postbox", "remove", first["session_id"])[0]
    listed = json.loads(newcomer.zdo("postbox", "list", "--json")[1])["postboxes"]
    assert [(second, "ready", True)] == [
        (each["session_id"], each["state"], each["in_place"]) for each in listed
    ]
    assert 0 == newcomer.zdo("postbox", "check", "--touch")[0]
    assert newcomer.asked() - asked <= 1


def test_a_postbox_is_not_seen_among_the_sessions(newcomer):
    """Its name is in no row while it rests: no address names it by accident."""
    assert 0 == newcomer.zdo("init")[0]

    names = [row.get("name") for row in newcomer.rig.rows().values()]
    assert "zdo-postbox" not in names
    assert 67 == newcomer.zdo("kiss", "zdo-postbox", "hello")[0]


def test_a_selftest_leaves_nothing_and_asks_nobody(newcomer):
    """Files, processes and sockets as before; it connects to nothing but the closed port."""
    asked = newcomer.asked()
    rig = newcomer.rig
    there = scratch()
    before = files(rig.home, rig.runtime, rig.scratch), processes()
    log = newcomer.folder / "strace"
    trace = [STRACE, "-f", "-qq", "-e", "trace=connect", "-o", str(log)] if STRACE else []

    ended = subprocess.run(
        [*trace, *zdo_command(), "selftest", "--json"],
        env=rig.env(**newcomer.own),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )

    told = json.loads(ended.stdout)
    assert (0, "Claude Code", "2.1.332") == (ended.returncode, told["stage"], told["version"])
    assert STEPS == [step["name"] for step in told["steps"]]
    assert before[0] == files(rig.home, rig.runtime, rig.scratch)
    left = {pid: argv for pid, argv in processes().items() if pid not in before[1]}
    assert not [argv for argv in left.values() if str(newcomer.folder) in argv], left
    assert not scratch() - there
    assert asked == newcomer.asked()
    if STRACE:
        called = r"sin_port=htons\((\d+)\), sin_addr=inet_addr\(\"([^\"]+)"
        reached = set(re.findall(called, log.read_text(encoding="utf-8")))
        assert reached <= {("1", "127.0.0.1")}, reached


def test_the_doctor_finds_a_real_machine_in_order(newcomer):
    """After init and one kiss nothing is ill."""
    newcomer.rig.terminal("newcomers")
    assert 0 == newcomer.zdo("init")[0]
    assert 0 == newcomer.zdo("kiss", "newcomers", "hello")[0]

    status, out, err = newcomer.zdo("doctor", "--json")

    ill = [item for item in json.loads(out)["items"] if item["ok"] is False]
    assert (0, []) == (status, ill), err
