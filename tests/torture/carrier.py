"""A `claude` of few milliseconds: runs the hook as the real one does, prints a result.

It holds a lock of its own on the postbox while it runs, and writes down when
somebody else had it: two runs of one postbox at a time.  Like the real one it
starts the hook in a session of its own and hands it no descriptor but 0, 1 and 2.
Installed by `install`; as a program it may import only what a bare interpreter has.
"""

import fcntl
import os
import sys
import time

FAILS = ".fails"  # beside the program: the chance of 256 that a run ends before the hook
WAITS = ".waits"  # the most milliseconds before and after the hook
LOG = ".log"


def install(folder: str, name: str = "claude") -> str:
    """The path of a fresh one in *folder*."""
    path = f"{folder}/{name}"
    with open(__file__, encoding="utf-8") as source:
        program = f"#!{sys.executable} -IS\n{source.read()}"
    # Renamed into place: a running copy must not be written to.
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(program)
    os.chmod(path + ".new", 0o700)
    os.rename(path + ".new", path)
    return path


def entries(path: str) -> list[list[str]]:
    """What the one at *path* wrote down: event, pid, postbox."""
    try:
        with open(path + LOG, encoding="ascii") as file:
            return [line.split() for line in file]
    except FileNotFoundError:
        return []


def main() -> None:
    """Be a carrier run."""
    me = os.path.abspath(sys.argv[0])
    postbox = sys.argv[sys.argv.index("--resume") + 1]
    hold(me, postbox)
    note(me, "start", postbox)
    chance, *rest = os.urandom(3)
    if chance < number(me + FAILS, 0):
        note(me, "failed", postbox)
        sys.exit(1)
    longest_s = number(me + WAITS, 8) / 1000
    time.sleep(rest[0] / 255 * longest_s)
    reason = run_hook(postbox)
    time.sleep(rest[1] / 255 * longest_s)
    print(
        '{"type":"result","subtype":"success","is_error":false,"num_turns":0,'
        f'"session_id":"{postbox}","total_cost_usd":0,"result":"{reason}"}}'
    )
    sys.stdout.flush()
    note(me, "end", postbox)
    os._exit(0)


def hold(me: str, postbox: str) -> None:
    """Hold the postbox until this process is gone; who finds it held says so."""
    fd = os.open(f"{me}.{postbox}.running", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note(me, "overlap", postbox)


def note(me: str, event: str, postbox: str) -> None:
    """One line of the log, whole whoever else writes."""
    fd = os.open(me + LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, f"{event} {os.getpid()} {postbox}\n".encode("ascii"))
    os.close(fd)


def number(path: str, default: int) -> int:
    """What stands in the file at *path*."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (FileNotFoundError, ValueError):
        return default


def run_hook(postbox: str) -> str:
    """Start the hook, give it its input, wait for it; "blocked" when it decided so."""
    take, give = os.pipe()
    out, said = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, take, 0),
        (os.POSIX_SPAWN_DUP2, said, 1),
        # The real one sets close-on-exec everywhere: its hook does not hold the lease.
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in map(int, os.listdir("/dev/fd")) if is_ours(fd)),
    ]
    command = os.environ["ZDO_CARRIER_WRAPPER"]
    argv = ["sh", "-c", command]
    pid = os.posix_spawn("/bin/sh", argv, os.environ, file_actions=actions, setsid=True)
    os.close(take)
    os.close(said)
    try:
        os.write(give, f'{{"session_id":"{postbox}","prompt":"{sys.argv[-1]}"}}'.encode("ascii"))
    except BrokenPipeError:
        note(os.path.abspath(sys.argv[0]), "unread", postbox)
    os.close(give)
    heard = b""
    while part := os.read(out, 4096):
        heard += part
    os.waitpid(pid, 0)
    return "blocked" if b'"block"' in heard else "not blocked"


def is_ours(fd: int) -> bool:
    """Whether *fd* is open, and not a standard one; the listing's own is closed by now."""
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError:
        return False
    return fd > 2


if __name__ == "__main__":
    main()
