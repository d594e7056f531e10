"""Running Claude Code sessions: one on a terminal, one headless."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pexpect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Json = dict[str, Any]
T = TypeVar("T")
PATIENCE = 20.0
ROWS, COLUMNS = 50, 160


def eventually(what: str, look: Callable[[], T | None], within: float = PATIENCE) -> T:
    """The first truthy answer of *look*; AssertionError with *what* after *within* seconds."""
    end = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < end, f"not within {within} s: {what}"
        time.sleep(0.02)
    return found


class Session(Protocol):
    """A running Claude Code session, as the rig started it."""

    pid: int

    def end(self) -> None:
        """Nothing of it runs afterwards."""


class Terminal:
    """A session on a terminal of its own, drained all the time so that it never blocks."""

    def __init__(self, argv: list[str], *, cwd: Path, env: dict[str, str]):
        self._child = pexpect.spawn(
            argv[0], argv[1:], cwd=str(cwd), env=env, dimensions=(ROWS, COLUMNS), timeout=None
        )
        self.pid: int = self._child.pid
        self.cwd = cwd
        self.screen = b""  # what was drawn last, escapes and all
        self._drain = threading.Thread(target=self._read_on, daemon=True)
        self._drain.start()

    def press(self, keys: str) -> None:
        """Send *keys* as they are."""
        self._child.send(keys)

    def enter(self, text: str) -> None:
        """Type *text*, and Enter once it is drawn: one burst of both would be taken as a paste."""
        self.press(text)
        time.sleep(0.3)
        self.press("\r")

    def alive(self) -> bool:
        """Whether it still runs; a dead one is reaped by asking."""
        return bool(self._child.isalive())

    def end(self) -> None:
        """SIGTERM, and SIGKILL to one that does not obey; reaped either way."""
        for signal_number in (15, 9):
            if not self.alive():
                break
            os.kill(self.pid, signal_number)
            end = time.monotonic() + 5
            while self.alive() and time.monotonic() < end:
                time.sleep(0.02)
        self._drain.join(5)
        self._child.close(force=True)

    def _read_on(self) -> None:
        while True:
            try:
                drawn = self._child.read_nonblocking(1 << 16, timeout=0.5)
            except pexpect.TIMEOUT:
                continue
            except (pexpect.EOF, OSError, ValueError):
                return
            self.screen = (self.screen + drawn)[-(1 << 17) :]


class Headless:
    """A `claude -p` that runs; its prompt comes by argument."""

    def __init__(self, argv: list[str], *, cwd: Path, env: dict[str, str]):
        self.cwd = cwd
        self._child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._child.pid

    def result(self, within: float = 30.0) -> Json:
        """The result object that it prints at its end."""
        out, err = self._child.communicate(timeout=within)
        assert out.strip(), err.decode(errors="replace")
        found: Json = json.loads(out)
        return found

    def end(self) -> None:
        """Killed if it still runs, and reaped."""
        if self._child.poll() is None:
            self._child.kill()
        self._child.communicate(timeout=5)
