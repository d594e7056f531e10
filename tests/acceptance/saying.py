"""What every answer of zdo must look like, and small ways to stage a scene."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dispatch.rig.rig import P
from dispatch.rig.script import T
from dispatch.rig.transcript import Transcript

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from dispatch.rig.rig import Rig, Said

OTHER = "a0000014-0000-4000-8000-000000000014"

CONFIG = f"""\
[carrier]
settle_s = 0.05
timeout_s = 20

[targets.fable]
session = "{T}"

[targets.itself]
session = "{P}"
"""

# INTERFACE 5, field by field.
FIELDS: dict[str, tuple[str, ...]] = {
    "": (
        "v", "command", "class", "exit", "state", "proof", "delivery_id", "key", "attempt",
        "sender", "line", "target", "carrier", "receipt", "reason", "advice",
    ),
    "line": ("bytes", "sha256"),
    "target": ("id", "session_id", "pid", "status", "route"),
    "carrier": ("session_id", "result_session_id", "num_turns", "cost_usd", "exit", "wall_ms"),
    "receipt": ("session_id", "msg_id", "door", "at"),
}  # fmt: skip

# What `zdo relay --json` and each line of `zdo spool list --json` hold.
RELAY_FIELDS = (
    "v", "command", "class", "exit", "sender", "reason", "runs", "delivered", "deferred", "open",
    "dead", "regraded", "recovered", "left", "doubtful", "lines",
)  # fmt: skip
SPOOL_FIELDS = (
    "delivery_id", "key", "target", "sender", "state", "class", "reason", "attempts", "bytes",
    "created_at", "due_at", "held_by",
)  # fmt: skip

# What the commands of readers print with --json, and each entry and each sender in it.
EVENT_FIELDS = (
    "id", "at", "level", "kind", "class", "exit", "delivery_id", "key", "sender", "by", "target",
    "target_session_id", "proof", "reason",
)  # fmt: skip
SENDER_FIELDS = ("session_id", "name", "registered_at", "deleted_at", "cursor")
READER_FIELDS = {
    "receipts": ("v", "command", "sender", "order", "events", "next_cursor", "has_more"),
    "senders": ("v", "command", "sender", "senders"),
    "ack": ("v", "command", "class", "exit", "sender", "session_id", "cursor", "previous", "tip"),
    "register": ("v", "command", "class", "exit", "sender", *SENDER_FIELDS, "new"),
    "unregister": ("v", "command", "class", "exit", "sender", *SENDER_FIELDS, "already"),
}
# Of a refusal, what stands in front of what it knows, and what stands behind.
REFUSED_READER = (("v", "command", "class", "exit", "error", "sender"), ("reason", "advice"))

# A stand-in in shell, as USAGE.md shows it; %s is more shell between wrapper and result.
SHELL = """\
#!/bin/sh
echo run >> "$0.runs"
sh -c "$ZDO_CARRIER_WRAPPER" </dev/null >/dev/null
%s
printf '{"type":"result","session_id":"%%s"}\\n' "${SAYS:-$ZDO_CARRIER_SESSION}"
"""

# Waits, before and after the wrapper, for a file that the test makes.
GATED = """\
#!/bin/sh
pass() { echo $$ > "$0.$1-reached"; while [ ! -e "$0.$1" ]; do sleep 0.01; done; }
pass before
sh -c "$ZDO_CARRIER_WRAPPER" </dev/null >/dev/null
pass after
printf '{"type":"result","session_id":"%s"}\\n' "$ZDO_CARRIER_SESSION"
"""


def answered(said: Said) -> dict[str, Any]:
    """The one object on stdout, with every field of the interface."""
    assert "\n" == said.out[-1:], said
    assert 1 == said.out.count("\n"), said
    told = said.json
    for part, names in FIELDS.items():
        held = told[part] if part else told
        missing = [name for name in names if name not in held]
        assert not missing, (part, missing)
    return told


def complained(said: Said, name: str, status: int) -> None:
    """One line on stderr, in the form of the interface, and the right exit."""
    assert (status, name) == (said.exit, _class_in(said)), said
    assert re.fullmatch(rf"zdo: {name}: [^\n]+; [^\n]+\n", said.err), said
    assert "Traceback" not in said.err + said.out


def passed(said: Said, **expected: Any) -> dict[str, Any]:
    """The one object of a pass, with every field and the *expected* ones; its exit is its own."""
    assert 1 == said.out.count("\n"), said
    told = said.json
    assert RELAY_FIELDS == tuple(told), told
    assert ("relay", said.exit) == (told["command"], told["exit"]), said
    assert bool(said.exit) == bool(said.err), said
    assert expected == {name: told[name] for name in expected}, said
    return told


def queued(rig: Rig, address: str, *lines: str, **how: Any) -> list[str]:
    """The delivery ids of *lines*, kept for the relay."""
    found = []
    for line in lines:
        said = rig.zdo("kiss", "--queue", "--json", address, line, *how.get("options", ()))
        told = delivered(said, "queued")
        assert ("queued", "none", None) == (told["state"], told["proof"], told["attempt"])
        found.append(told["delivery_id"])
    return found


def spool(rig: Rig, *words: str) -> list[dict[str, Any]]:
    """The lines that `zdo spool list` shows, each with every field."""
    said = rig.zdo("spool", "list", "--json", *words)
    assert (0, "", 1, "spool") == (said.exit, said.err, said.json["v"], said.json["command"]), said
    lines: list[dict[str, Any]] = said.json["lines"]
    assert all(SPOOL_FIELDS == tuple(line) for line in lines), lines
    return lines


def refused(rig: Rig, said: Said, name: str, status: int, **how: Any) -> dict[str, Any]:
    """A refusal as JSON and on stderr, whose delivery the journal knows afterwards."""
    complained(said, name, status)
    told = answered(said)
    assert (name, status) == (told["class"], told["exit"])
    assert told["reason"], told
    assert told["advice"], told
    if how.get("known", True):
        kept = "delivered-start" if name == "not-surfaced" else name
        assert kept == journal(rig, told["delivery_id"])[-1]
    return told


def delivered(said: Said, name: str = "delivered-start") -> dict[str, Any]:
    """A delivery: exit 0, nothing on stderr, every field."""
    assert (0, "") == (said.exit, said.err), said
    told = answered(said)
    assert name == told["class"], said
    return told


def story(rig: Rig, delivery: str) -> list[dict[str, Any]]:
    """The events of *delivery* as `zdo show` tells them."""
    shown = rig.zdo("show", "--json", delivery)
    assert 0 == shown.exit, shown
    events: list[dict[str, Any]] = shown.json["events"]
    return events


def journal(rig: Rig, delivery: str) -> list[str]:
    """The classes of the events of *delivery*; far cheaper than one more command."""
    database = sqlite3.connect(f"file:{rig.state}/zdo.db?mode=ro", uri=True)
    with contextlib.closing(database):
        asked = "SELECT class FROM event WHERE delivery = ? ORDER BY id"
        found = database.execute(asked, (delivery,)).fetchall()
    assert found, f"the journal does not know {delivery}"
    return [name for (name,) in found]


def shell_claude(rig: Rig, program: str) -> str:
    """The path of *program* as the `claude` on the rig's PATH."""
    path = f"{rig.bin}/claude"
    Path(path + ".new").write_text(program, encoding="utf-8")
    os.chmod(path + ".new", 0o700)
    os.rename(path + ".new", path)
    return path


def shell_runs(rig: Rig) -> int:
    """How often a SHELL stand-in was started."""
    try:
        return Path(f"{rig.bin}/claude.runs").read_text(encoding="ascii").count("run")
    except FileNotFoundError:
        return 0


def wait_for(true: Callable[[], object], what: str = "it", within: float = 10) -> None:
    """Returns when *true* is; an AssertionError after *within* seconds."""
    until = time.monotonic() + within
    while not true():
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.005)


def open_gate(rig: Rig, gate: str) -> None:
    """Let a GATED claude pass *gate*."""
    Path(f"{rig.bin}/claude.{gate}").touch()


def at_gate(rig: Rig, gate: str) -> int:
    """The pid of a GATED claude, once it stands at *gate*."""
    path = Path(f"{rig.bin}/claude.{gate}-reached")
    wait_for(lambda: path.exists() and path.read_text().endswith("\n"), f"gate {gate}")
    return int(path.read_text())


def lease_is_held(rig: Rig, postbox: str = P) -> bool:
    """Whether anybody has the lease on *postbox*."""
    with open(f"{rig.state}/locks/{postbox}.lock", "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@contextlib.contextmanager
def lease(rig: Rig, postbox: str = P) -> Iterator[None]:
    """The lease on *postbox*, held by this process."""
    os.makedirs(f"{rig.state}/locks", 0o700, exist_ok=True)
    os.chmod(rig.state, 0o700)
    fd = os.open(f"{rig.state}/locks/{postbox}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def waits(kiss: subprocess.Popen[str]) -> bool:
    """Whether *kiss* waits for the lease: its database is open, and it sleeps between two looks."""
    status = Path(f"/proc/{kiss.pid}/stat").read_text(encoding="utf-8")
    return status.rpartition(")")[2].split()[0] == "S" and any(
        path.endswith("/zdo.db") for path in opened(kiss.pid)
    )


def opened(pid: int) -> Iterator[str]:
    """What *pid* has open at this moment."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            yield os.readlink(f"/proc/{pid}/fd/{number}")


def accepted(rig: Rig, delivery: str) -> bool:
    """Whether the line *delivery* is on disk."""
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{rig.state}/zdo.db?mode=ro", uri=True)
        ) as db:
            found = db.execute("SELECT 1 FROM line WHERE key = ?", (delivery,)).fetchone()
    except sqlite3.OperationalError:
        return False
    return found is not None


def transcript_of(rig: Rig, session_id: str, cwd: str = "/home/u/w") -> Transcript:
    """The transcript of *session_id*, to be written by the test."""
    return Transcript(rig.claude_dir, session_id, cwd)


def peer(msg_id: str) -> dict[str, Any]:
    """The origin of a user row that came through the door as *msg_id*."""
    return {"kind": "peer", "from": "uds:/tmp/cc-socks/1.sock", "verifiedPeerPid": 1} | {
        "msg_id": msg_id
    }


def normal(run: dict[str, Any], delivery: str) -> tuple[list[str], dict[str, str]]:
    """Argv and environment of *run* with the delivery's id taken out."""
    argv = [word.replace(delivery, "DELIVERY") for word in run["argv"]]
    env = {name: value.replace(delivery, "DELIVERY") for name, value in run["env"].items()}
    return argv, env


def contents(folder: str) -> Iterator[tuple[str, bytes]]:
    """Every plain file below *folder* with its bytes."""
    for path in Path(folder).rglob("*"):
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()


def _class_in(said: Said) -> str:
    found = re.match(r"zdo: ([a-z0-9-]+):", said.err)
    return found[1] if found else json.dumps(said.err)
