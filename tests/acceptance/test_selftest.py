"""`zdo selftest`: a line goes out, its proof comes back, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch.rig.rig import CONFIG, ROOT, Said
from tests.acceptance.saying import complained, wait_for
from tests.fakes.inside import RIGS

STEPS = ["target", "postbox", "line", "guard", "end", "traces"]

# A `claude` that is a session when it is asked to be one, and else what the rig has.
SESSION = """\
#!{python} -S
import os, subprocess, sys
sys.path.append({root!r})
if "stream-json" not in sys.argv:
    os.execv({claude!r}, [{claude!r}, *sys.argv[1:]])
from dispatch.rig.script import T
from dispatch.rig.transcript import write_file
base = os.environ["XDG_RUNTIME_DIR"]
{before}
write_file(base + "/script.json", '{script}')
sys.argv[1:] = ["--config", os.environ["CLAUDE_CONFIG_DIR"], "--socks", base + "/cc-socks",
    "--script", base + "/script.json", "--log", base + "/log", "--cwd", os.getcwd()]
from dispatch.rig.session import main
try:
    main()
finally:
    for name in ("script.json", "script.json.seen", "log"):
        if os.path.exists(base + "/" + name):
            os.unlink(base + "/" + name)
{after}
"""


@pytest.fixture(params=RIGS, ids=["process", "inside"])
def rig(request):
    """A rig; the command is a process of its own, or runs here."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with request.param() as made:
        yield made
    for number, action in before.items():
        signal.signal(number, action)


def with_sessions(rig, *, before="", after="", script='{"name": "x"}'):
    """The claude of *rig* can be a session as well."""
    os.rename(rig.claude, f"{rig.bin}/carrier")
    os.rename(f"{rig.claude}.behaviour.json", f"{rig.bin}/carrier.behaviour.json")
    text = SESSION.format(
        python=sys.executable,
        root=str(ROOT),
        claude=f"{rig.bin}/carrier",
        before=before,
        after=after,
        script=script,
    )
    Path(rig.claude).write_text(text, encoding="utf-8")
    os.chmod(rig.claude, 0o700)


def scratch(pid):
    """The folders of the selftest of process *pid* that are there now."""
    return {name for name in os.listdir("/tmp") if name.startswith(f"zdo-selftest-{pid}-")}


def tried(rig, *words):
    """What `zdo selftest` said, and that it left no folder."""
    if isinstance(rig, RIGS[1]):
        said, pid = rig.zdo("selftest", *words), os.getpid()
    else:
        process = rig.start("selftest", *words)
        out, err = process.communicate(timeout=60)
        said, pid = Said(subprocess.CompletedProcess((), process.returncode, out, err)), process.pid
    assert set() == scratch(pid)
    return said


def test_it_works_with_a_claude(rig):
    """Every step is told with its time; the user's own folders are as they were."""
    with_sessions(rig)

    said = tried(rig)

    assert (0, "") == (said.exit, said.err), said
    assert STEPS == [line.split()[1] for line in said.out.splitlines()[:-1]]
    assert said.out.splitlines()[-1].startswith("selftest: Claude Code 2.1.332 ok in ")
    assert [] == os.listdir(rig.claude_dir)
    assert not os.path.exists(rig.state)
    assert CONFIG == Path(rig.config_file).read_text(encoding="utf-8")


def test_it_works_with_the_rig(rig):
    """As asked: 0, and it says that this was the rig."""
    told = tried(rig, "--rig", "--json")

    assert (0, "the rig", None) == (told.exit, told.json["stage"], told.json["version"])
    assert STEPS == [step["name"] for step in told.json["steps"]]


def test_without_a_claude_the_rig_proves_nothing(rig):
    """It runs, and the status says that Claude Code was not tried."""
    os.unlink(rig.claude)

    said = tried(rig)

    complained(said, "carrier-spawn", 69)
    assert "only the rig" in said.err
    assert "selftest: the rig ok" in said.out


@pytest.mark.parametrize("rig", RIGS[1:], indirect=True)  # its patience is shortened here
@pytest.mark.parametrize(
    ("how", "step", "said"),
    [
        (
            {"before": "sys.exit('x')"},
            "target",
            "ended with 1 instead of opening a door: x",
        ),
        ({"before": "import time; time.sleep(60)"}, "target", "opened no door within 1.5 s"),
        ({"script": '{"accept": "hold"}'}, "line", "door-held"),
        ({"script": '{"accept": "drop"}'}, "line", "not-surfaced"),
        ({"after": "open(base + '/left', 'w')"}, "end", "left "),
        ({"after": "import time; time.sleep(60)"}, "end", "did not end"),
    ],
)
def test_a_step_that_fails_is_named(rig, monkeypatch, how, step, said):
    """With what it met; everything is tidied up all the same."""
    monkeypatch.setattr("dispatch.throwaway._PATIENCE_S", 1.5)
    monkeypatch.setattr("dispatch.selftest.WAIT_S", 1.5)
    with_sessions(rig, **how)

    told = tried(rig, "--json")

    complained_of = next(each for each in told.json["steps"] if not each["ok"])
    assert ("unhealthy", 78, step) == (told.json["class"], told.exit, complained_of["name"])
    assert said in complained_of["detail"]
    assert said in told.err


@pytest.mark.parametrize(
    ("behaviour", "step"),
    [({"hook": "none"}, "postbox"), ({"version": "none", "outcome": "empty"}, "postbox")],
)
def test_a_carrier_that_changed_is_noticed(rig, behaviour, step):
    """As after an upgrade that does no hooks any more."""
    rig.install_claude(**behaviour)
    with_sessions(rig)

    said = tried(rig)

    complained(said, "unhealthy", 78)
    assert f"{step}: no postbox was made" in said.err


def test_what_cannot_be_said_is_a_failure(rig):
    """A full disk behind stdout: said once, and 74."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = rig.start("selftest", "--rig", stdout=full)
        _, err = process.communicate(timeout=60)

    assert (74, 1) == (process.returncode, err.count("zdo: journal-unwritable"))


def test_a_program_that_cannot_be_started_is_said(rig):
    """Not a word of Python."""
    Path(rig.claude).write_text("#!/no/such/interpreter\n", encoding="utf-8")

    said = tried(rig)

    complained(said, "unhealthy", 78)
    assert "target: " in said.err


@pytest.mark.parametrize("rig", RIGS[:1], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_ended_leaves_nothing(rig, number):
    """After SIGKILL the session ends by itself, and the next selftest tidies up."""
    with_sessions(rig, script='{"accept": "drop"}')
    process = rig.start("selftest")
    wait_for(lambda: _has_database(process.pid), "the line")

    process.send_signal(number)
    process.communicate(timeout=30)

    if number == signal.SIGKILL:
        (left,) = scratch(process.pid)
        wait_for(lambda: not _inside(f"/tmp/{left}"), "the end of the session")
        assert 0 == rig.zdo("selftest", "--rig").exit
        rig.zdo("selftest")
    assert set() == scratch(process.pid)
    assert process.returncode == (130 if number != signal.SIGKILL else -9)


def _has_database(pid):
    """Whether the selftest of *pid* has a line on its way."""
    return any(os.path.exists(f"/tmp/{name}/state/zdo.db") for name in scratch(pid))


def _inside(folder):
    """The processes that work in *folder*."""
    listed = subprocess.run(
        ["ls", "-l", *(str(path) for path in Path("/proc").glob("[0-9]*/cwd"))],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return [line for line in listed.splitlines() if folder in line]
