"""P5 and P6: an error at the n-th system call, for every n: said, and never half a row.

Faults are injected by strace where it may trace; where it may not, those tests are skipped
and say so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from dispatch.database import SCHEMA_VERSION, Database
from dispatch.errors import DatabaseUnusable
from tests.fakes import faulty_spool
from tests.fakes.faulty_spool import WRITES, attempt, became, path_of, prepare
from tests.fakes.household import ROOT
from tests.fakes.spools import SCHEMA_1, SCHEMA_2

STRACE = shutil.which("strace")
# What measures the tests would have its own calls counted, and hit.
BARE = {"PATH": os.defpath}
# No write of the spool makes as many calls of one kind; it ends long before.
FAR = 200


def can_trace():
    """Whether strace may inject a fault here."""
    if STRACE is None:
        return False
    argv = [STRACE, "-qq", "-o", "/dev/null", "-e", "inject=chdir:error=EIO", "true"]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(
    not can_trace(), reason="P5, P6: no fault injected, strace is absent or may not trace here"
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Three state folders with the same content, made once."""
    folder = tmp_path_factory.mktemp("prepared")
    prepare(str(folder))
    return folder


@pytest.fixture
def folder(prepared, tmp_path):
    """A copy of them that a test may break."""
    return copy(prepared, tmp_path)


@pytest.fixture
def each(prepared, tmp_path, capsys):
    """What a test with many parameters needs besides."""
    return prepared, tmp_path, capsys


def copy(prepared, tmp_path):
    """The prepared folders, as they were."""
    folder = tmp_path / "state"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    return str(folder)


def inject(folder, calls, error, number):
    """What came of the three writes when the *number*th of *calls* fails; how many have one."""
    paths = []
    for name in WRITES:
        path = path_of(folder, name)
        for each in (path, f"{path}-journal", os.path.dirname(path), f"{path[:-6]}spool.lock"):
            paths += ["-P", each]
    faults = ["-e", f"trace={calls}", "-e", f"inject={calls}:error={error}:when={number}"]
    trace = f"{folder}/trace"
    argv = [STRACE, "-f", "-qq", "-o", trace, *faults, *paths]
    ended = subprocess.run(
        [*argv, sys.executable, "-m", "tests.fakes.faulty_spool", folder],
        cwd=ROOT,
        env=BARE,
        capture_output=True,
        text=True,
        check=True,
    )
    said = dict(line.split(": ") for line in ended.stdout.splitlines())
    return said, Path(trace).read_text().count("(INJECTED)")


def sound(folder, name):
    """Whether SQLite finds nothing wrong, once it has taken back what was half done."""
    with contextlib.closing(sqlite3.connect(path_of(folder, name))) as link:
        return link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def at_every_call(prepared, tmp_path, calls, error):
    """For every n until nothing fails any more: what each write said, and what it left."""
    found = []
    for number in range(1, FAR):
        folder = copy(prepared, tmp_path)
        said, hit = inject(folder, calls, error, number)
        assert WRITES.keys() == said.keys()
        for name in WRITES:
            found.append((name, said[name], became(folder, name)))
            assert sound(folder, name)
        if not hit:
            return found
    raise AssertionError(f"{calls} never ends")


@needs_strace
def test_no_room_at_any_write_is_said_and_the_next_try_succeeds(prepared, tmp_path, capsys):
    """P5: DatabaseFull, nothing half done; with room again every claim can be settled."""
    found = at_every_call(prepared, tmp_path, "pwrite64", "ENOSPC")

    tried = [said for _, said, _ in found if said != "ok"]
    with capsys.disabled():
        print(f"\nP5: ENOSPC at {len(tried)} writes")
    assert {"DatabaseFull, then ok"} == set(tried)
    assert {"after"} == {left for _, _, left in found}
    assert len(tried) > 3 * 15


@needs_strace
@pytest.mark.parametrize(
    ("calls", "error", "least"),
    [
        ("pwrite64", "EIO", 45),
        ("fsync,fdatasync", "EIO", 12),
        ("openat", "EIO", 12),
        ("openat", "EACCES", 12),
        ("openat", "EROFS", 12),
        ("openat", "EMFILE", 12),
        ("pread64", "EIO", 30),
    ],
)
def test_an_error_at_any_call_is_said_and_no_row_is_half(each, calls, error, least):
    """P6: success means complete; an error means unchanged or complete.

    SQLite does without a folder that cannot be flushed: the names in it are old.
    """
    prepared, tmp_path, capsys = each
    found = at_every_call(prepared, tmp_path, calls, error)

    failed = [said for _, said, _ in found if said != "ok"]
    with capsys.disabled():
        print(f"\nP6: {error} at {len(failed)} calls of {calls}")
    assert {"after"} == {left for _, said, left in found if said == "ok"}
    assert {left for _, said, left in found if said != "ok"} <= {"before", "after"}
    assert set(failed) <= {"DatabaseUnusable", "DatabaseDamaged", "DatabaseFull, then ok"}
    assert len(failed) >= least


OPEN = "import sys; from dispatch.database import Database; Database(sys.argv[1]).close()"


@needs_strace
@pytest.mark.parametrize("older", [None, SCHEMA_1, SCHEMA_2])
def test_killed_at_any_write_a_database_is_made_or_migrated_by_the_next(tmp_path, older):
    """P17: all of it or nothing, whether there was none before or one of an older zdo."""
    ended = number = 0
    while not ended:
        number += 1
        state = tmp_path / str(number)
        state.mkdir(mode=0o700)
        path = f"{state}/zdo.db"
        if older is not None:
            with contextlib.closing(sqlite3.connect(path)) as link:
                link.executescript(older)
        fault = f"inject=pwrite64,ftruncate,fdatasync:signal=KILL:when={number}"
        argv = [STRACE, "-qq", "-o", "/dev/null", "-e", fault, "-P", path, "-P", f"{path}-journal"]
        argv += [sys.executable, "-c", OPEN, path]
        ended = subprocess.run(argv, cwd=ROOT, env=BARE, check=False).returncode == 0

        Database(path).close()
        with contextlib.closing(sqlite3.connect(path)) as link:
            assert link.execute("SELECT count(*) FROM pulse").fetchone() == (1,)
            assert link.execute("SELECT count(*) FROM reader").fetchone() == (0,)
            assert link.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
            assert link.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    assert number > 5


def in_a_child(work):
    """What *work* returns, a text, in a fork that may spoil itself."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        soft = {kind: resource.getrlimit(kind) for kind in LIMITS}
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001 - told to the test, which judges it
            said = repr(error)
        for kind, limits in soft.items():
            resource.setrlimit(kind, limits)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)


def limited(kind, most, folder, name):
    """The write *name* under a limit, as its process would be started by a careful shell."""

    def work():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))
        return attempt(folder, name)

    return in_a_child(work)


def first_free():
    """The lowest descriptor that this process has free."""
    fd = os.open("/", os.O_RDONLY)
    os.close(fd)
    return fd


@pytest.mark.parametrize("name", WRITES)
def test_too_few_descriptors_are_said(prepared, tmp_path, name):
    """P6: EMFILE at the n-th of those that a write needs."""
    results = []
    for more in range(20):
        folder = copy(prepared, tmp_path)
        said = limited(resource.RLIMIT_NOFILE, first_free() + 1 + more, folder, name)
        results.append(said)
        assert became(folder, name) in ({"after"} if said == "ok" else {"before", "after"})
        if said == "ok":
            break

    assert "ok" == results.pop()
    assert {"DatabaseUnusable"} == set(results)
    assert len(results) >= 2


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_is_cut_short_is_said(prepared, tmp_path, name):
    """P6: a limit in the middle of a page, at every 600 bytes of journal and file."""
    size = os.path.getsize(path_of(prepared, name))
    seen = set()
    for most in (*range(300, 40_000, 2000), *range(size - 900, size + 20_000, 2000)):
        folder = copy(prepared, tmp_path)
        said = limited(resource.RLIMIT_FSIZE, most, folder, name)
        seen.add(said)
        assert became(folder, name) in ({"after"} if said == "ok" else {"before", "after"})
        assert sound(folder, name)

    assert {"ok", "DatabaseUnusable"} == seen


@pytest.fixture
def public():
    """A folder that every user can reach; pytest's own are closed."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # noqa: S103 - that is the fault
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="P6: only root can become a user without rights")
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("mode", [0o700, 0o555, 0o755])
def test_a_folder_that_may_not_be_written_takes_nothing(prepared, public, name, mode):
    """P6: EACCES for another user, whether he may look or not, whatever the file allows."""
    folder = copy(prepared, public)
    for part in (folder, f"{folder}/{name}"):
        os.chmod(part, mode)
    os.chmod(path_of(folder, name), 0o666)  # noqa: S103 - that is the fault

    def work():
        os.seteuid(54321)
        try:
            return attempt(folder, name)
        finally:
            os.seteuid(0)

    assert "DatabaseUnusable" == in_a_child(work)
    assert "before" == became(folder, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="P6: only root can mount, so nothing is read-only")
@pytest.mark.parametrize("name", WRITES)
def test_a_disk_that_is_read_only_takes_nothing(folder, name):
    """P6: EROFS, as after a journal error of the disk's own."""
    here = f"{folder}/{name}"
    if subprocess.run(["mount", "--bind", here, here], capture_output=True, check=False).returncode:
        pytest.skip("P6: EROFS not shown, mount is not allowed here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", here], check=True)
        assert "DatabaseUnusable" == attempt(folder, name)
        with pytest.raises(DatabaseUnusable) as caught:
            Database(path_of(folder, name))
        assert os.strerror(errno.EROFS) == caught.value.why
    finally:
        subprocess.run(["umount", here], check=True)
    assert "before" == became(folder, name)


def test_the_writes_do_what_their_names_say(folder):
    """Without a fault each is complete: what the others are measured by."""
    for name in WRITES:
        assert "before" == became(folder, name)
        assert "ok" == faulty_spool.attempt(folder, name)
        assert "after" == became(folder, name)
