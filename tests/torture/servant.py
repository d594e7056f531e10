"""Runs zdo's commands one after another, each in a forked process of its own.

What a command does, it does as the real one: its own pid, its own descriptors, the
real entry point, and `os._exit` at the end.  Only the imports are shared, which are
most of a short command's time.  A program; needs nothing but the tree that argv names.
"""

import importlib
import json
import os
import pkgutil
import random
import select
import signal
import sys
import time

# Killed, or provably not delivered: the same key may be tried again.
AGAIN = (-9, 69, 75, 76)


def main() -> None:
    """Take orders from stdin, one JSON object a line; answer each with one line."""
    tree, name, log = sys.argv[1:4]
    sys.path.insert(0, tree)
    for package in ("registry", "carrier", "dispatch"):
        load(package)
    for other in ("ctypes", "filelock", "hashlib", "sqlite3", "typer"):
        importlib.import_module(other)
    for order in iter(sys.stdin.readline, ""):
        told = json.loads(order)
        answer = ORDERS[told.pop("order")](name, log, **told)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def load(name: str) -> None:
    """Import the package *name* and everything in it."""
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)


def command(words: list[str], until: "str | None" = None) -> tuple[int, str]:
    """How the command ended, negative by a signal, and what it said on stdout.

    One that would never end gets TERM when the file *until* is there.
    """
    take, give = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            be(words, give)
        finally:
            os._exit(99)
    os.close(give)
    said, told = b"", False
    while True:
        if not told and until is not None and os.path.exists(until):
            os.kill(pid, signal.SIGTERM)
            told = True
        if select.select([take], [], [], None if until is None else 0.05)[0]:
            part = os.read(take, 1 << 16)
            if not part:
                break
            said += part
    os.close(take)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, said.decode("utf-8", "replace")


def be(words: list[str], stdout: int) -> None:
    """Become the command; never returns."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(stdout, 1)
    if not os.environ.get("TORTURE_SHOWS"):
        os.dup2(null, 2)
    os.closerange(3, 64)
    sys.stdin = os.fdopen(0)
    sys.stdout = os.fdopen(1, "w")
    sys.argv = ["zdo", *words]
    from dispatch.cli.main import main as zdo

    zdo()


def say(name, log, *, targets, lines, first, words, tries, ordered, pause_s, seed, until):
    """Say numbered lines to random targets; each is written down with how its command ended.

    With more than one of *tries* it has a key, and is said again under it as long as
    that is safe.  The file *until* ends all of it early.
    """
    chance = random.Random(seed)  # noqa: S311 - the harness's own, and repeatable
    said = 0
    for number in range(first, first + lines):
        if os.path.exists(until):
            break
        target = chance.choice(targets)
        text = f"{name} {target} {number}"
        key = ["--key", text] if tries > 1 else []
        status, attempt = AGAIN[0], 0
        while status in AGAIN and attempt < tries:
            status, answer = command(["kiss", "--json", target, text, *words, *key])
            attempt += 1
        kept = {"sender": name, "target": target, "text": text, "status": status}
        kept |= {"class": class_in(answer), "tries": attempt, "ordered": ordered}
        append(log, json.dumps(kept))
        said += 1
        time.sleep(chance.uniform(0, pause_s))
    return {"said": said}


def class_in(said: str) -> "str | None":
    """The class that a whole answer names."""
    try:
        found = json.loads(said)["class"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(found)


def repeat(_name, log, *, words, until, pause_s, seed):
    """Run one command again and again until the file *until* is there."""
    chance = random.Random(seed)  # noqa: S311
    ends: dict[str, int] = {}
    while not os.path.exists(until):
        status, said = command(words, until if "--follow" in words else None)
        ends[str(status)] = ends.get(str(status), 0) + 1
        if status not in (0, -9):
            append(log, json.dumps({"words": words, "status": status, "said": said[-2000:]}))
        time.sleep(chance.uniform(0, pause_s))
    return ends


def race(name, log, *, keys, texts, target):
    """Queue a line under each of *keys*, its text the next of *texts*, and write down the end."""
    for key, text in zip(keys, texts, strict=True):
        status, said = command(["kiss", "--queue", "--json", "--key", key, target, text])
        kept = {"key": key, "line": text, "status": status, "class": class_in(said)}
        append(log, json.dumps(kept | {"racer": name}))
    return {"raced": len(keys)}


def crowd(_name, log, *, commands, gap_s, seed):
    """Start all *commands* nearly at once, and wait for all; how each ended."""
    chance = random.Random(seed)  # noqa: S311
    started = []
    for words in commands:
        null = os.open(os.devnull, os.O_RDWR)
        pid = os.fork()
        if pid == 0:
            try:
                be(words, null)
            finally:
                os._exit(99)
        os.close(null)
        started.append(pid)
        time.sleep(chance.uniform(0, gap_s))
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
    append(log, json.dumps({"ends": ends}))
    return ends


def once(_name, _log, *, words):
    """Run one command; its status and what it said."""
    status, said = command(words)
    return {"status": status, "said": said}


def append(path: str, line: str) -> None:
    """Add *line* to the file at *path*, whole."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, line.encode() + b"\n")
    os.close(fd)


ORDERS = {"say": say, "repeat": repeat, "once": once, "race": race, "crowd": crowd}

if __name__ == "__main__":
    main()
