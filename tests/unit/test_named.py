"""A process on disk: found again by pid and start time together, or not at all."""

from __future__ import annotations

import os
import stat
import time

import pytest

from carrier.named import still_runs, write_down
from registry.processes import Processes
from tests.fakes.runs import die, in_child, status_of, stumble


class Unknowing(Processes):
    """A machine that does not say when a process started."""

    def start_token(self, _pid):
        """Nothing, though it runs."""
        return ""


@pytest.fixture
def path(tmp_path):
    """Where a process is written down."""
    return f"{tmp_path}/who"


def written(path, content):
    """*path*, with *content*."""
    with open(path, "wb") as file:
        file.write(content)
    return path


def test_a_process_that_runs_is_found(path):
    """By exactly what was written: pid, blank, start time; the file is the owner's alone."""
    write_down(path, os.getpid(), Processes())

    token = Processes().start_token(os.getpid())
    with open(path, encoding="ascii") as file:
        assert f"{os.getpid()} {token}" == file.read()
    assert 0o600 == stat.S_IMODE(os.stat(path).st_mode)
    assert os.getpid() == still_runs(path, Processes())


def test_the_later_one_replaces_the_earlier(path):
    """A longer name leaves no tail."""
    written(path, b"4194303 99999999999999999999")

    write_down(path, os.getpid(), Processes())

    assert os.getpid() == still_runs(path, Processes())


def test_a_process_that_ended_is_nobody(path):
    """Also while nobody has reaped it."""
    pid = in_child(lambda: time.sleep(60))
    write_down(path, pid, Processes())
    assert pid == still_runs(path, Processes())

    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    assert still_runs(path, Processes()) is None
    status_of(pid)
    assert still_runs(path, Processes()) is None


def test_one_that_ended_before_it_was_written_down_is_nobody(path):
    """There is no start time to write."""
    pid = in_child(lambda: None)
    status_of(pid)

    write_down(path, pid, Processes())

    with open(path, encoding="ascii") as file:
        assert f"{pid} " == file.read()
    assert still_runs(path, Processes()) is None


@pytest.mark.parametrize(
    "name",
    ["", "{pid}", "{pid} ", "{pid} 1", "{pid}  {token}", "{pid} {token} ", "x {token}", "0 {token}",
     "1 {init}", "-1 {token}", "{pid}\n{token}", "\xff", "9" * 30 + " 1"],
)  # fmt: skip
def test_what_is_no_name_or_anothers_is_nobody(path, name):
    """Torn, recycled, out of range; and the first process of all is never meant."""
    token_of = Processes().start_token
    name = name.format(pid=os.getpid(), token=token_of(os.getpid()), init=token_of(1))

    assert still_runs(written(path, name.encode("latin-1")), Processes()) is None


@pytest.mark.parametrize("how", ["missing", "folder", "pipe", "large"])
def test_what_cannot_be_read_is_nobody(path, how):
    """Whatever lies there, it is not waited for."""
    if how == "folder":
        os.mkdir(path)
    if how == "pipe":
        os.mkfifo(path)
    if how == "large":
        written(path, b" " * (2 << 20))

    assert still_runs(path, Processes()) is None


def test_where_the_start_time_is_unknown_nobody_is_named(path):
    """A pid alone names nobody."""
    write_down(path, os.getpid(), Unknowing())

    assert still_runs(path, Unknowing()) is None


def test_a_link_is_not_followed(path):
    """Nothing outside the folder is written."""
    elsewhere = f"{path}-elsewhere"
    os.symlink(elsewhere, path)

    with pytest.raises(OSError, match="symbolic links"):
        write_down(path, os.getpid(), Processes())
    assert not os.path.lexists(elsewhere)


def test_killed_at_any_step_it_names_the_process_or_nobody(path):
    """Never half of a number, which might be another's."""
    pid = os.getpid()
    for at in range(1, 10):
        if os.path.lexists(path):
            os.unlink(path)

        def act(at=at):
            stumble(at, die)
            write_down(path, pid, Processes())

        over = status_of(in_child(act)) == 0
        assert still_runs(path, Processes()) in ({pid} if over else {pid, None})
        if over:
            break
    assert at > 2
