"""P1: what was acknowledged before the power went is there afterwards.

An ext4 on a loop device is shut down without flushing its log, in the middle of a
writer that stamps every acknowledgement; then it is mounted again, as after a power
cut, and the spool is compared with the stamps.  Only what was acknowledged before the
cut began counts.  Not shown: drives that lie, torn sectors, another file system.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from registry.record import Record
from tests.torture.copies import ROOT
from tests.torture.luck import luck

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
_WITHOUT_LOG_FLUSH = 2
_MEBIBYTES = 64
_CUTS_A_DISK = 40  # then a new one, before it is full
SHORTEST_S, LONGEST_S = 0.02, 0.6  # of writing, before a cut
WRITER = str(Path(__file__).with_name("writer.py"))
CONFIG = '[targets.fable]\nsession = "{session}"\ncarrier_session = "{postbox}"\n'
T = "388e03f6-0000-4000-8000-000000000001"
P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"


class Cuts(Record):
    """What a number of power cuts came to."""

    cuts: int
    acked: int
    lost: int
    with_loss: int  # cuts that lost anything
    damaged: int  # cuts after which the database was not whole
    seconds: float

    @property
    def is_kept(self) -> bool:
        """Whether nothing that was acknowledged is missing, and the database is whole."""
        return not (self.lost or self.damaged)


def impossible() -> str | None:
    """Why this machine cannot cut the power of a file system; None when it can."""
    if os.geteuid() != 0:
        return "only root may mount a loop device"
    for program in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin") is None:
            return f"{program} is missing"
    try:
        with Disk() as disk:
            disk.cut()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no loop device can be mounted and shut down here: {error}"
    return None


class Disk:
    """A small ext4 of its own, mounted; a context manager."""

    def __enter__(self) -> Self:
        self.root = tempfile.mkdtemp(prefix="zdo-disk-", dir="/tmp")
        self.image, self.folder = f"{self.root}/image", f"{self.root}/disk"
        os.mkdir(self.folder, 0o700)
        try:
            self._make()
        except BaseException:
            shutil.rmtree(self.root)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if os.path.ismount(self.folder):
            self.unmount()
        shutil.rmtree(self.root)

    def _make(self) -> None:
        with open(self.image, "wb") as file:
            file.truncate(_MEBIBYTES << 20)
        _run("mkfs.ext4", "-q", "-F", self.image)
        self.mount()

    def renew(self) -> None:
        """It is empty and mounted."""
        self.unmount()
        self._make()

    def mount(self) -> None:
        """Mount it; the first time after a cut that replays the log."""
        _run("mount", "-o", "loop", self.image, self.folder)

    def unmount(self) -> None:
        """Take it out; whoever was writing must be gone."""
        _run("umount", self.folder)

    def cut(self) -> float:
        """Cut the power; the moment on the monotonic clock just before."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            at = time.monotonic()
            fcntl.ioctl(fd, _SHUTDOWN, struct.pack("I", _WITHOUT_LOG_FLUSH))
        finally:
            os.close(fd)
        return at


def cut_power(
    *, cuts: int, acks: int, seed: int, tree: str | None = None, until_lost: bool = False
) -> Cuts:
    """What was lost in *cuts* power cuts, or in as many as it takes for *acks* lines.

    *until_lost*: the first loss is enough.
    """
    chance = luck(seed)
    began, number = time.monotonic(), 0
    acked = lost = with_loss = damaged = 0
    expected: set[str] = set()
    with Disk() as disk, tempfile.TemporaryDirectory(prefix="zdo-cut-", dir="/tmp") as folder:
        while (number < cuts or acked < acks) and not (until_lost and lost):
            wait_s = chance.uniform(SHORTEST_S, LONGEST_S)
            stamps = _written_until_cut(disk, folder, tree or str(ROOT), number, wait_s)
            kept, whole = _found(disk)
            # What an earlier cut has left must outlast this one too.
            gone = (expected | stamps) - kept
            expected = (expected | stamps) & kept
            acked, lost = acked + len(stamps), lost + len(gone)
            with_loss, damaged = with_loss + bool(gone), damaged + (not whole)
            number += 1
            if number % _CUTS_A_DISK == 0:
                disk.renew()
                expected = set()
    return Cuts(number, acked, lost, with_loss, damaged, time.monotonic() - began)


def _written_until_cut(disk: Disk, folder: str, tree: str, number: int, wait_s: float) -> set[str]:
    """The lines that were acknowledged before the power went; it is back afterwards."""
    Path(folder, "zdo.toml").write_text(CONFIG.format(session=T, postbox=P), encoding="utf-8")
    env = {
        "HOME": folder,
        "PATH": "/usr/bin:/bin",
        "ZDO_CONFIG": f"{folder}/zdo.toml",
        "ZDO_STATE_DIR": f"{disk.folder}/state",
    }
    take, give = os.pipe()
    argv = [sys.executable, WRITER, tree, f"c{number}", str(give)]
    writer = subprocess.Popen(argv, env=env, pass_fds=(give,), stdin=subprocess.DEVNULL)
    os.close(give)
    with os.fdopen(take, "rb") as acks:
        first = acks.readline()
        time.sleep(wait_s)
        at = disk.cut()
        writer.kill()
        writer.wait()
        told = [first, *acks.readlines()]
    disk.unmount()
    disk.mount()
    whole = (line.split() for line in told if line.endswith(b"\n"))
    return {text.decode() for stamp, text in whole if float(stamp) < at}


def _found(disk: Disk) -> tuple[set[str], bool]:
    """The lines in the spool, and whether the database is whole."""
    path = f"{disk.folder}/state/zdo.db"
    try:
        link = sqlite3.connect(path)
        try:
            texts = {body.decode() for (body,) in link.execute("SELECT body FROM line")}
            (said,) = link.execute("PRAGMA integrity_check").fetchone()
        finally:
            link.close()
    except sqlite3.DatabaseError:
        return set(), False
    return texts, said == "ok"


def _run(program: str, *words: str) -> None:
    path = shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    subprocess.run([str(path), *words], check=True, capture_output=True)
