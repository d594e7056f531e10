"""A session that is none: row, key, socket and transcript of a fake Claude Code process.

As a program it registers itself and answers its door by a script (`script`), until stdin
ends.  It keeps the rules that were measured (CONTRACT e, f) and records every connection.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from dispatch.rig.caller import Caller
from dispatch.rig.inbox import Inbox
from dispatch.rig.registration import Registration
from dispatch.rig.script import SCRIPT, TICK_S
from dispatch.rig.transcript import write_file

if TYPE_CHECKING:
    from collections.abc import Callable


class Session:
    """The fake process: its row, its socket and its clockwork."""

    def __init__(self, options: argparse.Namespace):
        self.config, self.script_file, self.log = options.config, options.script, options.log
        self.cwd = options.cwd
        self.script = dict(SCRIPT)
        self.pid = os.getpid()
        self.path = f"{options.socks}/{self.pid}.sock"
        self.callers: dict[int, Caller] = {}
        self.due: list[tuple[float, Callable[[], object]]] = []
        self.kept: list[Caller] = []  # never hung up on
        self.stamp: object = None
        self.registration = Registration(self.config, self.path, self.cwd)
        self.inbox = Inbox(self)
        os.makedirs(options.socks, mode=0o700, exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o700)
        self.listener.listen(64)
        self.listener.settimeout(0)

    def reread(self) -> None:
        """Follow the script file; the row and the key follow the script."""
        found = os.stat(self.script_file)
        stamp = (found.st_ino, found.st_mtime_ns)
        if stamp == self.stamp:
            return
        self.stamp = stamp
        with open(self.script_file, encoding="utf-8") as file:
            told = json.load(file)
        serial = told.pop("serial", 0)
        unknown = told.keys() - SCRIPT.keys()
        if unknown:
            raise SystemExit(f"not in a script: {unknown}")
        self.script = SCRIPT | told
        self.registration.write(self.script)
        write_file(f"{self.script_file}.seen", str(serial))

    def run(self) -> None:
        """Serve until stdin ends."""
        self.reread()
        found = {"row": self.registration.row_file, "token": self.registration.secret}
        ready = {"pid": self.pid, "socket": self.path} | found
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        while True:
            fds = [0, self.listener.fileno(), *self.callers]
            ready_fds, _, _ = select.select(fds, [], [], self._patience())
            if 0 in ready_fds and not os.read(0, 64):
                break
            self.reread()
            if self.listener.fileno() in ready_fds:
                self.accept()
            for fd in [fd for fd in ready_fds if fd in self.callers]:
                if not self.callers[fd].read():
                    self.hang_up(self.callers.pop(fd))
            self.tick()

    def _patience(self) -> float:
        soonest = min((at for at, _ in self.due), default=time.monotonic() + TICK_S)
        return max(0.0, min(TICK_S, soonest - time.monotonic()))

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        ready = [task for task in self.due if task[0] <= now]
        self.due = [task for task in self.due if task[0] > now]
        for _, act in sorted(ready, key=lambda task: task[0]):
            act()
        self.inbox.notices.see_who_hung_up(now)
        for fd, caller in list(self.callers.items()):
            if caller.quiet_until is not None and caller.quiet_until <= now:
                self.hang_up(self.callers.pop(fd))

    def later(self, seconds: float | None, act: Callable[[], object]) -> None:
        """Do *act* after *seconds*; at once for 0, never for None."""
        if seconds == 0:
            act()
        elif seconds is not None:
            self.due.append((time.monotonic() + seconds, act))

    def accept(self) -> None:
        """Let the next caller in, unless the script says to die first."""
        if self.script["die"] == "before-accept":
            self.die(None)
        if self.script["clear_to"] is not None:
            self.script["session_id"] = self.script.pop("clear_to")
            self.script["clear_to"] = None
            self.registration.write(self.script)
        conn, _ = self.listener.accept()
        conn.settimeout(0)
        caller = Caller(conn, self)
        self.callers[conn.fileno()] = caller
        if self.script["die"] == "at-accept":
            self.die(caller)

    def die(self, caller: Caller | None) -> None:
        """End like SIGKILL: row, key and socket stay behind."""
        if caller is not None:
            self.write_log(caller)
        os._exit(9)

    def hang_up(self, caller: Caller) -> None:
        """Close the connection when the script says so, and record it."""
        if self.script["die"] == "after-read":
            self.die(caller)
        self.write_log(caller)
        self.kept.append(caller)
        self.later(self.script["eof_after"], caller.conn.close)

    def write_log(self, caller: Caller) -> None:
        """The record of *caller*'s connection."""
        self.note("call", caller.record)

    def note(self, event: str, told: dict[str, Any]) -> None:
        """One line of the log."""
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event} | told) + "\n")


def main() -> None:
    """Be a session until stdin ends."""
    parser = argparse.ArgumentParser(prog="fake-session")
    for name in ("config", "socks", "script", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--cwd", default="/home/u/w")
    parser.add_argument("words", nargs="*")
    session = Session(parser.parse_args())
    try:
        session.run()
    finally:
        session.registration.remove()
        if os.path.exists(session.path):
            os.unlink(session.path)


if __name__ == "__main__":
    main()
