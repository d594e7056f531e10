"""Processes: a pid and its start time name one process, and only a living one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.processes import Processes

if TYPE_CHECKING:
    from collections.abc import Iterator

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs as long as the test."""
    with subprocess.Popen(["sleep", "600"]) as running:
        yield running
        running.kill()


def ps_says(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put a program named `ps` first on PATH."""
    ps = folder / "ps"
    ps.write_text("#!/bin/sh\n" + script)
    ps.chmod(0o700)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@linux
def test_a_token_is_field_22_of_stat(child: subprocess.Popen[bytes]) -> None:
    """The token is what Claude Code calls procStart."""
    stat = Path(f"/proc/{child.pid}/stat").read_text()

    assert stat.split()[21] == Processes().start_token(child.pid)


@linux
def test_a_name_with_brackets_and_blanks_moves_no_field(tmp_path: Path) -> None:
    """A process may choose its name, not its start time."""
    odd = tmp_path / "a) Z 1 ("
    odd.symlink_to(sys.executable)
    program = "import sys; print(open('/proc/self/stat').read().rpartition(')')[2], flush=True)"
    program += "; sys.stdin.read()"
    argv = [str(odd), "-IS", "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        after = running.stdout.readline().split()
        assert b"a) Z 1 (" in Path(f"/proc/{running.pid}/stat").read_bytes()

        assert after[19].decode() == Processes().start_token(running.pid)
        running.kill()


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_what_has_ended_has_no_token(platform: str) -> None:
    """An ended process and an unreaped one are both nobody."""
    with subprocess.Popen([sys.executable, "-IS", "-c", "pass"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        zombie = Processes(platform).start_token(child.pid)

    assert zombie is None
    assert Processes(platform).start_token(child.pid) is None


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("pid", [0, -1, -(2**70), 2**31, 2**70])
def test_a_number_that_is_no_pid_has_no_token(platform: str, pid: int) -> None:
    """Group numbers and numbers beyond the kernel's never reach a system call."""
    assert Processes(platform).start_token(pid) is None


@linux
@pytest.mark.parametrize(
    "stat",
    [
        None,
        b"",
        b"7",
        b"7 (sleep) S 1 2 3",
        b"7 (sleep) Z" + b" 1" * 30,
        b"7 (sleep) X" + b" 1" * 30,
    ],
)
def test_a_stat_without_a_living_process_has_no_token(tmp_path: Path, stat: bytes | None) -> None:
    """Ended while it was read, ended and not reaped, or cut short: nobody."""
    (tmp_path / "7").mkdir()
    if stat is None:
        # Opens like the file of the living and fails to be read like that of the dead.
        (tmp_path / "7" / "stat").symlink_to("/proc/self/mem")
    else:
        (tmp_path / "7" / "stat").write_bytes(stat)

    (tmp_path / "self").mkdir()

    assert Processes("linux", proc=str(tmp_path)).start_token(7) is None


@linux
def test_where_proc_is_hidden_ps_is_asked(tmp_path: Path, child: subprocess.Popen[bytes]) -> None:
    """An empty /proc would make every process look ended."""
    processes = Processes("linux", proc=str(tmp_path))

    assert Processes("darwin").start_token(child.pid) == processes.start_token(child.pid)
    assert (False, None) == (processes.comparable(), processes.domain())


def test_a_ps_that_hangs_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    """Twenty sessions do not cost twenty time-outs."""
    calls = tmp_path / "calls"
    ps_says(monkeypatch, tmp_path, f"echo >> {calls}; exec sleep 60")
    monkeypatch.setattr("registry.processes._PS_SECONDS", 0.2)
    processes = Processes("darwin")

    assert ["", "", ""] == [processes.start_token(child.pid) for _ in range(3)]
    assert 1 == len(calls.read_text().splitlines())


@linux
def test_the_domain_is_spelled_as_claude_code_does() -> None:
    """Machine and pid name space together; asked for once."""
    processes = Processes()
    machine = Path("/etc/machine-id").read_text().strip()

    assert f"linux:{machine}:{os.readlink('/proc/self/ns/pid')}" == processes.domain()
    assert processes.domain() is processes.domain()


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_without_a_machine_id_the_domain_is_unknown(tmp_path: Path, content: str | None) -> None:
    """An unknown domain is None and never a half."""
    if content is not None:
        (tmp_path / "machine-id").write_text(content)

    assert Processes("linux", etc=str(tmp_path)).domain() is None


def test_elsewhere_domains_are_unknown_and_tokens_do_not_compare() -> None:
    """MacOS writes another spelling into its rows."""
    assert Processes("darwin").domain() is None
    assert Processes("darwin").comparable() is False
    assert Processes("linux").comparable() is True


def test_own_uid_is_the_effective_one() -> None:
    """Files are ours as the kernel sees it."""
    assert os.geteuid() == Processes().own_uid()


def test_ps_gives_a_token_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    """Blanks of the column layout do not count."""
    script = 'test "$LC_ALL $*" = "C -o stat= -o lstart= -p %d" && '
    script += "echo 'Ss   Mon  Nov 30 14:24:04 2026    '"
    ps_says(monkeypatch, tmp_path, script % child.pid)

    assert Processes("darwin").start_token(child.pid) == "Mon Nov 30 14:24:04 2026"


def test_the_real_ps_agrees_with_itself(child: subprocess.Popen[bytes]) -> None:
    """Two looks at one process are one token."""
    processes = Processes("darwin")
    token = processes.start_token(child.pid)

    assert token is not None
    assert token == processes.start_token(child.pid)


def test_without_ps_a_living_process_is_still_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    """A missing ps costs the start time, never the answer."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert Processes("darwin").start_token(child.pid) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_process_of_somebody_else_is_alive() -> None:
    """What we may not signal does run."""
    with subprocess.Popen(["sleep", "600"], user=12345) as child:
        os.seteuid(65534)
        try:
            with pytest.raises(PermissionError):
                os.kill(child.pid, 0)
            token = Processes("darwin").start_token(child.pid)
        finally:
            os.seteuid(0)
            child.kill()

    assert token is not None


def test_a_stopped_process_is_alive(child: subprocess.Popen[bytes]) -> None:
    """Ctrl-Z is not an end."""
    before = Processes().start_token(child.pid)
    os.kill(child.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child.pid}/stat").read_text().split()[2] != "T":
        assert time.monotonic() < deadline

    assert before == Processes().start_token(child.pid)
