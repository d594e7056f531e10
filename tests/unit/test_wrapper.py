"""The wrapper as a program: one write at most, one decision always, and no word of the line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrier import proof
from carrier.late import read_late
from carrier.proof import Receipt
from dispatch.rig.door import FakeDoor
from tests.fakes.ears import descriptors, ear_of, is_gone, send_away, started_with, the_ear_of
from tests.fakes.envelopes import DELIVERY, P, an_envelope, recorded
from tests.fakes.runs import wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
RUN = "from carrier.wrapper import main; main()"
HOOK = json.loads(recorded("hook-input-userpromptsubmit.json"))
OTHER = "d0000000-0000-4000-8000-000000000002"


class Rig:
    """A target, and attempts whose wrapper can be run."""

    def __init__(self, root: Path, door: FakeDoor):
        self.root, self.door = root, door

    def attempt(self, number: int = 1, **changes: Any) -> str:
        """A folder with a permit."""
        folder = str(self.root / f"{changes.get('delivery_id', DELIVERY)}.{number}")
        os.mkdir(folder, 0o700)
        plain = {"pid": self.door.pid, "claude_dir": self.door.config, "settle_s": 0.1}
        proof.issue(folder, an_envelope(**(plain | changes)))
        return folder

    def env(self, folder: str | None, **more: str) -> dict[str, str]:
        """What the carrier's child gets; coverage's own variables pass."""
        ours = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
        env = ours | {"PATH": os.defpath, "PYTHONPATH": ROOT, "ZDO_CARRIER_DOOR_TARGET": "fable"}
        return env | ({"ZDO_CARRIER_ATTEMPT": folder} if folder else {}) | more

    def run(
        self, folder: str | None, hook: bytes | None = None, program: str = RUN, **more: str
    ) -> subprocess.CompletedProcess[bytes]:
        """One run of the wrapper to its end."""
        given = hook_input() if hook is None else hook
        argv = [sys.executable, "-c", program]
        return subprocess.run(
            argv, env=self.env(folder, **more), input=given, capture_output=True, check=False
        )


def hook_input(**changes: Any) -> bytes:
    """The recorded hook input for P and the knock, with *changes*."""
    return json.dumps(
        HOOK | {"session_id": P, "prompt": f"zdo knock {DELIVERY}"} | changes
    ).encode()


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The reason of the block decision; anything else fails."""
    decision = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert decision.pop("decision") == "block"
    return str(decision.pop("reason"))


def receipt_in(folder: str) -> Receipt:
    """The receipt that the wrapper left."""
    receipt = proof.read_receipt(folder)
    assert isinstance(receipt, Receipt)
    return receipt


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A rig with a running target; no process and no socket of ours is left at the end."""
    (tmp_path / "attempts").mkdir()
    with FakeDoor(str(tmp_path / "claude")) as door:
        made = Rig(tmp_path / "attempts", door)
        yield made
        for folder in os.listdir(made.root):
            if (pid := ear_of(f"{made.root}/{folder}")) is not None:
                send_away(pid)
        wait_for(lambda: started_with(str(made.root)) == [])
        assert {*os.listdir(door.socks)} <= {os.path.basename(door.socket)}


def test_it_writes_leaves_its_receipt_and_blocks(rig: Rig) -> None:
    """Permit, intent, door, receipt, decision."""
    folder = rig.attempt()

    assert said(rig.run(folder)) == f"zdo wrote {DELIVERY}"
    assert rig.door.lines() == ["one line of text"]
    assert sorted(os.listdir(folder)) == [proof.INTENT, proof.RECEIPT]
    receipt = receipt_in(folder)
    assert (receipt.wrote, receipt.eof, receipt.surfaced) == (True, True, True)
    assert (receipt.nonce, receipt.pid) == ("n0nce", rig.door.pid)


def test_a_second_run_does_nothing(rig: Rig) -> None:
    """Same folder, same answer of a blocker, no second line, the receipt untouched."""
    folder = rig.attempt()
    rig.run(folder)
    before = receipt_in(folder)

    assert said(rig.run(folder)) == f"zdo not-written {DELIVERY}"
    assert rig.door.lines() == ["one line of text"]
    assert receipt_in(folder) == before


def test_after_a_withdrawal_the_door_is_never_touched(rig: Rig) -> None:
    """Not even connected to."""
    folder = rig.attempt()
    assert proof.withdraw(folder)

    assert said(rig.run(folder)) == f"zdo not-written {DELIVERY}"
    assert rig.door.calls() == []
    assert os.listdir(folder) == [proof.WITHDRAWN]


def test_wrappers_at_once_write_once(rig: Rig) -> None:
    """Four of them on one permit."""
    folder = rig.attempt()
    argv = [sys.executable, "-c", RUN]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(argv, env=rig.env(folder), stdin=subprocess.DEVNULL, stdout=pipe)
        for _ in range(4)
    ]
    answers = [run.communicate()[0] for run in started]

    assert [b'"decision":"block"' in answer for answer in answers] == [True] * 4
    assert sum(b"zdo wrote" in answer for answer in answers) == 1
    assert rig.door.lines() == ["one line of text"]


@pytest.mark.parametrize("found", ["held", "refused"])
def test_a_notice_is_in_the_receipt(rig: Rig, found: str) -> None:
    """The process that writes is the one that listens; it stays where a line is held."""
    rig.door.change(accept="hold" if found == "held" else "refuse")
    folder = rig.attempt(settle_s=0.5)

    assert said(rig.run(folder)) == f"zdo wrote {DELIVERY}"

    (notice,) = receipt_in(folder).notices
    assert found in (notice.status, notice.status_detail)
    assert [proof.EAR] * (found == "held") == [
        name for name in os.listdir(folder) if name not in (proof.INTENT, proof.RECEIPT)
    ]


def test_a_cleared_target_is_not_written(rig: Rig) -> None:
    """The row names another session by now."""
    folder = rig.attempt()
    rig.door.change(session_id=OTHER)

    assert said(rig.run(folder)) == f"zdo not-written {DELIVERY}"
    assert (receipt_in(folder).found, receipt_in(folder).session_id) == ("door-mismatch", OTHER)
    assert rig.door.calls() == []


@pytest.mark.parametrize(
    ("hook", "more", "why"),
    [
        (hook_input(session_id=OTHER), {}, "another session"),
        (hook_input(session_id="x"), {}, "another session"),
        (hook_input(session_id=7), {}, "another session"),
        (hook_input(), {"ZDO_CARRIER_DOOR_TARGET": "else"}, "another target"),
        (hook_input(), {"ZDO_CARRIER_DOOR_TARGET": ""}, "another target"),
    ],
)
def test_a_run_that_is_not_the_envelopes_does_not_write(
    rig: Rig, hook: bytes, more: dict[str, str], why: str
) -> None:
    """Another session than the postbox, another target than the envelope's."""
    folder = rig.attempt()

    assert said(rig.run(folder, hook, **more)) == f"zdo not-written {DELIVERY}"
    receipt = receipt_in(folder)
    assert (receipt.wrote, receipt.found) == (False, "wrapper-trouble")
    assert why in (receipt.detail or "")
    assert rig.door.calls() == []


def test_an_envelope_for_another_delivery_is_not_written(rig: Rig) -> None:
    """The folder's name and the permit in it disagree."""
    folder = rig.attempt()
    wrong = str(rig.root / f"{OTHER}.1")
    os.rename(folder, wrong)

    rig.run(wrong, hook_input(prompt=f"zdo knock {OTHER}"))

    assert "another delivery" in (receipt_in(wrong).detail or "")
    assert rig.door.calls() == []


@pytest.mark.parametrize(
    "hook",
    [
        b"",
        b"garbage",
        b"\xff\xfe\0",
        b"[]",
        b"{}",
        b"[" * 50_000,
        b'{"prompt":"zdo knock"}',
        b'{"prompt":7}',
        b'{"prompt":"zdo knock %s"}\n' % DELIVERY.encode(),
        b"x" * (2 << 20),
    ],
)
def test_a_knock_without_an_id_is_for_the_given_attempt(rig: Rig, hook: bytes) -> None:
    """An empty stdin, garbage, or a bare knock: the environment names the folder."""
    folder = rig.attempt()

    assert said(rig.run(folder, hook)) == f"zdo wrote {DELIVERY}"
    assert rig.door.lines() == ["one line of text"]


def test_a_knock_for_another_delivery_is_found_beside(rig: Rig) -> None:
    """A carrier that stays alive: the newest attempt with the prompt's id, by number."""
    first = rig.attempt(delivery_id=OTHER)
    rig.attempt(2)
    newest = rig.attempt(10)
    (rig.root / f"{DELIVERY}.x").mkdir()

    assert said(rig.run(first)) == f"zdo wrote {DELIVERY}"
    assert not os.path.exists(f"{newest}/{proof.PERMIT}")
    assert os.path.exists(f"{newest}/{proof.INTENT}")
    assert os.listdir(first) == [proof.PERMIT]


@pytest.mark.parametrize("kind", ["none", "missing", "empty", "torn", "pipe", "file", "noread"])
def test_without_a_readable_permit_it_blocks_and_writes_nothing(rig: Rig, kind: str) -> None:
    """Whatever lies in the permit's place."""
    folder: str | None = str(rig.root / f"{DELIVERY}.1")
    if kind in ("empty", "torn", "pipe", "noread"):
        folder = rig.attempt()
        os.unlink(f"{folder}/permit")
    if kind == "torn":
        Path(f"{folder}/permit").write_bytes(b'{"line":"one line')
    if kind == "pipe":
        os.mkfifo(f"{folder}/permit")
    if kind == "noread":
        os.symlink("permit", f"{folder}/permit")
    if kind == "file":
        Path(str(folder)).write_bytes(b"")
    if kind == "none":
        folder = None

    answer = said(rig.run(folder))

    assert answer.startswith(("zdo not-written", "zdo wrapper-trouble"))
    assert rig.door.calls() == []
    # A permit that cannot be read can still be withdrawn; where there is none, nobody can tell.
    assert (kind in ("torn", "pipe", "noread")) == proof.withdraw(str(folder))


def test_a_receipt_that_cannot_be_left_still_blocks(rig: Rig) -> None:
    """The line is in and nothing says so: the dispatcher will call it a doubt."""
    folder = rig.attempt()
    os.mkdir(f"{folder}/{proof.RECEIPT}")

    assert said(rig.run(folder)).startswith("zdo wrapper-trouble")
    assert rig.door.lines() == ["one line of text"]
    assert os.path.exists(f"{folder}/{proof.INTENT}")


KILL = "os.kill(os.getpid(), 9)"


@pytest.mark.parametrize(
    ("program", "left"),
    [
        (f"import os, carrier.proof as p; p.take = lambda _: {KILL}; {RUN}", [proof.PERMIT]),
        (
            f"import os, carrier.door as d; d.InboxDoor.speak = lambda *_: {KILL}; {RUN}",
            [proof.INTENT],
        ),
        (f"import os, carrier.wrapper as w; w._tell = lambda *_: {KILL}; {RUN}", None),
        (f"import os, carrier.wrapper as w; w._let_go_of = lambda *_: 1 / 0; {RUN}", ["permit"]),
    ],
)
def test_a_child_that_dies_without_a_word_still_blocks(
    rig: Rig, program: str, left: list[str] | None
) -> None:
    """Killed before the permit, before the door, after the receipt; or it cannot even begin."""
    folder = rig.attempt()

    assert said(rig.run(folder, program=program)) == "zdo wrapper-trouble killed"
    assert (left or [proof.INTENT, proof.RECEIPT]) == sorted(os.listdir(folder))
    assert ([] if left else ["one line of text"]) == rig.door.lines()


def test_without_a_process_for_the_door_it_blocks(rig: Rig) -> None:
    """The system refuses the fork: the permit stands, and can be withdrawn."""
    folder = rig.attempt()
    program = (
        "import os\n"
        "def refuse(): raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
        f"os.fork = refuse\n{RUN}"
    )

    assert said(rig.run(folder, program=program)) == "zdo wrapper-trouble BlockingIOError"
    assert rig.door.calls() == []
    assert proof.withdraw(folder)


def forked(rig: Rig, folder: str) -> tuple[subprocess.Popen[bytes], int]:
    """A wrapper whose child is at the door, and the child."""
    argv = [sys.executable, "-c", RUN]
    pipe = subprocess.PIPE
    run = subprocess.Popen(argv, env=rig.env(folder), stdin=subprocess.DEVNULL, stdout=pipe)
    wait_for(rig.door.rows)
    (child,) = (pid for pid in started_with(folder) if pid != run.pid)
    return run, child


@pytest.mark.parametrize("accept", ["surface", "hold"])
def test_a_killed_parent_costs_no_receipt(rig: Rig, accept: str) -> None:
    """The child finishes at the door, in silence; where the line is held, it stays as ever."""
    rig.door.change(accept=accept, eof_after=2.0, hold_then="denied", hold_after=3.0)
    folder = rig.attempt()
    run, child = forked(rig, folder)

    run.kill()

    assert run.communicate()[0] == b""
    # The hook is over at once: nobody waits for its pipe.
    assert proof.read_receipt(folder) is None
    wait_for(lambda: proof.read_receipt(folder))
    assert (receipt_in(folder).wrote, receipt_in(folder).eof) == (True, True)
    if accept == "hold":
        assert child == the_ear_of(folder)
        assert ["held", "denied"] == [each.status for each in wait_for(lambda: read_late(folder))]
    assert is_gone(child)


def test_an_ear_stays_behind_a_held_line(rig: Rig) -> None:
    """Quiet and bare: a session of its own, its sockets, and no word of the line."""
    canary = "c4n4ry-\u00e9-\u2028"
    rig.door.change(accept="hold", hold_then="denied", hold_after=1.5)
    folder = rig.attempt(line=canary)

    assert said(rig.run(folder)) == f"zdo wrote {DELIVERY}"

    ear = the_ear_of(folder)
    assert [ear] == started_with(folder)
    if sys.platform == "linux":
        open_ = descriptors(ear)
        assert [os.devnull] * 3 == [open_.pop(number) for number in range(3)]
        assert {"socket"} == {*open_.values()}
        shown = [Path(f"/proc/{ear}/{name}").read_bytes() for name in ("cmdline", "environ")]
        assert [b"c4n4ry" in each for each in shown] == [False, False]
    assert ear == os.getsid(ear)
    assert os.path.basename(str(receipt_in(folder).reply)) in os.listdir(rig.door.socks)
    assert ["held", "denied"] == [each.status for each in wait_for(lambda: read_late(folder))]
    assert is_gone(ear)
    assert [True] * 2 == [each["hung_up"] for each in rig.door.notices(2)]


AGAIN = (
    "import os, carrier.notices as n\n"
    "def close(self, close=n.Ear.close):\n"
    "    os.kill(os.getpid(), 15)\n"
    "    close(self)\n"
    f"n.Ear.close = close\n{RUN}"
)


@pytest.mark.parametrize("program", [RUN, AGAIN], ids=["once", "again"])
def test_an_ear_goes_when_it_is_told_to(rig: Rig, program: str) -> None:
    """TERM ends it, also one that comes while it leaves; its socket goes, the receipt stands."""
    rig.door.change(accept="hold")
    folder = rig.attempt()
    rig.run(folder, program=program)

    send_away(the_ear_of(folder))

    assert [os.path.basename(rig.door.socket)] == os.listdir(rig.door.socks)
    assert ["held"] == [each.status for each in receipt_in(folder).notices]
    assert read_late(folder) == ()


@pytest.mark.parametrize("number", [0, signal.SIGHUP, signal.SIGINT])
def test_an_ear_outlasts_the_wrappers_time_and_its_terminal(rig: Rig, number: int) -> None:
    """Neither the alarm of the wrapper nor what a terminal sends at its end ends it."""
    rig.door.change(accept="hold", hold_then="expired", hold_after=2.5)
    folder = rig.attempt(wrapper_s=1.5)
    rig.run(folder)
    ear = the_ear_of(folder)

    os.kill(ear, number)

    assert ["held", "expired"] == [each.status for each in wait_for(lambda: read_late(folder))]
    assert is_gone(ear)


def test_who_cannot_sign_in_does_not_stay(rig: Rig) -> None:
    """The keeper would end it: it says so, and the receipt stands."""
    rig.door.change(accept="hold")
    folder = rig.attempt()
    os.mkdir(f"{folder}/{proof.EAR}")

    assert said(rig.run(folder)) == "zdo wrapper-trouble IsADirectoryError"
    assert ["held"] == [each.status for each in receipt_in(folder).notices]
    wait_for(lambda: started_with(folder) == [])


def test_a_held_line_without_a_receipt_has_no_ear(rig: Rig) -> None:
    """Nobody would look for its answer."""
    rig.door.change(accept="hold")
    folder = rig.attempt()
    os.mkdir(f"{folder}/{proof.RECEIPT}")

    assert said(rig.run(folder)).startswith("zdo wrapper-trouble")
    wait_for(lambda: started_with(folder) == [])


@pytest.mark.parametrize(
    "program",
    [
        "import carrier.wrapper as w; w.this_machine = lambda: 1 / 0; w.main()",
        "import carrier.wrapper as w; w.carry = lambda *_: [][0]; w.main()",
        "import sys; sys.modules['carrier.proof'] = None; " + RUN,
        "import sys; sys.modules['registry.rows'] = None; " + RUN,
        "import sys; sys.modules['carrier.door'] = None; " + RUN,
        "import sys; sys.modules['json'] = None; " + RUN,
        "import sys; sys.setrecursionlimit(50); " + RUN,
        "import os; os.listdir = os.rename = lambda *_: 1 / 0; " + RUN,
    ],
)
def test_whatever_breaks_it_blocks(rig: Rig, program: str) -> None:
    """Faults of every kind, injected from outside: a decision, or exit 2."""
    folder = rig.attempt()

    done = rig.run(folder, program=program)

    if done.returncode == 0:
        assert json.loads(done.stdout)["decision"] == "block"
    else:
        assert done.returncode == 2


def test_a_broken_decision_is_exit_2(rig: Rig) -> None:
    """What cuts into the last lines cannot let the prompt through."""
    done = rig.run(None, program="import carrier.wrapper as w; w.block = lambda _: 1 / 0; w.main()")

    assert done.returncode == 2


def test_a_reason_that_is_not_ascii_is_still_a_decision(rig: Rig) -> None:
    """The sentence is built from fixed words; nothing in it can break the JSON."""
    done = rig.run(None, program="from carrier.wrapper import block; block('zdo \u00e9')")

    assert said(done) == "zdo ?"


@pytest.mark.parametrize("how", ["", ">&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full"])
def test_a_stdout_that_takes_nothing_is_exit_2(rig: Rig, how: str) -> None:
    """Broken, closed, or full: the line is delivered all the same, and the prompt blocked."""
    folder = rig.attempt()
    reading, writing = os.pipe()
    command = f'exec "$0" -c "$1" {how}'
    os.close(reading)

    argv = ["/bin/sh", "-c", command, sys.executable, RUN]
    done = subprocess.run(
        argv, env=rig.env(folder), stdin=subprocess.DEVNULL, stdout=writing, check=False
    )
    os.close(writing)

    assert done.returncode == 2
    assert receipt_in(folder).wrote


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_in_the_middle_does_not_stop_it(rig: Rig, number: signal.Signals) -> None:
    """Between write and receipt: it finishes, so that a stop makes no doubt."""
    rig.door.change(eof_after=0.5)
    folder = rig.attempt()
    argv = [sys.executable, "-c", RUN]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=rig.env(folder), stdin=subprocess.DEVNULL, stdout=pipe) as run:
        rig.door.calls(1)
        run.send_signal(number)
        answer = run.communicate()[0]

    assert json.loads(answer)["reason"] == f"zdo wrote {DELIVERY}"
    assert run.returncode == 0
    assert receipt_in(folder).eof


def test_its_time_ends_in_a_receipt(rig: Rig) -> None:
    """A door that never ends: the wrapper's own deadline leaves room to say so."""
    rig.door.change(eof_after=None)
    folder = rig.attempt(wrapper_s=1.0)
    started = time.monotonic()

    assert said(rig.run(folder)) == f"zdo wrote {DELIVERY}"
    assert time.monotonic() - started < 3
    assert (receipt_in(folder).wrote, receipt_in(folder).eof) == (True, False)


def test_its_alarm_ends_in_a_decision(rig: Rig) -> None:
    """When even that hangs, the alarm cuts in, the prompt stays blocked, no receipt lies."""
    folder = rig.attempt(wrapper_s=0.2)
    program = (
        f"import time, carrier.door as d\nd.InboxDoor.speak = lambda *_: time.sleep(30)\n{RUN}"
    )

    assert said(rig.run(folder, program=program)) == "zdo wrapper-trouble OutOfTime"
    assert os.path.exists(f"{folder}/{proof.INTENT}")
    assert proof.read_receipt(folder) is None


def test_it_is_limited_before_it_has_an_envelope(rig: Rig) -> None:
    """A disk that hangs at the permit: the alarm is set from the start."""
    program = (
        "import time, carrier.proof as p, carrier.wrapper as w\n"
        "p.take = lambda _: time.sleep(30)\n"
        "w._LIMIT_S = 0.2\n"
        "w.main()"
    )

    assert said(rig.run(rig.attempt(), program=program)) == "zdo wrapper-trouble OutOfTime"


def test_the_line_is_nowhere_but_at_the_door(rig: Rig) -> None:
    """Not in argv, environment, output or receipt; in the intent and at the door alone."""
    canary = "c4n4ry-\u00e9-\u2028"
    rig.door.change(eof_after=0.3)
    folder = rig.attempt(line=canary)
    argv = [sys.executable, "-c", RUN]
    pipe = subprocess.PIPE
    run = subprocess.Popen(
        argv, env=rig.env(folder), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    (call,) = rig.door.calls(1)
    shown = [b"", b""]
    if sys.platform == "linux":
        shown = [Path(f"/proc/{run.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
    out, err = run.communicate()

    assert rig.door.lines() == [canary]
    assert call["ancestry"][1]["pid"] == run.pid  # the wrapper, whose child writes
    where = [*shown, out, err, Path(f"{folder}/{proof.RECEIPT}").read_bytes()]
    assert [b"c4n4ry" in each for each in where] == [False] * 5
    assert not any("c4n4ry" in " ".join(step["argv"]) for step in call["ancestry"])


def test_its_ancestors_are_recorded_at_the_door(rig: Rig) -> None:
    """It is the child of whoever ran it, which a test of the whole kiss builds on."""
    rig.run(rig.attempt())
    (call,) = rig.door.calls(1)

    assert call["ancestry"][2]["pid"] == os.getpid()


HEAVY = {
    "socket", "typing", "dataclasses", "pathlib", "subprocess", "logging", "asyncio", "shutil",
    "tempfile", "uuid", "datetime", "argparse", "pydantic", "typer", "filelock", "tomllib",
    "sqlite3", "inspect", "contextlib", "threading", "selectors",
}  # fmt: skip


def test_its_imports_are_few(rig: Rig) -> None:
    """A kiss waits for its start: nothing heavy is in its child after a whole delivery."""
    folder = rig.attempt()
    program = (
        f"import sys, os; sys.path.insert(0, {ROOT!r})\n"
        "import carrier.wrapper as w\n"
        "def tell(told, said, tell=w._tell):\n"
        "    tell(told, ' '.join([said, *sys.modules]))\n"
        "def block(said):\n"
        "    os.write(1, '\\n'.join([said, *sys.modules]).encode())\n"
        "    os._exit(0)\n"
        "w._tell, w.block = tell, block\n"
        "w.main()"
    )
    argv = [sys.executable, "-IS", "-c", program]
    done = subprocess.run(
        argv, env=rig.env(folder), input=hook_input(), capture_output=True, check=True
    )

    answer, *of_the_parent = done.stdout.decode().split("\n")
    assert answer.startswith(f"zdo wrote {DELIVERY} ")
    of_the_child = answer.split(" ")[3:]
    assert "carrier.door" in {*of_the_child} - {*of_the_parent}
    assert HEAVY.intersection(of_the_child) == set()
