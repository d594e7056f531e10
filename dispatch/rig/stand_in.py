"""What the fake `claude` does when it is started: its behaviour beside it says what."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, NoReturn

from dispatch.rig.notebook import ancestors, ignored, open_files, record, stdin
from dispatch.rig.outcomes import OUTCOMES, shape
from dispatch.rig.transcript import Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping

    Played = dict[str, Any]


_BLOCKS = 2  # a hook's exit status


def main(file: str) -> NoReturn:
    """Play the behaviour beside *file*, or the one that FAKE_CLAUDE names."""
    fds = open_files()
    me = os.path.abspath(file)
    with open(os.environ.get("FAKE_CLAUDE", me + ".behaviour.json"), encoding="utf-8") as beside:
        played = json.load(beside)
    if sys.argv[1:] == ["--version"]:
        time.sleep(played["version_s"])
        _write(1, f"{played['version']} (Claude Code)\n".encode())
        os._exit(0)
    record(me, "start", argv=sys.argv, env=dict(os.environ), cwd=os.getcwd(), fds=fds,
            ppid=os.getppid(), ancestors=ancestors(), pgid=os.getpgid(0), sid=os.getsid(0),
            blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            ignored=ignored(), stdin=stdin())  # fmt: skip
    hooks: list[int] = []
    _obey_signals(played, hooks)
    time.sleep(played["before_s"])
    if played["stray"]:
        _leave_stray(me, played["stray"])
    _die(played, "before")
    outcomes = _run_hooks(played, hooks)
    _die(played, "after")
    record(me, "hooks", runs=outcomes)
    time.sleep(played["after_s"])
    if played["hang_s"]:
        _hang(played["hang_s"])
    _leave_transcript(outcomes)
    status = _print_result(played, outcomes)
    record(me, "end", status=status)
    os._exit(status)


def _obey_signals(played: Played, hooks: list[int]) -> None:
    """As the real one: TERM stops a running hook and leaves with 143, HUP with 129."""

    def leave(number: int, _frame: object) -> None:
        for pid in hooks:
            os.kill(pid, signal.SIGTERM)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if played["ignore_term"] else leave)
    signal.signal(signal.SIGHUP, leave)


def _die(played: Played, moment: str) -> None:
    if played["kill"] and played["kill"][1] == moment:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), played["kill"][0])


def _hang(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)


def _leave_stray(me: str, stray: dict[str, Any]) -> None:
    """Start a process that outlives this one; in a session of its own if so wished."""
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        os.read(ready, 1)
        os.close(ready)
        return
    if stray.get("setsid"):
        os.setsid()
    if stray.get("double") and os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if stray.get("ignore_term") else signal.SIG_DFL)
    if not stray.get("holds_stdout"):
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
    record(me, "stray")
    os.write(told, b".")
    os.close(told)
    os.close(ready)
    _hang(stray["s"])
    os._exit(0)


def _run_hooks(played: Played, hooks: list[int]) -> list[Played]:
    """Run the hook as often as wished; what each run said."""
    command, timeout_s = _hook_command(played["hook"])
    if command is None:
        return []
    hook_input = played["hook_input"] | {
        "session_id": _postbox(),
        "cwd": os.getcwd(),
        "prompt": _prompt(),
    }
    stdin = json.dumps(hook_input).encode() if played["hook_stdin"] == "json" else b""
    env = os.environ | played["hook_env"] | {"CLAUDE_PID": str(os.getpid())}
    if played["hook_parallel"]:
        started = [_start_hook(command, env, stdin) for _ in range(played["hook_runs"])]
        hooks += [pid for pid, _ in started]
        _die(played, "during")
        return [_finish_hook(*one, timeout_s) for one in started]
    said = []
    for _ in range(played["hook_runs"]):
        pid, out = _start_hook(command, env, stdin)
        hooks[:] = [pid]
        _die(played, "during")
        said.append(_finish_hook(pid, out, timeout_s))
    hooks.clear()
    return said


def _hook_command(kind: str) -> tuple[str | None, float]:
    if kind == "env":
        return os.environ["ZDO_CARRIER_WRAPPER"], 60
    if kind == "none":
        return None, 0
    with open(_value_of("--settings") or "", encoding="utf-8") as file:
        hook = json.load(file)["hooks"]["UserPromptSubmit"][0]["hooks"][0]
    return hook["command"], hook["timeout"]


def _start_hook(command: str, env: Mapping[str, str], stdin: bytes) -> tuple[int, int]:
    take, give = os.pipe()
    out, said = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, take, 0), (os.POSIX_SPAWN_DUP2, said, 1)]
    defaults = [signal.SIGTERM, signal.SIGPIPE]
    pid = os.posix_spawn(
        "/bin/sh", ["sh", "-c", command], env, file_actions=actions, setsigdef=defaults
    )
    os.close(take)
    os.close(said)
    with contextlib.suppress(BrokenPipeError):  # a hook need not read its input
        os.write(give, stdin)
    os.close(give)
    return pid, out


def _finish_hook(pid: int, out: int, timeout_s: float) -> Played:
    until, said = time.monotonic() + timeout_s, b""
    while select.select([out], [], [], max(until - time.monotonic(), 0))[0]:
        part = os.read(out, 1 << 16)
        if not part:
            break
        said += part
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(out)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"status": status, "stdout": said.decode("utf-8", "replace")}


def _value_of(option: str) -> str | None:
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


def _postbox() -> str:
    return _value_of("--resume") or _value_of("--session-id") or ""


def _prompt() -> str:
    return _value_of("--") or ""


def _blocked_because(said: list[Played]) -> str | None:
    """The reason of a blocked prompt; None when the hook fails open (CONTRACT g)."""
    for one in said:
        if one["status"] == _BLOCKS:
            return "blocked"
        try:
            decision = json.loads(one["stdout"])
        except ValueError:
            continue
        if one["status"] == 0 and decision.get("decision") == "block":
            return str(decision.get("reason", ""))
    return None


def _leave_transcript(said: list[Played]) -> None:
    """A session that is made by a blocked prompt has a transcript from then on."""
    session, reason = _value_of("--session-id"), _blocked_because(said)
    config = os.environ.get("CLAUDE_CONFIG_DIR")
    if session is not None and reason is not None and config is not None:
        Transcript(config, session, os.getcwd()).block(_prompt(), reason)


def _print_result(played: Played, said: list[Played]) -> int:
    outcome, reason = played["outcome"], _blocked_because(said)
    if outcome == "auto":
        outcome = "connection-refused" if reason is None else "hook-blocked"
    _, status, stderr, _ = OUTCOMES[outcome]
    result = played["results"].get(outcome)
    postbox = _postbox()
    _write(2, b"e" * played["flood_stderr"])
    _write(1, b"o" * played["flood_stdout"] + b"\n" * bool(played["flood_stdout"]))
    _write(2, (played["stderr"] or stderr.format(session=postbox)).encode())
    if result is not None:
        result["session_id"] = postbox if played["session"] == "postbox" else played["session"]
        if outcome == "hook-blocked" and reason is not None:
            heading = "UserPromptSubmit operation blocked by hook:"
            result["result"] = f"{heading}\n{reason}\n\nOriginal prompt: {_prompt()}"
        shaped = shape(played["shape"], result)
        for at in range(len(shaped)) if played["trickle_s"] else ():
            _write(1, shaped[at : at + 1])
            time.sleep(played["trickle_s"])
        _write(1, b"" if played["trickle_s"] else shaped)
    return status if played["exit"] is None else played["exit"]


def _write(fd: int, content: bytes) -> None:
    while content:
        content = content[os.write(fd, content) :]
