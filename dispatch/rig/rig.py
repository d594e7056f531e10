"""A whole zdo in one temporary folder: fake claude, fake doors, its own home and state.

The real command is started as a process, with an environment that holds nothing
of the caller's.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

from dispatch.rig import claude
from dispatch.rig.door import FakeDoor
from dispatch.rig.registry import FakeRegistry
from dispatch.rig.script import T
from dispatch.rig.transcript import Transcript

P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
ROOT = Path(__file__).parents[2]

CONFIG = f"""\
[targets.fable]
session = "{T}"

[targets.itself]
session = "{P}"
"""


class Said:
    """What one command said: its status, both streams, and the JSON when there is one."""

    def __init__(self, ended: subprocess.CompletedProcess[str]):
        self.exit, self.out, self.err = ended.returncode, ended.stdout, ended.stderr

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def __repr__(self) -> str:
        return f"Said(exit={self.exit}, out={self.out!r}, err={self.err!r})"


class Rig:
    """A temporary home with a configuration, a fake claude and, on request, fake doors.

    `env` is the environment of everything that runs in it; `home`, `state`, `bin` and
    `claude_dir` are its folders.  All of it is gone after the block, and every process.
    """

    def __init__(self, tree: str | None = None) -> None:
        self.tree = tree or str(ROOT)
        # Socket paths are short by the kernel's rule; a test's own folder is not.
        self.root = tempfile.mkdtemp(prefix="zdo-rig-", dir="/tmp")
        self.home, self.state = f"{self.root}/home", f"{self.root}/state"
        self.claude_dir, self.bin = f"{self.home}/.claude", f"{self.root}/bin"
        self.config_file = f"{self.root}/zdo.toml"
        self.env = {
            "HOME": self.home,
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "ZDO_CONFIG": self.config_file,
            "ZDO_STATE_DIR": self.state,
        }
        self._doors: list[FakeDoor] = []
        self._registry: FakeRegistry | None = None

    def __enter__(self) -> Self:
        for folder in (self.home, self.claude_dir, self.bin):
            os.mkdir(folder, 0o700)
        self.configure(CONFIG)
        self.install_claude()
        self._install_zdo()
        return self

    def __exit__(self, *_: object) -> None:
        self.close_doors()
        if self._registry is not None:
            self._registry.close()
        shutil.rmtree(self.root)

    def close_doors(self) -> None:
        """End every fake session of this rig."""
        while self._doors:
            self._doors.pop().__exit__()

    def configure(self, text: str) -> None:
        """Replace the configuration file."""
        Path(self.config_file).write_text(text, encoding="utf-8")

    @property
    def program(self) -> str:
        """The program `zdo` on the PATH of the rig."""
        return f"{self.bin}/zdo"

    def _install_zdo(self) -> None:
        code = f"import sys\nsys.path.insert(0, {self.tree!r})\n"
        code += "from dispatch.cli.main import main\nmain()\n"
        Path(self.program).write_text(f"#!{sys.executable}\n{code}", encoding="utf-8")
        os.chmod(self.program, 0o700)

    def install_claude(self, **behaviour: Any) -> str:
        """The fake claude on PATH, behaving so from now on; returns its path."""
        self.claude = claude.install(self.bin, **behaviour)
        return self.claude

    def door(self, **script: Any) -> FakeDoor:
        """A running session T, by default idle, whose door surfaces a line at once."""
        door = FakeDoor(self.claude_dir, **({"name": "fable"} | script))
        door.__enter__()
        self._doors.append(door)
        return door

    def lines(self) -> list[str]:
        """Every line that came to a door of this rig, door by door in the order of their start."""
        return [line for door in self._doors for line in door.lines()]

    @property
    def registry(self) -> FakeRegistry:
        """Rows of sessions that nobody answers for, whole or damaged, beside those of the doors."""
        if self._registry is None:
            self._registry = FakeRegistry(self.home)
        return self._registry

    def postbox(self, session_id: str = P) -> str:
        """The transcript of a postbox, as a blocked first prompt leaves it; its path."""
        made = Transcript(self.claude_dir, session_id, os.path.realpath(f"{self.state}/postbox"))
        made.block("zdo postbox", "made")
        return made.path

    def let_time_pass(self) -> None:
        """No kept line waits for a moment any more, and no session had one lately.

        The database is written as zdo writes it, under its lock; without one there is
        nothing to do.
        """
        if not os.path.exists(f"{self.state}/zdo.db"):
            return
        lock = os.open(f"{self.state}/spool.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            link = sqlite3.connect(f"{self.state}/zdo.db", isolation_level=None, timeout=20)
            try:
                link.execute("PRAGMA journal_mode=PERSIST")
                link.execute("BEGIN IMMEDIATE")
                link.execute("UPDATE line SET due_at = 1.5 WHERE state = 10")
                link.execute("DELETE FROM sent")
                link.execute("COMMIT")
            finally:
                link.close()
        finally:
            os.close(lock)

    def runs(self) -> list[dict[str, Any]]:
        """What the fake claude recorded of each of its runs."""
        return claude.log_of(self.claude, "start")

    def log(self) -> list[dict[str, Any]]:
        """Everything that the fake claude recorded, in order."""
        return claude.log_of(self.claude)

    def command(self, *words: str) -> list[str]:
        """The argv of the command, run from *tree*, by default the one that this file stands in."""
        code = "from dispatch.cli.main import main; main()"
        code = f"import sys; sys.path.insert(0, {self.tree!r}); {code}"
        return [sys.executable, "-c", code, *words]

    def start(
        self, *words: str, env: dict[str, str] | None = None, **how: Any
    ) -> subprocess.Popen[str]:
        """The command as a running process."""
        return subprocess.Popen(
            self.command(*words),
            env=self.env | (env or {}),
            text=True,
            **({"stdin": subprocess.DEVNULL, "stdout": -1, "stderr": -1} | how),
        )

    def zdo(
        self,
        *words: str,
        env: dict[str, str] | None = None,
        stdin: str | bytes | None = None,
        **how: Any,
    ) -> Said:
        """What the command said when it ended; *env* adds to the rig's environment."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        ended = subprocess.run(
            self.command(*words),
            env=how.pop("whole_env", self.env | (env or {})),
            input=given if given is not None else b"",
            capture_output=True,
            timeout=how.pop("timeout", 60),
            check=False,
            **how,
        )
        text = subprocess.CompletedProcess(
            ended.args, ended.returncode, ended.stdout.decode(), ended.stderr.decode()
        )
        return Said(text)
