"""A running Claude Code session that is thrown away: its own folders, no credential, no model.

It is headless and waits for words on its stdin, which never come: when zdo ends, however
that is, the pipe closes and the session ends by itself.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile

from carrier.argv import quiet_env
from dispatch.tool_errors import TrialFailed
from registry.rows import read_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from registry.clock import Clock
    from registry.processes import Processes

NAME: Final = "zdo-selftest"
_ROOT: Final = "/tmp"  # noqa: S108 - a socket's path is short by the kernel's rule; 0700 below
_PREFIX: Final = "zdo-selftest-"
_PATIENCE_S: Final = 20.0
_POLL_S: Final = 0.02


class Throwaway:
    """One session of *claude* in a scratch folder of its own; `env` is for whoever writes to it."""

    kind: str = "Claude Code"

    def __init__(self, claude: str, caller: Mapping[str, str], clock: Clock, processes: Processes):
        self._clock, self._processes = clock, processes
        self.claude = claude
        sweep(processes)
        self.root = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_ROOT)
        self._child: subprocess.Popen[bytes] | None = None
        folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_RUNTIME_DIR": "run"}
        for name in (*folders.values(), "work", "claude"):
            os.mkdir(f"{self.root}/{name}", 0o700)
        self.env: Mapping[str, str] = {
            **quiet_env(caller, (), f"{self.root}/claude"),
            **{name: f"{self.root}/{folder}" for name, folder in folders.items()},
            "ZDO_STATE_DIR": f"{self.root}/state",
            "ZDO_CONFIG": f"{self.root}/zdo.toml",
            "ZDO_CLAUDE_BIN": claude,
        }

    def start(self) -> str:
        """The id of the session, once it is idle with its door open; TrialFailed."""
        argv = [
            self.claude, "-p", "--name", NAME, "--input-format", "stream-json",
            "--output-format", "stream-json", "--verbose", "--tools=", "--strict-mcp-config",
            "--setting-sources=",
        ]  # fmt: skip
        own = {name: value for name, value in self.env.items() if not name.startswith("ZDO_")}
        with open(f"{self.root}/said", "wb") as said:
            try:
                self._child = subprocess.Popen(  # noqa: S603 - the program under trial, no shell
                    argv,
                    cwd=f"{self.root}/work",
                    env=own,
                    stdin=subprocess.PIPE,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            except OSError as error:
                raise TrialFailed(f"{self.claude}: {error.strerror or error}") from error
        until = self._clock.monotonic() + _PATIENCE_S
        while self._clock.monotonic() < until and self._child.poll() is None:
            if idle := self._idle():
                return idle[0]
            self._clock.sleep(_POLL_S)
        if (ended := self._child.poll()) is not None:
            raise TrialFailed(f"it ended with {ended} instead of opening a door{self._words()}")
        raise TrialFailed(f"it opened no door within {_PATIENCE_S:g} s{self._words()}")

    def end(self) -> None:
        """The session is gone, and took its row and its socket with it; TrialFailed."""
        self._stop()
        left = [
            os.path.join(folder, name)
            for part in ("run", "claude/sessions")
            for folder, _, names in os.walk(f"{self.root}/{part}")
            for name in names
        ]
        if left:
            raise TrialFailed(f"it left {left[0]} behind")

    def close(self) -> None:
        """Nothing of it is left, however far it came."""
        with contextlib.suppress(TrialFailed):
            self._stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def left(self) -> list[str]:
        """What is there of it now: its folder, and the processes that have it as their own."""
        found = [self.root] if os.path.lexists(self.root) else []
        return found + [f"process {pid}" for pid in _inside(self.root)]

    def _stop(self) -> None:
        child, self._child = self._child, None
        if child is None or child.stdin is None:
            return
        child.stdin.close()
        try:
            child.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise TrialFailed("it did not end when its stdin did") from error

    def _idle(self) -> list[str]:
        """The sessions that are idle in its folder, where there is none but its own."""
        rows = read_rows(f"{self.root}/claude", self._processes).rows
        return [row.session_id for row in rows if row.status == "idle"]

    def _words(self) -> str:
        with open(f"{self.root}/said", encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""


def sweep(processes: Processes) -> None:
    """The scratch folders of makers that were killed are gone."""
    for name in os.listdir(_ROOT):
        pid = name.removeprefix(_PREFIX).partition("-")[0]
        if not name.startswith(_PREFIX) or not pid.isdecimal():
            continue
        path = f"{_ROOT}/{name}"
        with contextlib.suppress(OSError):
            is_ours = os.lstat(path).st_uid == os.geteuid()
            if is_ours and processes.start_token(int(pid)) is None and not _inside(path):
                shutil.rmtree(path, ignore_errors=True)


def _inside(folder: str) -> list[int]:
    """The processes that work in *folder*; none where there is no /proc to tell."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{name}/cwd").startswith(folder):
                        found.append(int(name))
    return found
