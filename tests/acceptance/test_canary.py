"""Law 4: the line is in the spool, the permit and the door, and nowhere else (K13)."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.acceptance.saying import (
    GATED,
    at_gate,
    contents,
    open_gate,
    refused,
    shell_claude,
    wait_for,
)

if TYPE_CHECKING:
    from dispatch.rig.rig import Rig

CANARY = "a-canary-nobody-else-would-write-7f3a"
HERE = ("zdo.db", "zdo.db-journal")


class Watch:
    """Looks at argv and environment of every process, again and again, until it is closed.

    Only those that know of *rig* count: another test may look for its canary meanwhile.
    """

    def __init__(self, rig: Rig) -> None:
        self._root = rig.root.encode()
        self.seen: dict[int, str] = {}
        self.found: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.is_set():
            for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
                self._look_at(pid)

    def _look_at(self, pid: int) -> None:
        content = b""
        for name in ("cmdline", "environ"):
            try:
                part = Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
            if name == "cmdline":
                self.seen[pid] = self.seen.get(pid, "") + part.decode(errors="replace")
            content += part
        if CANARY.encode() in content and self._root in content:
            self.found.add(pid)

    def saw(self, words: str) -> bool:
        """Whether a process was seen with *words* in its argv."""
        return any(words in argv for argv in list(self.seen.values()))


def where(rig: Rig) -> set[str]:
    """The files of the rig that hold the canary, relative to its root."""
    return {
        os.path.relpath(path, rig.root)
        for path, content in contents(rig.root)
        if CANARY.encode() in content
    }


def test_the_line_is_in_no_argv_and_no_environment(rig):
    """K13: neither carrier, wrapper, keeper nor dispatcher shows it while they run."""
    door = rig.door(eof_after=0.2)
    shell_claude(rig, GATED)
    with Watch(rig) as watch:
        kiss = rig.start("kiss", "--json", "fable", "-", stdin=subprocess.PIPE)
        kiss.stdin.write(CANARY)
        kiss.stdin.close()
        kiss.stdin = None
        at_gate(rig, "before")
        wait_for(lambda: watch.saw(f"{rig.bin}/claude"), "the sight of the carrier")
        open_gate(rig, "before")
        wait_for(lambda: watch.saw("carrier.wrapper"), "the sight of the wrapper")
        open_gate(rig, "after")
        out, err = kiss.communicate(timeout=20)

    assert (0, [CANARY]) == (kiss.returncode, door.lines())
    assert set() == watch.found
    assert CANARY not in out + err


def test_before_the_write_the_line_is_in_spool_and_permit_alone(rig):
    """K13: on disk it stands in the database and in the attempt's permit, later its intent."""
    rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "-", stdin=subprocess.PIPE)
    kiss.stdin.write(CANARY)
    kiss.stdin.close()
    kiss.stdin = None

    at_gate(rig, "before")
    (attempt,) = os.listdir(f"{rig.state}/attempts")
    before = where(rig)
    open_gate(rig, "before")
    at_gate(rig, "after")
    after = where(rig)
    open_gate(rig, "after")
    kiss.communicate(timeout=20)

    spool = {f"state/{name}" for name in HERE}
    target = {path for path in after if path.startswith("home/.claude/projects/")}
    assert f"state/attempts/{attempt}/permit" in before
    assert {f"state/attempts/{attempt}/permit"} == before - spool
    assert {f"state/attempts/{attempt}/intent"} == after - spool - target
    assert where(rig) <= spool | target
    assert [] == os.listdir(f"{rig.state}/attempts")


@pytest.mark.parametrize(
    ("script", "behaviour"),
    [
        ({"accept": "hold"}, {}),
        ({"accept": "bare"}, {"outcome": "empty"}),
        ({}, {"hook": "none"}),
        ({}, {"hook": "none", "outcome": "unknown-postbox"}),
        ({"status": "stopped"}, {}),
    ],
)
def test_no_failure_says_the_line(rig, script, behaviour):
    """K13: neither stdout, stderr, the story nor any log holds it, whatever went wrong."""
    rig.door(**script)
    rig.install_claude(**behaviour)

    said = rig.zdo("kiss", "--json", "fable", "-", stdin=CANARY)
    own = said.json["delivery_id"]
    shown = [rig.zdo("show", own), rig.zdo("show", "--json", own)]

    assert said.exit
    assert CANARY not in "".join(each.out + each.err for each in (said, *shown))
    assert CANARY not in str(rig.log())
    allowed = ("state/zdo.db", "state/attempts/", "home/.claude/projects/")
    assert [] == [path for path in where(rig) if not path.startswith(allowed)]


@pytest.mark.parametrize(
    ("text", "name", "status"),
    [
        (f"{CANARY}\x1b", "line-invalid", 65),
        (f"{CANARY}\x00", "line-invalid", 65),
        (f"{CANARY}" * 2000, "line-invalid", 65),
    ],
)
def test_no_complaint_about_a_line_quotes_it(rig, text, name, status):
    """K13: a bad line is told by its offset, and its bytes are kept nowhere."""
    rig.door()

    said = rig.zdo("kiss", "--json", "fable", "-", stdin=text)

    refused(rig, said, name, status)
    assert CANARY not in said.out + said.err
    assert set() == where(rig)


def test_a_key_conflict_quotes_neither_line(rig):
    """K13: both lines of a conflict stay unsaid."""
    rig.door()
    rig.zdo("kiss", "fable", "-", "--key", "k", stdin=f"{CANARY} one")

    said = rig.zdo("kiss", "--json", "fable", "-", "--key", "k", stdin=f"{CANARY} two")

    refused(rig, said, "key-conflict", 65)
    assert CANARY not in said.out + said.err


def test_a_crash_of_ours_does_not_quote_it(rig):
    """K13: bytes on stdin that no encoding allows are told by offset, not by content."""
    said = rig.zdo("kiss", "--json", "fable", "-", stdin=CANARY.encode() + b"\xff")

    told = refused(rig, said, "line-invalid", 65)
    assert f"at byte {len(CANARY)}" in told["reason"]
    assert CANARY not in said.out + said.err


@pytest.fixture
def rig(own_rig):
    """A rig that no other test has left a canary in."""
    return own_rig
