"""The rigs' own parts: what a judge that sees nothing would prove."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dispatch.rig.transcript import Transcript
from tests.torture import carrier, powercut
from tests.torture.copies import ROOT, Break, broken
from tests.torture.crowds import MISCHIEF, tamper
from tests.torture.doors import CWD, Doors
from tests.torture.judge import Said, judge
from tests.torture.killer import GAPS, Killer
from tests.torture.luck import luck
from tests.torture.tree import Tree, children, is_possible

on_linux = pytest.mark.skipif(not is_possible(), reason="this kernel lists no children")

A, B, C = (Said("s", "t", text, 0) for text in ("a", "b", "c"))


@pytest.mark.parametrize(
    ("said", "taken", "kind"),
    [
        ([A, B, C], {"t": ["a", "b", "c"]}, None),
        ([A, B, C], {"t": ["a", "c"]}, "lost"),
        ([A, B], {"t": ["a", "b", "a"]}, "doubled"),
        ([A], {"t": [], "u": ["a"]}, "astray"),
        ([A, B, C], {"t": ["a", "c", "b"]}, "misplaced"),
        ([A], {"u": ["a"]}, "astray"),
        ([A], {"t": ["a", "x"]}, "astray"),
        ([Said("s", "t", "a", 76)], {"t": ["a"]}, "denied"),
        ([Said("s", "t", "a", 3)], {"t": ["a"]}, None),
        ([Said("s", "t", "a", -9)], {"t": ["a"]}, None),
        ([Said("s", "t", "a", -9)], {"t": []}, None),
        ([Said("s", "t", "a", -9)], {"t": ["a", "a"]}, "doubled"),
        ([A, Said("r", "t", "z", 0), B], {"t": ["z", "a", "b"]}, None),
        ([Said("s", "t", each, 0, ordered=False) for each in "ab"], {"t": ["b", "a"]}, None),
    ],
)
def test_the_judge_names_each_broken_promise(said, taken, kind):
    """One kind of wrong for each; what was killed before its answer may be there once or not."""
    found = judge(said, taken)

    kinds = ("lost", "doubled", "misplaced", "astray", "denied")
    assert ({kind} - {None}) == {each for each in kinds if getattr(found, each)}
    assert (kind is None) is found.are_none


def test_an_overlap_alone_is_a_broken_promise():
    """Two carriers of one postbox at a time count, also when no line suffered."""
    assert not judge([A], {"t": ["a"]}, overlaps=1).are_none


def say(row, lines):
    """Write *lines*, each an id and a text, into the door of *row*, and wait for its end."""
    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(row["messagingSocketPath"])
        for own, text in lines:
            frame = {"type": "user", "msg_id": own, "from": "uds:/tmp/x", "message": text}
            frame |= {"session_id": row["sessionId"], "message": {"role": "user", "content": text}}
            conn.sendall(carrier_json(frame))
        conn.shutdown(socket.SHUT_WR)
        assert b"" == conn.recv(1)


def carrier_json(value):
    """*value* as one line."""
    import json

    return json.dumps(value).encode() + b"\n"


def rows_of(folder):
    """The rows of running sessions by name."""
    import json

    files = Path(folder, "sessions").glob("*.json")
    rows = [json.loads(each.read_text(encoding="utf-8")) for each in files]
    return {row["name"]: row for row in rows}


def test_a_door_writes_down_at_once_and_surfaces_in_order_after_a_while(tmp_path):
    """Nothing is recognised: what comes twice is there twice, in the order of its coming."""
    own = "7a000000-0000-4000-8000-00000000000"
    lines = [(f"{n % 20:08d}-0000-4000-8000-000000000000", f"line {n % 20}") for n in range(25)]
    with Doors(str(tmp_path), {"one": own + "1", "two": own + "2"}) as doors:
        rows = rows_of(tmp_path)
        say(rows["one"], lines)
        say(rows["two"], lines[:1])
        assert [text for _, text in lines] == [each["text"] for each in doors.taken("one")]
        assert 1 == len(doors.taken("two"))
        path = Path(Transcript(str(tmp_path), own + "1", CWD).path)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            there = path.read_text(encoding="utf-8") if path.exists() else ""
            rows_there = [row for row in there.splitlines() if '"msg_id"' in row]
            if len(rows_there) == len(lines):
                break
            time.sleep(0.02)
        order = [next(own for own, _ in lines if own in row) for row in rows_there]
        assert [own for own, _ in lines] == order
    assert [] == list(Path(tmp_path, "sessions").glob("*.sock"))


def test_a_door_drops_a_line_for_another_session(tmp_path):
    """The pin of the frame is heeded, as the real one does."""
    with Doors(str(tmp_path), {"one": "7a000000-0000-4000-8000-000000000001"}) as doors:
        row = rows_of(tmp_path)["one"] | {"sessionId": "7a000000-0000-4000-8000-000000000009"}
        say(row, [("a", "x")])
        assert [] == doors.taken("one")


POSTBOX = "90000000-0000-4000-8000-000000000000"


def start_carrier(program, wrapper):
    """A run of the fake at *program* through POSTBOX."""
    argv = [program, "-p", "--resume", POSTBOX, "--", "zdo knock x"]
    env = {"PATH": "/usr/bin:/bin", "ZDO_CARRIER_WRAPPER": wrapper}
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, pass_fds=())


def test_the_carrier_says_when_it_meets_another_of_its_postbox(tmp_path):
    """The second one writes it down; after the first is gone nobody does."""
    program = carrier.install(str(tmp_path))
    runs = [start_carrier(program, 'sleep 0.3; echo \'{"decision":"block"}\'') for _ in range(2)]
    said = [run.communicate(timeout=10)[0] for run in runs]
    start_carrier(program, "true").communicate(timeout=10)

    assert all(POSTBOX.encode() in each and b'"blocked"' in each for each in said)
    assert 1 == [entry[0] for entry in carrier.entries(program)].count("overlap")
    assert 3 == [entry[0] for entry in carrier.entries(program)].count("end")


@on_linux
def test_the_carriers_hook_has_a_session_of_its_own_and_no_descriptor_of_ours(tmp_path):
    """As the real one's: a lease that reached the carrier does not reach the hook."""
    program = carrier.install(str(tmp_path))
    told = tmp_path / "told"
    low = os.open(tmp_path / "lease", os.O_RDWR | os.O_CREAT)
    # Of a runner without a stdin it would be the hook's own.
    fd = fcntl.fcntl(low, fcntl.F_DUPFD, 10)
    os.close(low)
    hook = f"ls -l /dev/fd/ > {told}; ps -o sid= -p $$ >> {told}; echo $$ >> {told}"
    argv = [program, "-p", "--resume", POSTBOX, "--", "x"]
    env = {"PATH": "/usr/bin:/bin", "ZDO_CARRIER_WRAPPER": hook}
    subprocess.run(argv, env=env, pass_fds=(fd,), check=True, stdout=subprocess.DEVNULL)
    os.close(fd)

    *listed, sid, pid = told.read_text().split("\n")[:-1]
    assert "lease" not in "".join(listed)
    assert sid.strip() == pid


def test_a_carrier_that_is_to_fail_runs_no_hook(tmp_path):
    """The chance of 256 in 256 is certainty."""
    program = carrier.install(str(tmp_path))
    Path(program + carrier.FAILS).write_text("256", encoding="ascii")

    run = start_carrier(program, f"touch {tmp_path}/ran")

    assert (b"", 1) == (run.communicate(timeout=10)[0], run.returncode)
    assert not (tmp_path / "ran").exists()


SERVANT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
sys.stdin.read()
child.kill()
child.wait()
"""


@on_linux
def test_the_tree_tells_who_is_what_and_the_killer_ends_it():
    """By what their argv says; a servant's own child has the servant's role."""
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", SERVANT]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as servant:
        try:
            child = int(servant.stdout.readline())
            # What else the tests of this process have started is none of its servants.
            others = dict.fromkeys(children(os.getpid()))
            tree = Tree(others | {servant.pid: "relay"}, "/nowhere/claude")
            # The kernel's list of children may miss one while others come and go.
            until = time.monotonic() + 10
            while tree.living() != {"relay": [child]} and time.monotonic() < until:
                time.sleep(0.01)
            assert {"relay": [child]} == tree.living()
            assert "carrier" == tree._role(["py", "-IS", "/nowhere/claude"], "keeper")
            assert "wrapper" == tree._role(["py", "-c", "from carrier.wrapper import"], "keeper")
            assert "shell" == tree._role(["sh", "-c", "py carrier.wrapper"], "keeper")
            assert child in tree.below(servant.pid)
            killer = Killer(tree, luck(1))
            killer.kill(1, 5.0, lambda: True)
            assert {"relay": 1} == dict(killer.kills)
            until = time.monotonic() + 10
            while tree.living() and time.monotonic() < until:
                time.sleep(0.01)
            assert {} == tree.living()
        finally:
            servant.stdin.close()
            servant.wait(10)


def test_the_killers_gaps_are_as_long_as_they_say():
    """Between 4 ms and 0.7 s, most of them below 60 ms."""
    killer = Killer(Tree({}, ""), luck(7))
    gaps = [killer._gap() for _ in range(2000)]

    assert (True, True) == (min(gaps) >= 0.004, max(gaps) <= 0.7)
    assert 0.6 < sum(gap < 0.060 for gap in gaps) / len(gaps) < 0.72
    assert 1.0 == pytest.approx(sum(share for share, _, _ in GAPS))


@on_linux
@pytest.mark.parametrize("kind", MISCHIEF)
def test_what_is_done_to_a_lock_file_is_done(tmp_path, kind):
    """Each kind leaves another thing at the path, and the victim of a link untouched."""
    lock, victim = tmp_path / "lock", tmp_path / "victim"
    lock.write_text("", encoding="ascii")
    victim.write_text("v", encoding="ascii")
    inode = lock.stat().st_ino

    kept = tamper(kind, str(lock), str(victim))

    there = lock.lstat() if os.path.lexists(lock) else None
    assert (kind == "nothing") is (there is not None and there.st_ino == inode)
    assert (kept is not None) is (kind in ("symlink", "fifo", "hard-link", "folder"))
    if kept is not None:
        assert inode == os.lstat(kept).st_ino


def test_a_break_that_no_longer_fits_is_an_error():
    """A control that changes nothing would prove nothing."""
    with pytest.raises(AssertionError, match="does not stand once"):
        broken(Break("registry/ids.py", "no such words", "")).__enter__()


def test_a_broken_copy_differs_in_that_one_place():
    """And the tree itself is not touched."""
    here = Path(ROOT, "registry", "clock.py").read_text(encoding="utf-8")
    with broken(Break("registry/clock.py", "return time.time()", "return 0.0")) as copy:
        there = Path(copy, "registry", "clock.py").read_text(encoding="utf-8")
        assert here.replace("return time.time()", "return 0.0") == there
        assert Path(copy, "registry", "ids.py").exists()
    assert not Path(copy).exists()
    assert here == Path(ROOT, "registry", "clock.py").read_text(encoding="utf-8")


def test_a_machine_that_cannot_cut_power_says_why():
    """One sentence, or None; never a crash."""
    why = powercut.impossible()

    assert why is None or re.fullmatch(r"[^\n]{10,300}", why)
