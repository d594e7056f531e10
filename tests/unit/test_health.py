"""`zdo doctor`'s looks: each says what is there at the call, and never more than it saw."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dispatch import health, look_around, look_at_claude, look_inside
from dispatch.finding import ill, unknown, well
from dispatch.health import Item, Look, check
from registry.errors import StateUnsafe
from registry.home import open_state
from registry.processes import Processes
from registry.record import replace
from registry.surroundings import Seen
from tests.fakes.envelopes import T
from tests.fakes.evidence import OTHER, StoppedClock
from tests.fakes.household import BEGAN, ROOT, Household
from tests.fakes.spools import SCHEMA_1, a_house

CODES = (
    "config", "registry", "state-folder", "database", "claude-binary", "claude-version", "postbox",
    "hooks", "inbound", "ledger", "process-sources", "messaging-door", "relay-last-pass",
    "relay-starter", "cron-environment", "clock", "limits", "nested", "free-space",
)  # fmt: skip


@pytest.fixture
def home(tmp_path):
    """A household in which nothing was done yet and nobody runs."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def found(home, code, **changes):
    """What `zdo doctor` says of *code* now."""
    (item,) = [each for each in check(home.house(**changes)) if each.code == code]
    return item


def mark(home, code, **changes):
    """Whether *code* is well now."""
    return found(home, code, **changes).ok


class Ticking(StoppedClock):
    """A clock that is a second further at each look."""

    def now(self):
        """A second later than the last time."""
        self.at += 1.0
        return self.at


class Blind(Processes):
    """A machine on which nobody is seen."""

    def see(self, wanted, _env):
        """Answer with a clause for each."""
        return {pid: Seen(pid, None, None, None, (), ("ps took too long",)) for pid in wanted}


class OutOfDescriptors(Processes):
    """A machine on which no row can be checked."""

    def start_token(self, _pid):
        """Fail, as an open does."""
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_every_item_is_there_in_its_order(home):
    """Whatever is wrong, none is left out; each has the time of its own look."""
    items = check(home.house(clock=Ticking()))

    assert CODES == tuple(item.code for item in items)
    times = [item.checked_at for item in items]
    assert times == sorted(set(times))
    assert times[0].endswith("Z")


def test_a_new_machine_is_not_ill(home):
    """What is not there yet is not known; only `claude` and a postbox are missing."""
    assert {
        "config": True, "registry": True, "state-folder": None, "database": None,
        "claude-binary": False, "claude-version": None, "postbox": False, "hooks": True,
        "inbound": True, "ledger": None, "process-sources": True, "messaging-door": None,
        "relay-last-pass": None, "relay-starter": None, "cron-environment": None, "clock": None,
        "limits": True, "nested": True, "free-space": True,
    } == {item.code: item.ok for item in check(home.house())}  # fmt: skip


def test_a_look_changes_nothing(home):
    """No folder, no file."""
    home.runs()
    before = sorted(Path(home.root).rglob("*"))

    check(home.house())

    assert before == sorted(Path(home.root).rglob("*"))


def fails(error):
    """A look that raises *error*."""

    def look(_house):
        raise error

    return look


@pytest.mark.parametrize(
    ("error", "ok", "detail", "fix"),
    [
        (StateUnsafe("/s", "is odd"), False, "/s: is odd", "mend it"),
        (KeyError(), None, "cannot be looked at now: KeyError", None),
        (RecursionError("too deep"), None, "cannot be looked at now: too deep", None),
    ],
)
def test_a_look_that_fails_hides_no_other(home, error, ok, detail, fix):
    """Its own errors are its answer; any other is no answer."""
    looks = [
        Look("odd", fails(error), "mend it", (StateUnsafe,)),
        Look("well", lambda _: well("fine"), "mend it"),
        Look("ill", lambda _: ill("not fine"), "mend it"),
        Look("unknown", lambda _: unknown("nobody knows"), "mend it"),
    ]
    clock = StoppedClock()
    at = "2026-11-30T14:24:04.751Z"

    assert (
        Item("odd", ok, at, detail, fix),
        Item("well", True, at, "fine", None),
        Item("ill", False, at, "not fine", "mend it"),
        Item("unknown", None, at, "nobody knows", None),
    ) == check(home.house(clock=clock), looks)


def test_the_configuration_is_read_at_the_call(home):
    """A broken one is ill, and what it would have told is not known."""
    path = home.env["ZDO_CONFIG"]
    assert (True, f"{path}; targets: 2") == (mark(home, "config"), found(home, "config").detail)
    home.configure("[nonsense]\n")

    assert mark(home, "config") is False
    assert "nonsense" in found(home, "config").detail
    for code in ("registry", "claude-binary", "ledger", "process-sources", "messaging-door"):
        assert mark(home, code) is None, code

    os.unlink(path)
    assert (True, f"there is no {path}; the defaults hold") == (
        mark(home, "config"), found(home, "config").detail,
    )  # fmt: skip


def test_the_registry_is_counted_at_the_call(home):
    """Rows that run, and those that do not, with their reasons; a folder that is gone is ill."""
    home.runs()
    home.registry.add(damage="torn")
    home.registry.add(damage="no-socket")
    folder = home.registry.sessions

    assert well(f"{folder}; running: 1, skipped: 1 no-socket, 1 torn") == look_around.registry(
        home.house()
    )
    shutil.rmtree(folder)
    item = found(home, "registry")
    assert (False, f"there is no folder {folder}") == (item.ok, item.detail)
    assert "claude_config_dir" in item.fix
    os.mkdir(folder)
    assert mark(home, "registry") is True


def test_a_registry_that_cannot_be_read_is_ill(home):
    """Nobody can be called ended then."""
    home.runs()

    item = found(home, "registry", processes=OutOfDescriptors())

    assert (False, f"{home.registry.sessions}: Too many open files") == (item.ok, item.detail)


def test_a_state_folder_as_a_kiss_makes_it_is_well(home):
    """Its kind of locks and its mount are asked, not assumed."""
    open_state(home.house().places)

    assert well(f"{home.state} is ours, local, and has native locks") == look_inside.state_folder(
        home.house()
    )


def test_a_state_folder_that_is_open_to_others_is_only_looked_at(home):
    """The next kiss tightens it; one that holds foreign things it cannot tighten."""
    os.mkdir(home.state, 0o755)

    item = found(home, "state-folder")
    assert item.ok is True
    assert item.detail.endswith("; open to others, which the next kiss mends")
    assert os.stat(home.state).st_mode & 0o777 == 0o755

    Path(home.state, "foreign").touch()
    item = found(home, "state-folder")
    assert (False, f"chmod 700 {home.state}") == (item.ok, item.fix)
    assert "holds 'foreign'" in item.detail


@pytest.mark.parametrize("part", ["", "/attempts", "/locks", "/postbox"])
def test_a_link_in_the_place_of_a_folder_is_ill(home, tmp_path, part):
    """Of the state folder itself, and of each of its parts."""
    if part:
        os.mkdir(home.state, 0o700)
    os.symlink(tmp_path, home.state + part)

    assert mark(home, "state-folder") is False
    assert "is a symlink" in found(home, "state-folder").detail


def test_a_state_folder_on_a_network_is_ill(home, tmp_path):
    """Its locks hold nobody."""
    open_state(home.house().places)
    table = tmp_path / "mountinfo"
    table.write_text(f"36 22 0:44 / {home.state} rw - nfs4 box:/home rw\n")

    said = look_inside.state_folder(home.house(), str(table))

    assert (False, None) == (said.ok, said.fix)
    assert "network" in said.detail


# Looks at a state folder in a process whose flock does what its second word says.
ODD_FLOCK = """
import errno, fcntl, os, sys
from dispatch import look_inside
from registry import locks
from registry.errors import StateUnsafe
from tests.fakes.spools import a_house
def unsupported(fd, flags):
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
house = a_house(sys.argv[1])
if sys.argv[2] == "unsupported":
    locks.fcntl.flock = unsupported
said = look_inside.state_folder(house)
print(said.ok or said.detail.partition(": ")[2])
"""


@pytest.mark.parametrize(
    ("how", "said"), [("real", "True"), ("unsupported", "cannot be locked: No locks available")]
)
def test_a_file_system_without_locks_is_found_out(tmp_path, how, said):
    """By locking the folder for a moment; nothing is left there."""
    argv = [sys.executable, "-c", ODD_FLOCK, f"{tmp_path}/state", how]

    done = subprocess.run(argv, cwd=ROOT, capture_output=True, check=True, text=True)

    assert f"{said}\n" == done.stdout
    assert ["attempts", "locks", "postbox"] == sorted(os.listdir(tmp_path / "state"))


def test_a_folder_that_is_locked_by_somebody_has_locks(home):
    """Two doctors at once."""
    open_state(home.house().places)
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX)"
    code += "; print(flush=True); sys.stdin.read()"
    argv = [sys.executable, "-c", code, home.state]
    with subprocess.Popen(argv, stdin=-1, stdout=-1) as other:
        other.stdout.readline()

        assert mark(home, "state-folder") is True


def test_a_state_folder_that_cannot_be_written_is_ill():
    """Nothing could be kept there."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        house = a_house(f"{folder}/state")
        os.chmod(house.places.state, 0o500)
        if os.geteuid() == 0:
            # Nothing is closed to root: it is somebody else's who can be told no.
            for path in (*Path(folder).rglob("*"), folder):
                os.chown(path, 65534, -1)
            os.seteuid(65534)
        try:
            said = look_inside.state_folder(house)
        finally:
            os.seteuid(os.getuid())
            os.chmod(house.places.state, 0o700)
    assert (False, f"chmod u+rwx {house.places.state}") == (said.ok, said.fix)
    assert said.detail.endswith("cannot be written")


def test_a_whole_database_is_well(home):
    """With what waits in it and what is in doubt."""
    home.queued()
    path = f"{home.state}/zdo.db"

    assert well(f"{path} is whole; waiting: 1, in doubt: 0") == look_inside.database(home.house())


@pytest.mark.parametrize(
    ("at", "content"), [(0, b"another program's file"), (40, b"\xff" * 60), (-1, b"\0" * 5000)]
)
def test_a_damaged_database_is_ill(home, at, content):
    """And what it would tell of the relay may not be known."""
    home.queued()
    path = Path(home.state, "zdo.db")
    whole = path.read_bytes()
    path.write_bytes(
        whole + content if at < 0 else whole[:at] + content + whole[at + len(content) :]
    )
    damaged = path.read_bytes()

    item = found(home, "database")

    assert (False, "zdo fsck") == (item.ok, item.fix)
    assert mark(home, "relay-last-pass", clock=StoppedClock()) is None
    assert damaged == path.read_bytes()


def test_a_newer_database_is_ill_and_an_older_one_is_not(home):
    """The next kiss brings that one up to date; a look does not."""
    home.queued()
    home.alter("CREATE TABLE later(x)")
    home.alter("PRAGMA user_version=99")
    assert "newer zdo" in found(home, "database").detail
    assert mark(home, "database") is False

    path = f"{home.state}/zdo.db"
    os.unlink(path)
    link = sqlite3.connect(path)
    link.executescript(SCHEMA_1)
    link.close()
    older = Path(path).read_bytes()

    assert mark(home, "database") is True
    assert "older" in found(home, "database").detail
    assert older == Path(path).read_bytes()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_is_not_waited_for(home, make):
    """A pipe in the place of the database never makes a look hang."""
    open_state(home.house().places)
    make(f"{home.state}/zdo.db")

    assert (False, f"{home.state}/zdo.db: is not a plain file") == (
        mark(home, "database"), found(home, "database").detail,
    )  # fmt: skip
    assert mark(home, "relay-last-pass") is None


def test_claude_is_looked_for_where_a_kiss_looks(home):
    """On the PATH, or by the name that was given."""
    assert mark(home, "claude-binary") is False
    assert f"PATH={home.env['PATH']}" in found(home, "claude-binary").detail
    home.claude("exit 0")

    assert well(f"{home.root}/bin/claude") == look_at_claude.claude_binary(home.house())
    elsewhere = home.env | {"ZDO_CLAUDE_BIN": "/nowhere/claude"}
    assert mark(home, "claude-binary", env=elsewhere) is False
    without = {name: value for name, value in home.env.items() if name != "PATH"}
    assert f"PATH={os.defpath}" in found(home, "claude-binary", env=without).detail


def ledger_of(home):
    """Where the ticket events of *home* are."""
    folder = Path(home.root, ".claude", "tickets")
    folder.mkdir(exist_ok=True)
    return folder / "events.jsonl"


def test_the_ledger_is_read_afresh(home):
    """What it has and what could not be understood; no memory of it is made or believed."""
    open_state(home.house().places)
    path = ledger_of(home)
    event = {"event": "create", "ticket": "TK-1", "agent": "a", "ts": "2026-11-30T14:24:04Z"}
    path.write_text(json.dumps(event) + "\nnonsense\n")

    item = found(home, "ledger")

    assert item.ok is True
    assert item.detail.startswith(f"{path}; lines: 2, skipped: ")
    assert not item.detail.endswith("none")
    # Long enough that another command would have remembered it.
    path.write_text("\n".join(["nonsense" * (1 << 16)] * 4))
    assert "; lines: 4, " in found(home, "ledger").detail
    assert not os.path.exists(f"{home.state}/ledger.json")
    path.write_text("")
    assert f"{path}; lines: 0, skipped: none" == found(home, "ledger").detail
    path.unlink()
    assert (None, f"there is no {path}; no session is bound by it") == (
        mark(home, "ledger"), found(home, "ledger").detail,
    )  # fmt: skip


def test_a_ledger_that_is_no_file_is_ill(home):
    """And never waited for."""
    path = ledger_of(home)
    os.mkfifo(path)

    item = found(home, "ledger")

    assert (False, "mend it, or set [tickets] root") == (item.ok, item.fix)
    assert item.detail.startswith(f"{path}: ")


def test_a_ledger_elsewhere_is_the_one_that_is_looked_at(home):
    """As the configuration says."""
    home.configure('[tickets]\nroot = "/nowhere"\n')

    assert "/nowhere/.claude/tickets/events.jsonl" in found(home, "ledger").detail


def test_processes_that_can_be_seen_are_well(home):
    """Our own is always asked, and each that runs."""
    assert well("all of 1 processes could be seen") == look_around.process_sources(home.house())
    home.runs()

    assert well("all of 2 processes could be seen") == look_around.process_sources(home.house())


def test_processes_that_cannot_be_seen_are_told(home):
    """T06: a source that is missing or slow is no secret, and no error."""
    item = found(home, "process-sources", processes=Blind())

    assert (False, f"pid {os.getpid()}: ps took too long") == (item.ok, item.detail)


def test_one_odd_process_is_not_the_sources_fault(home):
    """It is told, and nobody is sent to mend what is whole."""
    home.registry.add(sessionId=T, pid=odd_process(home))

    item = found(home, "process-sources")

    assert item.ok is None
    assert "two different TERM_SESSION_ID" in item.detail


def odd_process(home):
    """The pid of a process whose environment has a name twice."""
    code = (
        "import ctypes; ctypes.CDLL(None).execve(b'/bin/sleep',"
        " (ctypes.c_char_p * 3)(b'sleep', b'600', None),"
        " (ctypes.c_char_p * 3)(b'TERM_SESSION_ID=a', b'TERM_SESSION_ID=b', None))"
    )
    running = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL)
    home.registry._sleepers.append(running)
    while Path(f"/proc/{running.pid}/cmdline").read_bytes() != b"sleep\x00600\x00":
        time.sleep(0.01)
    return running.pid


def test_a_ps_that_is_missing_is_told(home):
    """T06: where there is no /proc, and no ps on this PATH."""
    env = home.env | {"PATH": "/nowhere"}

    item = found(home, "process-sources", processes=Processes("darwin"), env=env)

    assert item.ok is False
    assert f"pid {os.getpid()}: ps cannot be started: No such file or directory" == item.detail
    assert "ps on the PATH" in item.fix


def test_a_door_is_knocked_at(home):
    """One that opens is enough; those at which nobody listens are named; none runs: not known."""
    assert unknown("no session runs") == look_around.messaging_door(home.house())
    home.runs()
    other = home.registry.add(sessionId=OTHER, damage="refused")

    assert well(
        f"open doors: 1 of 2; nobody listens at that of pid {other.pid}"
    ) == look_around.messaging_door(home.house())


def test_doors_that_are_all_shut_are_ill(home):
    """Nothing could be delivered."""
    home.registry.add(damage="refused")

    item = found(home, "messaging-door")

    assert (False, "restart those sessions: their doors are gone") == (item.ok, item.fix)


def passed_at(home, at):
    """A relay counted a step at *at*, as seconds after BEGAN."""
    home.alter("UPDATE pulse SET at = ?", BEGAN + at)


def later(home, seconds):
    """What is said of the relay so long after BEGAN."""
    clock = StoppedClock()
    clock.at = BEGAN + seconds
    return look_inside.relay_last_pass(home.house(clock=clock))


HOUR_S = 3600.0
AT = "the last one was at 2026-11-30T14:13:20.000Z"
NEVER = "no relay has served this queue"


@pytest.mark.parametrize(
    ("waits", "passed", "seconds", "said"),
    [
        (False, None, 9 * HOUR_S, unknown(f"{NEVER}; no line waits")),
        (False, 0.0, HOUR_S, well(f"{AT}; no line waits")),
        (False, 0.0, 9 * HOUR_S, unknown(f"{AT}; no line waits")),
        (False, 0.0, -60.0, unknown(f"{AT}; no line waits")),
        (True, None, HOUR_S, unknown(NEVER)),
        (True, None, 2 * HOUR_S, unknown(NEVER)),
        (True, None, 2 * HOUR_S + 1, ill(f"{NEVER}, and lines wait")),
        (True, 0.0, 2 * HOUR_S, well(AT)),
        (True, 0.0, 2 * HOUR_S + 1, ill(f"{AT}, and lines wait")),
        (True, 0.0, -60.0, unknown(AT)),
    ],
)
def test_a_relay_is_missed_only_while_lines_wait(home, waits, passed, seconds, said):
    """A pass that finds nothing to do leaves no trace, so silence alone is no sign."""
    if waits:
        home.queued()
    else:
        home.database().close()
    if passed is not None:
        passed_at(home, passed)

    assert said == later(home, seconds)


def test_a_line_that_has_just_come_does_not_accuse_the_relay(home):
    """The last pass is old, and nothing waited meanwhile."""
    home.queued()
    passed_at(home, -9 * HOUR_S)

    assert unknown("the last one was at 2026-11-30T05:13:20.000Z") == later(home, HOUR_S)


def test_the_oldest_line_is_the_one_that_waits(home):
    """A later one does not excuse it."""
    home.queued()
    home.queued("00000000-0000-4000-8000-00000000abcd", b"another")
    home.alter("UPDATE line SET created_at = ? WHERE id = 2", BEGAN + 2 * HOUR_S)

    assert ill(f"{NEVER}, and lines wait") == later(home, 2 * HOUR_S + 1)


def space(free, files=(100, 50)):
    """A file system with so many bytes free, and files (of all, free)."""
    return lambda _path: os.statvfs_result(
        (4096, 4096, 0, 0, free // 4096, files[0], 0, files[1], 0, 255)
    )


@pytest.mark.parametrize(
    ("found_there", "ok", "detail"),
    [
        (space(64 << 20), True, "64 MiB are free at {}"),
        (space((64 << 20) - 4096), False, "63 MiB are free at {}"),
        (space(1 << 30, (100, 0)), False, "1024 MiB are free at {}; no file can be made"),
        (space(1 << 30, (0, 0)), True, "1024 MiB are free at {}"),
    ],
)
def test_room_is_measured_where_lines_are_kept(home, found_there, ok, detail):
    """In bytes and in files; a file system that does not count files has no end of them."""
    said = look_inside.free_space(home.house(), found_there)

    assert (ok, detail.format(home.root)) == (said.ok, said.detail)


def test_room_is_asked_at_the_state_folder_once_there_is_one(home):
    """It may be on a disk of its own; before that its parent is asked, however far up."""
    assert found(home, "free-space").detail.endswith(f" MiB are free at {home.root}")
    os.mkdir(home.state)
    assert found(home, "free-space").detail.endswith(f" MiB are free at {home.state}")
    deep = replace(home.house().places, state=f"{home.root}/a/b/c")
    assert found(home, "free-space", places=deep).detail.endswith(f" free at {home.root}")


def test_a_disk_that_cannot_be_asked_is_ill(home):
    """As one that is full."""
    looks = [Look("free-space", fails(OSError(errno.EIO, "Input/output error")), "x", (OSError,))]

    assert [(False, "x")] == [(item.ok, item.fix) for item in check(home.house(), looks)]
    assert health.LOOKS[-1].own == (OSError,)
