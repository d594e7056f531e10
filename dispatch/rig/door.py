"""A running session that is none: starts one, changes its script, reads what it recorded."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dispatch.rig.inbox import content_of
from dispatch.rig.script import T
from dispatch.rig.transcript import Transcript, write_file

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = Path(__file__).parents[2]
# Without site: a session is started in a few milliseconds.
_PROGRAM = (
    f"import sys; sys.path.append({str(_ROOT)!r}); from dispatch.rig.session import main; main()"
)


class FakeDoor:
    """One fake session process; a context manager, its script changeable while it runs."""

    def __init__(
        self,
        config: str,
        *,
        socks: str | None = None,
        cwd: str = "/home/u/w",
        env: dict[str, str] | None = None,
        words: tuple[str, ...] = (),
        **script: Any,
    ):
        # What a look at the process finds; the session itself heeds neither.
        self.env, self.words = env, words
        # Socket paths are short by the kernel's rule; a test's own folder is not.
        self.base = tempfile.mkdtemp(prefix="zdo-door-", dir="/tmp")
        self.config, self.cwd, self.script = config, cwd, dict(script)
        self.socks = socks or f"{self.base}/cc-socks"
        self.script_file, self.log = f"{self.base}/script.json", f"{self.base}/log.jsonl"
        self.serial = 0

    def __enter__(self) -> Self:
        self._write_script()
        argv = [
            sys.executable,
            "-S",
            "-c",
            _PROGRAM,
            "--config",
            self.config,
            "--socks",
            self.socks,
        ]
        argv += ["--cwd", self.cwd, "--script", self.script_file, "--log", self.log]
        argv += ["--", *self.words] if self.words else []
        env = None if self.env is None else os.environ | self.env
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, env=env)
        ready = self.process.stdout.readline() if self.process.stdout else ""
        if not ready:
            self._clean_up()
            raise AssertionError("the fake door did not start")
        told = json.loads(ready)
        self.pid, self.socket = int(told["pid"]), str(told["socket"])
        self.row_file, self.token = str(told["row"]), str(told["token"])
        return self

    def __exit__(self, *_: object) -> None:
        self._clean_up()
        for path in [self.row_file, self.socket]:
            if os.path.lexists(path):
                os.unlink(path)

    def _clean_up(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.wait(5)
        # An ear may be taking its own socket away at this moment.
        shutil.rmtree(self.base, ignore_errors=True)

    @property
    def session_id(self) -> str:
        """The id that the script gives the session."""
        return str(self.script.get("session_id", T))

    @property
    def transcript(self) -> str:
        """The path of the session's transcript."""
        return Transcript(self.config, self.session_id, self.cwd).path

    def change(self, **script: Any) -> None:
        """Merge *script* into the script; returns when the process follows it."""
        self.script |= script
        self._write_script()
        self._wait(lambda: self._seen() == self.serial)

    def kill(self) -> None:
        """End it like SIGKILL does: row, key and socket stay."""
        self.process.kill()
        self.process.wait(5)

    def calls(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The recorded connections, once there are *at_least* so many."""
        self._wait(lambda: len(self._log("call")) >= at_least)
        return self._log("call")

    def notices(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The notices that were taken, each with `hung_up`, once there are *at_least* so many."""
        self._wait(lambda: len(self._log("notice")) >= at_least)
        return self._log("notice")

    def lines(self) -> list[str]:
        """The text of every user frame that came, wanted or not."""
        frames = [frame for call in self._log("call") for frame in call["frames"]]
        return [text for frame in frames if (text := content_of(frame)) is not None]

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the transcript."""
        try:
            with open(self.transcript, encoding="utf-8") as file:
                return [json.loads(line) for line in file.read().split("\n") if line]
        except FileNotFoundError:
            return []

    def _log(self, event: str) -> list[dict[str, Any]]:
        try:
            with open(self.log, encoding="utf-8") as file:
                told = [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []
        return [each for each in told if each["event"] == event]

    def _seen(self) -> int:
        try:
            with open(f"{self.script_file}.seen", encoding="ascii") as file:
                return int(file.read())
        except FileNotFoundError:
            return -1

    def _write_script(self) -> None:
        self.serial += 1
        write_file(self.script_file, json.dumps(self.script | {"serial": self.serial}))

    def _wait(self, true: Callable[[], object]) -> None:
        until = time.monotonic() + 10
        while not true():
            if time.monotonic() > until:
                raise AssertionError("the fake door did not get that far")
            time.sleep(0.005)
