"""The ear that stays: it hears the last word on each line, and always comes to an end."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import tempfile
import time

import pytest

from carrier import proof
from carrier.late import LATE, read_late
from carrier.notices import Ear
from carrier.proof import Notice
from carrier.stay import STAY_S, Held, held_in, stay, withdraw_from_the_run
from registry.clock import Clock
from registry.processes import Processes
from tests.fakes.ears import descriptors, ear_of
from tests.fakes.envelopes import MSG, a_round, receipt_for
from tests.fakes.runs import in_child, limited, runs, status_of, wait_for

OTHER = "e0000000-0000-4000-8000-000000000002"
HELD = Notice("held")


@pytest.fixture
def short():
    """A folder with a short path, where reply sockets may stand."""
    with tempfile.TemporaryDirectory(prefix="zdo-", dir="/tmp") as folder:
        yield folder


@pytest.fixture
def target():
    """A process that runs until the test is over."""
    pid = in_child(lambda: time.sleep(60))
    yield pid
    end(pid)


def end(pid):
    """The child *pid* is gone and reaped, if it was not before."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def line(root, pid, msg_id=MSG):
    """A held line with a folder of its own."""
    folder = f"{root}/{msg_id}"
    os.mkdir(folder)
    return Held(folder, msg_id, pid)


def notice(status, msg_id=MSG):
    """What a target sends, as bytes."""
    words = {"type": "control", "action": "peer_message_status", "status": status}
    return json.dumps(words | {"orig_msg_id": msg_id}).encode() + b"\n"


def say(ear, *statuses, msg_id=MSG):
    """A target calls and hangs up, once for each of *statuses*."""
    for status in statuses:
        with socket.socket(socket.AF_UNIX) as conn:
            conn.connect(ear.path)
            conn.sendall(notice(status, msg_id))


def statuses(folder):
    """What was heard late of the line in *folder*."""
    return [each.status for each in read_late(folder)]


class Jumping(Clock):
    """A clock on which nothing is waited for, and each look is *step* seconds later."""

    def __init__(self, step=0.0):
        self.at, self.step, self.slept = 0.0, step, []

    def monotonic(self):
        """Later than before."""
        self.at += self.step
        return self.at

    def sleep(self, seconds):
        """Not at all; what was asked for is noted."""
        self.slept.append(seconds)


# -- which lines are waited for


def laid(root, *receipts):
    """The lead of a run whose lines have *receipts*; None: it has none."""
    folders = []
    for envelope, receipt in zip(a_round(len(receipts)), receipts, strict=True):
        folders.append(f"{root}/{envelope.delivery_id}.1")
        os.mkdir(folders[-1])
        if receipt is not None:
            proof.leave_receipt(folders[-1], receipt_for(envelope, **receipt))
    if len(folders) > 1:
        proof.write_round(folders[0], map(os.path.basename, folders[1:]))
    return folders


def test_the_held_lines_of_a_run_are_those_whose_receipts_say_so(tmp_path):
    """Held and no more; answered, unheld, unwritten and unknown ones are not waited for."""
    untouched = {"wrote": False, "eof": False, "found": "wrapper-trouble", "pid": None}
    folders = laid(
        tmp_path,
        {"notices": (HELD,)},
        {"notices": (HELD, Notice("denied"))},
        {"notices": ()},
        {"notices": (Notice("expired", "refused"),)},
        None,
        {"notices": (HELD,), "pid": 77},
        untouched | {"notices": (HELD,)},
        {"notices": (Notice("unreadable"), HELD)},
    )

    held = held_in(folders[0])

    assert [(folders[0], 4201), (folders[5], 77), (folders[7], 4201)] == [
        (each.folder, each.pid) for each in held
    ]
    assert [a_round(8)[at].msg_id for at in (0, 5, 7)] == [each.msg_id for each in held]


def test_a_lone_line_is_looked_at_alone(tmp_path):
    """Without a list of others there are none; a torn receipt says nothing."""
    [folder] = laid(tmp_path, {"notices": (HELD,)})

    assert [folder] == [each.folder for each in held_in(folder)]
    with open(f"{folder}/{proof.RECEIPT}", "wb") as file:
        file.write(b"{")
    assert () == held_in(folder)


# -- out of the run


def leave(folder, keep, report):
    """Leave the run in *folder*; what the process is then goes to *report*, and it stays."""

    def act():
        withdraw_from_the_run(folder, (*keep(), report), Processes())
        shown = {"sid": os.getsid(0), "pgid": os.getpgid(0), "open": descriptors(os.getpid())}
        os.write(report, json.dumps(shown).encode())

    return act


@pytest.mark.parametrize("listed", [True, False])
def test_whoever_leaves_a_run_takes_nothing_along(tmp_path, listed):
    """A session of its own; its sockets, /dev/null three times, and a name for the keeper."""
    folder = str(tmp_path)
    lease = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(lease, True)
    heard, report = os.pipe()

    def keep():
        kept = socket.socket(socket.AF_UNIX)
        os.dup2(kept.detach(), 40)
        if not listed:
            os.listdir = _unlisted
        return (40,)

    pid = in_child(leave(folder, keep, report))
    os.close(report)
    shown = json.loads(os.read(heard, 4096))
    assert status_of(pid) == 0

    left = {int(number): what for number, what in shown["open"].items()}
    assert (pid, pid) == (shown["sid"], shown["pgid"])
    null = dict.fromkeys((0, 1, 2), os.devnull)
    assert null | {report: "pipe", 40: "socket"} == left
    with open(f"{folder}/{proof.EAR}", encoding="ascii") as file:
        assert file.read().startswith(f"{pid} ")
    for fd in (lease, heard):
        os.close(fd)


_listdir = os.listdir


def _unlisted(folder):
    if folder == "/dev/fd":
        raise OSError
    return _listdir(folder)


def test_a_stream_that_is_ours_is_kept(tmp_path):
    """A caller with closed streams: what must be kept may have one of their numbers."""
    heard, report = os.pipe()

    def act():
        os.dup2(report, 1)
        leave(str(tmp_path), lambda: (1,), report)()
        os.write(1, b"!")

    pid = in_child(act)
    os.close(report)
    assert status_of(pid) == 0
    with open(heard, "rb") as file:
        told = file.read()
    assert told.endswith(b"!")
    open_ = json.loads(told[:-1])["open"]
    assert [os.devnull, "pipe", os.devnull] == [open_[str(number)] for number in range(3)]


def test_the_name_is_of_the_one_who_leaves(tmp_path):
    """The keeper finds it while it runs, and nobody afterwards."""
    waits, go = os.pipe()

    def act():
        withdraw_from_the_run(str(tmp_path), (waits,), Processes())
        os.read(waits, 1)

    pid = in_child(act)
    assert pid == wait_for(lambda: ear_of(str(tmp_path)))
    os.write(go, b".")
    assert status_of(pid) == 0
    assert ear_of(str(tmp_path)) is None
    for fd in (waits, go):
        os.close(fd)


# -- until the last word


@pytest.mark.parametrize("last", ["denied", "expired", "delivered", "dropped"])
def test_the_last_word_is_in_the_folder(short, tmp_path, target, last):
    """All that was ever said of the line; then nobody stays, and no socket."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    say(ear, "held", last)

    stay([held], [ear], Clock(), Processes())

    assert ["held", last] == statuses(held.folder)
    assert [] == os.listdir(short)


def test_what_is_not_the_last_word_is_waited_behind(short, tmp_path, target):
    """Noise, strangers' lines, one more `held`, a status that nobody knows."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    say(ear, "held", "held", "quarantined")
    say(ear, "denied", msg_id=OTHER)
    teller = in_child(lambda: (time.sleep(0.3), say(ear, "denied")))

    stay([held], [ear], Clock(), Processes())

    assert status_of(teller) == 0
    assert ["held", "held", "quarantined", "denied"] == statuses(held.folder)


def test_each_line_gets_its_own_word(short, tmp_path, target):
    """Two targets with doors in two folders, three lines; it stays until the last is answered."""
    third = "e0000000-0000-4000-8000-000000000003"
    lines = [line(tmp_path, target, each) for each in (MSG, OTHER, third)]
    os.mkdir(f"{short}/b")
    ears = [Ear(short, 7, [MSG, third]), Ear(f"{short}/b", 7, [OTHER])]

    def tell():
        say(ears[0], "denied")
        wait_for(lambda: statuses(lines[0].folder))
        assert [[], []] == [statuses(each.folder) for each in lines[1:]]
        say(ears[1], "held", "expired", msg_id=OTHER)
        wait_for(lambda: statuses(lines[1].folder))
        say(ears[0], "delivered", msg_id=third)

    teller = in_child(tell)
    stay(lines, ears, Clock(), Processes())

    assert status_of(teller) == 0
    assert [["denied"], ["held", "expired"], ["delivered"]] == [
        statuses(each.folder) for each in lines
    ]
    assert (["b"], []) == (os.listdir(short), os.listdir(f"{short}/b"))


def test_a_word_is_left_as_soon_as_it_is_heard(short, tmp_path, target):
    """Within a moment, not at the next second."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    teller = in_child(lambda: (time.sleep(0.1), say(ear, "denied")))
    began = time.monotonic()

    stay([held], [ear], Clock(), Processes())

    assert time.monotonic() - began < 0.9
    assert status_of(teller) == 0


# -- the other ends


@pytest.mark.parametrize("reaped", [True, False])
def test_a_target_that_was_killed_is_not_waited_for(short, tmp_path, target, reaped):
    """It took the line along, and tells nobody."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    say(ear, "held")
    killer = in_child(lambda: (time.sleep(0.3), os.kill(target, signal.SIGKILL)))
    if reaped:
        os.waitpid(killer, 0)
        os.waitpid(target, 0)

    stay([held], [ear], Clock(), Processes())

    assert not runs(target)
    assert [] == statuses(held.folder)
    assert [] == os.listdir(short)
    if not reaped:
        assert status_of(killer) == 0


class Telling(Processes):
    """A machine on which a target says its last word and ends while one looks for it."""

    def __init__(self, last_word):
        super().__init__()
        self.last_word, self.looks = last_word, 0

    def start_token(self, pid):
        """It runs at the first look, and is gone at the second."""
        self.looks += 1
        if self.looks == 1:
            return super().start_token(pid)
        if self.looks == 2:
            self.last_word()
        return None


def test_the_last_word_of_a_target_that_ends_is_heard(short, tmp_path, target):
    """Said a moment before its end: looked for after the end was seen."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    say(ear, "held")
    machine = Telling(lambda: say(ear, "expired"))

    stay([held], [ear], Jumping(), machine)

    assert 2 == machine.looks
    assert ["held", "expired"] == statuses(held.folder)


class Recycling(Processes):
    """A machine that gives the number of a target away; *then* is what it shows afterwards."""

    def __init__(self, first, then):
        super().__init__()
        self.shown = iter([first, then])
        self.then = then

    def start_token(self, _pid):
        """When it started, at this look."""
        return next(self.shown, self.then)


@pytest.mark.parametrize(("first", "then"), [("1", "2"), ("1", None), (None, "2"), ("", None)])
def test_a_target_whose_number_is_anothers_has_ended(short, tmp_path, first, then):
    """Also one that had ended before anybody stayed."""
    held, ear = line(tmp_path, 4201), Ear(short, 7, [MSG])
    say(ear, "held")

    stay([held], [ear], Jumping(), Recycling(first, then))

    assert [] == os.listdir(short)


@pytest.mark.parametrize(("first", "then"), [("1", "1"), ("1", ""), ("", "")])
def test_a_target_of_which_nothing_is_known_still_runs(short, tmp_path, first, then):
    """A machine that does not say since when: until the time is over."""
    held, ear = line(tmp_path, 4201), Ear(short, 7, [MSG])
    say(ear, "held")
    clock = Jumping(step=STAY_S / 2)

    stay([held], [ear], clock, Recycling(first, then))

    assert [0.05] == clock.slept
    assert [] == os.listdir(short)


def test_a_settled_line_is_not_waited_for(short, tmp_path, target):
    """Whoever knows its verdict has removed its folder; the others are still waited for."""
    gone, held = line(tmp_path, target), line(tmp_path, target, OTHER)
    ear = Ear(short, 7, [MSG, OTHER])
    os.rmdir(gone.folder)
    teller = in_child(lambda: (time.sleep(0.3), say(ear, "denied", msg_id=OTHER)))

    stay([gone, held], [ear], Clock(), Processes())

    assert status_of(teller) == 0
    assert ["denied"] == statuses(held.folder)
    assert [OTHER] == os.listdir(tmp_path)


def test_a_folder_that_goes_ends_it(short, tmp_path, target):
    """Within a second or so."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    clerk = in_child(lambda: (time.sleep(0.2), os.rmdir(held.folder)))
    began = time.monotonic()

    stay([held], [ear], Clock(), Processes())

    assert time.monotonic() - began < 5
    assert status_of(clerk) == 0
    assert [] == os.listdir(short)


def test_a_word_for_a_folder_that_went_is_nobodys(short, tmp_path, target):
    """No error, and no folder comes back."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    os.rmdir(held.folder)
    say(ear, "denied")

    stay([held], [ear], Clock(), Processes())

    assert [] == os.listdir(tmp_path)


def test_its_time_is_limited(short, tmp_path, target):
    """Eleven minutes after it began nobody stays, whatever the owner of the target does."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    clock = Jumping(step=STAY_S / 3)

    stay([held], [ear], clock, Processes())

    assert 2 == len(clock.slept)
    assert (660.0, []) == (STAY_S, statuses(held.folder))
    assert [] == os.listdir(short)


def test_on_a_full_disk_it_ends_without_a_word(short, tmp_path, target):
    """A later look knows less; the other line's word is not lost by it."""
    lost, held = line(tmp_path, target), line(tmp_path, target, OTHER)
    ear = Ear(short, 7, [MSG, OTHER])
    say(ear, "held", "denied")

    class Refilled(Clock):
        """While the first word is left the disk is full, and then not."""

        def sleep(self, _seconds):
            """When one looks for the second time there is room again, and the other is told."""
            full = resource.getrlimit(resource.RLIMIT_FSIZE)[0] == 0
            if full and os.path.lexists(f"{lost.folder}/{LATE}.new"):
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                say(ear, "held", "denied", msg_id=OTHER)

    with limited(resource.RLIMIT_FSIZE, 0):
        stay([lost, held], [ear], Refilled(), Processes())

    assert ([], ["held", "denied"]) == (statuses(lost.folder), statuses(held.folder))


class Stopped(BaseException):
    """What a signal's handler raises."""


def test_a_stop_in_the_middle_leaves_no_socket(short, tmp_path, target):
    """Whatever cuts in."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    say(ear, "held")

    class Stopping(Clock):
        def sleep(self, _seconds):
            raise Stopped

    with pytest.raises(Stopped):
        stay([held], [ear], Stopping(), Processes())

    assert [] == os.listdir(short)


def test_without_a_held_line_nobody_stays(short):
    """Not for a moment."""
    ear = Ear(short, 7, [MSG])
    clock = Jumping()

    stay([], [ear], clock, Processes())

    assert [] == clock.slept
    assert [] == os.listdir(short)


def test_a_crowd_of_strangers_does_not_keep_it_busy(short, tmp_path, target):
    """Callers who say nothing, and more who are not let in: a pause after each look."""
    held, ear = line(tmp_path, target), Ear(short, 7, [MSG])
    crowd = []
    for _ in range(20):
        crowd.append(socket.socket(socket.AF_UNIX))
        crowd[-1].connect(ear.path)
    clock = Jumping(step=STAY_S / 10)

    stay([held], [ear], clock, Processes())

    assert [0.05] * 9 == clock.slept
    for conn in crowd:
        conn.close()
