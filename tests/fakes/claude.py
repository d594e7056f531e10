"""A fake `claude`: an executable that records how it was started and plays any outcome.

`install` puts a copy with its behaviour beside it, so it needs nothing of the
environment; `log_of` reads what it wrote.  Results are recorded ones of 2.1.332 with
another session_id.  By default it does as the real one: runs the hook, prints
`hook-blocked` when the hook decided so, else fails at the closed port.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

# Every key of a behaviour with its default.
DEFAULTS = {
    "outcome": "auto",  # auto, or one of OUTCOMES
    "session": "postbox",  # what the result says: the resumed session, or this text
    "exit": None,  # over the outcome's own status
    "shape": "plain",  # one of SHAPES
    "hook": "settings",  # settings: the command of --settings; env: $ZDO_CARRIER_WRAPPER; none
    "hook_stdin": "json",  # json, empty
    "hook_runs": 1,
    "hook_parallel": False,
    "before_s": 0.0,  # before the hook
    "after_s": 0.0,  # between hook and result
    "kill": None,  # [signal, "before" | "during" | "after"]: how it dies, relative to the hook
    "hang_s": 0.0,  # after the hook, instead of a result
    "ignore_term": False,
    "stray": None,  # {"s": seconds, "setsid", "double", "ignore_term", "holds_stdout"}
    "flood_stdout": 0,  # bytes of noise before the result
    "flood_stderr": 0,
    "trickle_s": 0.0,  # between the bytes of the result
    "stderr": None,  # over the outcome's own text
}

# CONTRACT b, row by row: recorded result (None: empty stdout), status, stderr, changes.
OUTCOMES = {
    "success": ("success", 0, "", {}),
    "hook-blocked": ("hook-blocked", 0, "", {}),
    "max-turns": ("error-max-turns", 1, "", {}),
    "max-turns-without-errors": ("error-max-turns", 1, "", {"errors": []}),
    "two-turns": ("success", 0, "", {"num_turns": 2}),
    "permission-denied": ("permission-denied", 0, "", {}),
    "absent-tool": ("permission-denied", 0, "", {"permission_denials": []}),
    "max-budget": ("error-max-budget", 1, "", {}),
    "api-400": ("api-error-529", 1, "", {"api_error_status": 400}),
    "api-401": ("api-error-401", 1, "", {}),
    "api-403": ("api-error-401", 1, "", {"api_error_status": 403}),
    "api-429": ("api-error-529", 1, "", {"api_error_status": 429}),
    "api-500": ("api-error-529", 1, "", {"api_error_status": 500}),
    "api-529": ("api-error-529", 1, "", {}),
    "connection-refused": ("connection-refused", 1, "", {}),
    "sigint-during-hook": ("sigint-during-hook", 0, "", {}),
    "slash-clear": ("slash-clear", 0, "", {}),
    "over-the-cap": ("success", 0, "", {"num_turns": 73}),
    "sigint": (None, 0, "", {}),
    "empty": (None, 0, "", {}),
    "empty-failed": (None, 1, "", {}),
    "sigterm": (None, 143, "", {}),
    "sighup": (None, 129, "", {}),
    "unknown-postbox": (None, 1, "No conversation found with session ID: {session}\n", {}),
    "malformed-id": (
        None,
        1,
        "{session} is not a UUID and does not match any session title.\n",
        {},
    ),
    "in-use": (None, 1, "Error: Session ID {session} is already in use.\n", {}),
    "unknown-option": (None, 1, "error: unknown option '--no-such-flag'\n", {}),
    "cwd-deleted": (None, 1, "The current directory no longer exists\n", {}),
}

SHAPES = (
    "plain", "pretty", "banner", "bom", "crlf", "log-lines", "halves", "trailing", "array",
    "stream", "half", "twice", "usage-limit", "not-utf8", "same-line",
)  # fmt: skip

_GOLDEN = os.path.join(os.path.dirname(__file__), "..", "golden", "claude-code-2.1.332")
_HOOK_ENV = "hook:UserPromptSubmit"


def golden(name):
    """The recorded file *name* of 2.1.332, parsed."""
    with open(os.path.join(_GOLDEN, f"{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def install(folder, name="claude", **behaviour):
    """The path of a fresh fake in *folder* that behaves so; an older one of the name goes."""
    unknown = behaviour.keys() - DEFAULTS.keys()
    shape, outcome = behaviour.get("shape", "plain"), behaviour.get("outcome", "auto")
    if unknown or shape not in SHAPES or outcome not in ("auto", *OUTCOMES):
        raise TypeError(f"the fake cannot behave so: {unknown or shape + ' ' + outcome}")
    path = os.path.join(str(folder), name)
    needed = ("hook-blocked", "connection-refused") if outcome == "auto" else (outcome,)
    recorded = {one: OUTCOMES[one][0] for one in needed}
    played = DEFAULTS | behaviour
    played["results"] = {
        one: golden(f"result-{file}") | OUTCOMES[one][3] for one, file in recorded.items() if file
    }
    played["hook_input"] = golden("hook-input-userpromptsubmit")
    played["hook_env"] = golden("child-env")[_HOOK_ENV]["env"]
    with open(path + ".behaviour.json", "w", encoding="utf-8") as file:
        json.dump(played, file)
    with open(__file__, encoding="utf-8") as source:
        program = f"#!{sys.executable} -IS\n{source.read()}"
    # Renamed into place: a running copy must not be written to.
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(program)
    os.chmod(path + ".new", 0o700)
    os.rename(path + ".new", path)
    return path


def log_of(path, event=None):
    """What the fake at *path* recorded, in order: all, or the entries of one *event*."""
    try:
        with open(path + ".log.jsonl", encoding="utf-8") as file:
            entries = [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
    return [one for one in entries if event in (None, one["event"])]


def main():
    """Play the behaviour beside this file, or the one that FAKE_CLAUDE names."""
    fds = _open_files()
    me = os.path.abspath(__file__)
    with open(os.environ.get("FAKE_CLAUDE", me + ".behaviour.json"), encoding="utf-8") as file:
        played = json.load(file)
    _record(me, "start", argv=sys.argv, env=dict(os.environ), cwd=os.getcwd(), fds=fds,
            ppid=os.getppid(), ancestors=_ancestors(), pgid=os.getpgid(0), sid=os.getsid(0),
            blocked=sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
            ignored=_ignored(), stdin=_stdin())  # fmt: skip
    hooks = []
    _obey_signals(played, hooks)
    time.sleep(played["before_s"])
    if played["stray"]:
        _leave_stray(me, played["stray"])
    _die(played, "before")
    outcomes = _run_hooks(played, hooks)
    _die(played, "after")
    _record(me, "hooks", runs=outcomes)
    time.sleep(played["after_s"])
    if played["hang_s"]:
        _hang(played["hang_s"])
    status = _print_result(played, outcomes)
    _record(me, "end", status=status)
    os._exit(status)


def _record(me, event, **more):
    entry = {"event": event, "pid": os.getpid(), "at": time.time(), **more}
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    fd = os.open(me + ".log.jsonl", flags, 0o600)
    os.write(fd, json.dumps(entry).encode() + b"\n")
    os.close(fd)


def _open_files():
    """What every open descriptor is; the one of the listing itself is closed again."""
    found = {}
    for number in os.listdir("/dev/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            try:
                found[number] = str(os.fstat(int(number)).st_ino)
            except OSError:
                continue
    return found


def _ancestors():
    """The pids above this one, as far as /proc tells."""
    found, pid = [], os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            break
        found.append(pid)
    return found


def _ignored():
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGQUIT)
    return [int(number) for number in numbers if signal.getsignal(number) == signal.SIG_IGN]


def _stdin():
    """All of stdin; None when it stays open and silent, as the real one waits 3 s."""
    if not select.select([0], [], [], 3.0)[0]:
        return None
    return os.read(0, 1 << 16).decode("utf-8", "replace")


def _obey_signals(played, hooks):
    """As the real one: TERM stops a running hook and leaves with 143, HUP with 129."""

    def leave(number, _frame):
        for pid in hooks:
            os.kill(pid, signal.SIGTERM)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if played["ignore_term"] else leave)
    signal.signal(signal.SIGHUP, leave)


def _die(played, moment):
    if played["kill"] and played["kill"][1] == moment:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), played["kill"][0])


def _hang(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.05)


def _leave_stray(me, stray):
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
    _record(me, "stray")
    os.write(told, b".")
    os.close(told)
    os.close(ready)
    _hang(stray["s"])
    os._exit(0)


def _run_hooks(played, hooks):
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


def _hook_command(kind):
    if kind == "env":
        return os.environ["ZDO_CARRIER_WRAPPER"], 60
    if kind == "none":
        return None, 0
    with open(_value_of("--settings"), encoding="utf-8") as file:
        hook = json.load(file)["hooks"]["UserPromptSubmit"][0]["hooks"][0]
    return hook["command"], hook["timeout"]


def _start_hook(command, env, stdin):
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


def _finish_hook(pid, out, timeout_s):
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


def _value_of(option):
    return sys.argv[sys.argv.index(option) + 1] if option in sys.argv else None


def _postbox():
    return _value_of("--resume") or _value_of("--session-id") or ""


def _prompt():
    return _value_of("--") or ""


def _blocked_because(said):
    """The reason of a blocked prompt; None when the hook fails open (CONTRACT g)."""
    for one in said:
        if one["status"] == 2:
            return "blocked"
        try:
            decision = json.loads(one["stdout"])
        except ValueError:
            continue
        if one["status"] == 0 and decision.get("decision") == "block":
            return decision.get("reason", "")
    return None


def _print_result(played, said):
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


def _write(fd, content):
    while content:
        content = content[os.write(fd, content) :]


def shape(name, result):
    """*result* as bytes on stdout in the shape *name*."""
    plain = json.dumps(result).encode() + b"\n"
    event = b'{"type":"system","subtype":"init","session_id":"%s"}' % result["session_id"].encode()
    middle = plain.index(b",") + 1
    return {
        "plain": plain,
        "pretty": json.dumps(result, indent=1).encode() + b"\n",
        "banner": b"Now using node v20.11.0 (npm v10.2.4)\n" + plain,
        "bom": b"\xef\xbb\xbf" + plain,
        "crlf": b"notice\r\n" + plain.replace(b"\n", b"\r\n"),
        "log-lines": b"[log_1] sending request {\n  method: 'post',\n}\n"
        + plain
        + b'[log_2] {"status": 200}\n',
        "halves": plain[:middle] + b"\n[log_3] debug line\n" + plain[middle:],
        "trailing": plain.rstrip() + b" done.\nbye\n",
        "array": b"[" + event + b"," + plain.strip() + b"]\n",
        "stream": event + b"\n" + plain,
        "half": plain[: len(plain) // 2],
        "twice": plain + plain,
        "usage-limit": "hit your limit · resets 1pm\n".encode(),
        "not-utf8": b"caf\xe9 \xff\xfe\n" + plain,
        "same-line": b"\x1b[32mready\x1b[0m {ok} " + plain,
    }[name]


if __name__ == "__main__":
    main()
