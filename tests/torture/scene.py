"""A rig with many targets, several postboxes, and servants that run commands of any tree."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dispatch.rig.rig import ROOT, Rig
from tests.torture import carrier, judge
from tests.torture.doors import Doors
from tests.torture.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SERVANT = str(Path(__file__).with_name("servant.py"))
HEAD = "[carrier]\nsettle_s = 0.05\ntimeout_s = 10\n"


def session_of(number: int) -> str:
    """The id of the session behind target *number*."""
    return f"7a000000-0000-4000-8000-{number:012d}"


def postbox_of(number: int) -> str:
    """The id of postbox *number*."""
    return f"90000000-0000-4000-8000-{number:012d}"


def configuration(targets: dict[str, int], postboxes: int) -> str:
    """The file for *targets*, spread over so many postboxes."""
    parts = [HEAD]
    for place, (name, number) in enumerate(targets.items()):
        parts.append(f'[targets.{name}]\nsession = "{session_of(number)}"')
        parts.append(f'carrier_session = "{postbox_of(place % postboxes)}"\n')
    return "\n".join(parts)


class Servant:
    """A process of the harness that runs commands, one at a time."""

    def __init__(self, scene: Scene, role: str, name: str):
        self.role, self.name, self.log = role, name, f"{scene.rig.root}/{name}.said"
        argv = [sys.executable, SERVANT, scene.tree, name, self.log]
        pipe = subprocess.PIPE
        shown = {"TORTURE_SHOWS": os.environ.get("TORTURE_SHOWS", "")}
        self.process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, text=True, env=scene.rig.env | shown
        )

    def order(self, order: str, **told: Any) -> None:
        """Have it do something; `answer` waits for the end."""
        if self.process.stdin is not None:
            self.process.stdin.write(json.dumps({"order": order} | told) + "\n")
            self.process.stdin.flush()

    def answer(self) -> Any:
        """What came of the last order."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise AssertionError(f"{self.name} is gone")
        return json.loads(line)

    def end(self) -> None:
        """It is gone, its streams closed."""
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait(20)

    def entries(self) -> list[dict[str, Any]]:
        """What it wrote down."""
        try:
            with open(self.log, encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []


class Scene:
    """Doors, servants and their folder; a context manager of a process of its own."""

    def __init__(
        self, *, targets: int, postboxes: int, tree: str | None = None, forgets: float = 0.0
    ):
        self.forgets = forgets
        self.tree = tree or str(ROOT)
        self.targets = {f"t{number:02d}": number for number in range(targets)}
        self.postboxes = postboxes
        self.rig = Rig()
        self.hush = f"{self.rig.root}/hush"
        self.servants: list[Servant] = []

    def __enter__(self) -> Self:
        self.rig.__enter__()
        self.rig.configure(configuration(self.targets, self.postboxes))
        self.claude = carrier.install(self.rig.bin)
        sessions = {name: session_of(number) for name, number in self.targets.items()}
        self.doors = Doors(self.rig.claude_dir, sessions, self.forgets)
        self.doors.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        Path(self.hush).touch()
        for servant in self.servants:
            servant.end()
        self.doors.__exit__()
        if os.environ.get("TORTURE_KEEPS"):
            print(f"kept: {self.rig.root}", file=sys.stderr)
            return
        self.rig.__exit__(*error)

    def servant(self, role: str, name: str) -> Servant:
        """A new servant; what it starts is of *role*."""
        self.servants.append(Servant(self, role, name))
        return self.servants[-1]

    def family(self) -> Tree:
        """Everything that runs here."""
        own: dict[int, str | None] = {each.process.pid: each.role for each in self.servants}
        return Tree(own | {self.doors.process.pid: None}, self.claude)

    def said(self) -> list[judge.Said]:
        """Every line that was said, in the order of each sender."""
        return [each for servant in self.servants for each in judge.said_in(servant.entries())]

    def taken(self) -> dict[str, list[str]]:
        """The texts at each door."""
        taken = self.doors.all_taken()
        return {name: [each["text"] for each in entries] for name, entries in taken.items()}

    def overlaps(self) -> int:
        """How often a carrier met another one of its postbox."""
        return sum(entry[0] == "overlap" for entry in carrier.entries(self.claude))

    def carriers(self) -> int:
        """How many carrier runs there were."""
        return sum(entry[0] == "start" for entry in carrier.entries(self.claude))

    def findings(self) -> judge.Findings:
        """What is wrong so far; lines that wait count as lost."""
        return judge.judge(self.said(), self.taken(), self.overlaps())

    def complaints(self) -> list[dict[str, Any]]:
        """Commands that ended neither well nor by our kill."""
        return [e for servant in self.servants for e in servant.entries() if "words" in e]

    def let_time_pass(self) -> None:
        """No line waits for a moment any more; before the first line there is none."""
        try:
            self.rig.let_time_pass()
        except sqlite3.OperationalError:
            return  # nobody has made its tables yet

    def let_days_pass(self) -> None:
        """As `let_time_pass`, and what lies about is two days old."""
        self.let_time_pass()
        then = time.time() - 2 * 86_400
        for each in Path(self.rig.state, "attempts").iterdir():
            os.utime(each, (then, then))
        with contextlib.closing(sqlite3.connect(f"{self.rig.state}/zdo.db")) as link, link:
            link.execute("PRAGMA journal_mode=PERSIST")
            link.execute("UPDATE pulse SET pruned_at = 1.5")

    def lines(self, servant: Servant) -> list[dict[str, Any]]:
        """The lines that are not over, as `zdo spool list` tells."""
        servant.order("once", words=["spool", "list", "--json"])
        told = servant.answer()
        if told["status"] != 0:
            raise AssertionError(f"zdo spool list: {told}")
        listed: list[dict[str, Any]] = json.loads(told["said"])["lines"]
        return listed

    def is_quiet(self) -> bool:
        """Whether no carrier, keeper or wrapper runs."""
        tree = self.family()
        tree.bury()
        return not tree.living().keys() & {"keeper", "carrier", "wrapper", "shell"}

    def wait_until_quiet(self, seconds: float = 40.0) -> None:
        """Returns when nobody of a run is left."""
        until = time.monotonic() + seconds
        while not self.is_quiet():
            if time.monotonic() > until:
                raise AssertionError(f"they do not end: {self.family().living()}")
            time.sleep(0.02)

    def hide(self, names: Collection[str]) -> None:
        """Only the sessions in *names* have no row from now on, as if they did not run."""
        folder = f"{self.rig.claude_dir}/sessions"
        for file in os.listdir(folder):
            name = json.loads(Path(folder, file).read_text(encoding="utf-8"))["name"]
            pid = file.partition(".")[0]
            os.rename(f"{folder}/{file}", f"{folder}/{pid}.{'hidden' if name in names else 'json'}")

    def freeze(self, name: str) -> None:
        """The session *name* lives and does nothing; its door takes what the kernel holds."""
        for file in Path(self.rig.claude_dir, "sessions").glob("*.json"):
            row = json.loads(file.read_text(encoding="utf-8"))
            if row["name"] == name:
                os.kill(row["pid"], signal.SIGSTOP)

    def texts_at(self, door: str) -> Iterator[tuple[str, str]]:
        """Id and text of each line at *door*."""
        for each in self.doors.taken(door):
            yield each["msg_id"], each["text"]
