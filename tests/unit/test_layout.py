"""The folders of a run: in place with their permits, or not there."""

from __future__ import annotations

import errno
import json
import os
import resource
import stat
import time
from pathlib import Path

import pytest

from carrier import proof
from carrier.argv import settings
from carrier.errors import AttemptExists
from carrier.family import signal_each
from carrier.layout import carrier_runs, clear, prepare
from carrier.named import write_down
from registry.errors import LeaseBusy
from registry.processes import Processes
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, MSG, P, a_receipt, a_round, an_envelope
from tests.fakes.evidence import OTHER
from tests.fakes.runs import die, fail, in_child, limited, status_of, stumble

# More steps than any of the tests below takes.
ENOUGH = 200


@pytest.fixture
def attempts(tmp_path):
    """The folder of all attempts."""
    folder = tmp_path / "attempts"
    folder.mkdir()
    return folder


def folders_in(attempts, envelopes):
    """Where the attempts of *envelopes* stand."""
    return tuple(f"{attempts}/{each.delivery_id}.{each.attempt}" for each in envelopes)


def lay_out(attempts, envelopes, command="the wrapper"):
    """The folders of *envelopes*, laid out."""
    folders = folders_in(attempts, envelopes)
    prepare(folders, envelopes, command)
    return folders


def assert_laid_out(attempts, envelopes):
    """Exactly the folders of *envelopes* stand, and exactly what belongs into each."""
    folders = folders_in(attempts, envelopes)
    assert sorted(map(os.path.basename, folders)) == sorted(os.listdir(attempts))
    assert envelopes == tuple(map(proof.peek, folders))
    lead, *others = (sorted(os.listdir(each)) for each in folders)
    assert [proof.PERMIT] * len(others) == [name for each in others for name in each]
    rounds = [proof.ROUND] if others else []
    assert [proof.DISPATCHER, proof.PERMIT, *rounds, proof.SETTINGS] == lead
    assert tuple(map(os.path.basename, folders[1:])) == proof.read_round(folders[0])


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_run_is_laid_out_with_a_folder_for_each_line(attempts, count):
    """All have their permits; the lead, and nobody else, the settings and the others' names."""
    envelopes = a_round(count)

    folders = lay_out(attempts, envelopes)

    assert_laid_out(attempts, envelopes)
    with open(f"{folders[0]}/{proof.SETTINGS}", "rb") as file:
        assert settings("the wrapper", 15) == file.read()
    paths = [f"{folder}/{name}" for folder in folders for name in os.listdir(folder)]
    assert {0o700} == {stat.S_IMODE(os.stat(folder).st_mode) for folder in folders}
    assert {0o600} == {stat.S_IMODE(os.stat(path).st_mode) for path in paths}


@pytest.mark.parametrize(("count", "flushes"), [(1, 3), (2, 4), (100, 102)])
def test_each_line_is_flushed_once(attempts, count, flushes):
    """Beside them the permit of the lead and the names of all; a lone line as ever."""
    counted = os.path.join(os.path.dirname(attempts), "counted")

    def act():
        marks = os.open(counted, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        write = os.write
        stumble(1, lambda: write(marks, b"."), lasting=True, steps=("fsync",))
        lay_out(attempts, a_round(count))

    assert status_of(in_child(act)) == 0
    assert flushes == os.path.getsize(counted)


def _torn(folder):
    Path(folder, proof.PERMIT).write_bytes(b"{")


def _permit_alone(folder):
    os.unlink(f"{folder}/{proof.SETTINGS}")


def _over(folder):
    proof.withdraw(folder)
    Path(folder, proof.RUN).touch()


@pytest.mark.parametrize("then", [lambda _: None, proof.withdraw, _permit_alone, _torn, _over])
@pytest.mark.parametrize("count", [1, 3])
def test_a_folder_that_nobody_took_from_is_made_anew(attempts, then, count):
    """A dispatcher killed before its claim left it: the door is untouched for ever."""
    left = a_round(count, nonce="older")
    for folder in lay_out(attempts, left[:1]) + lay_out(attempts, left[1:2] or left[:1]):
        if os.path.exists(f"{folder}/{proof.SETTINGS}"):
            then(folder)

    lay_out(attempts, a_round(count))

    assert_laid_out(attempts, a_round(count))


def _taken(folder):
    proof.take(folder)


def _taken_and_done(folder):
    proof.take(folder)
    proof.leave_receipt(folder, a_receipt())


def _emptied(folder):
    for name in os.listdir(folder):
        os.unlink(f"{folder}/{name}")


def _a_file(folder):
    _emptied(folder)
    os.rmdir(folder)
    Path(folder).touch()


def _a_link(folder):
    os.rename(folder, f"{folder}-elsewhere")
    os.symlink(f"{folder}-elsewhere", folder)


def _dangling(folder):
    _emptied(folder)
    os.rmdir(folder)
    os.symlink("/nowhere", folder)


def _of_another_postbox(folder):
    proof.issue(folder, replace(an_envelope(), postbox=OTHER))


def tree(folder):
    """What stands below *folder*: names, kinds and when each was changed."""
    found = []
    for place, _, _ in os.walk(folder):
        for entry in os.scandir(place):
            # Not when it was read: looking is no change.
            it = entry.stat(follow_symlinks=False)
            found.append((entry.path, it.st_mode, it.st_ino, it.st_size, it.st_ctime_ns))
    return sorted(found)


@pytest.mark.parametrize(
    "then",
    [_taken, _taken_and_done, _emptied, _a_file, _a_link, _dangling, _of_another_postbox],
)
@pytest.mark.parametrize("at", [0, 1])
def test_a_folder_with_a_history_stays_as_it_is(attempts, then, at):
    """Nobody knows how far it came, or somebody else is at it: nothing is laid out at all."""
    envelopes = a_round(3)
    [folder] = lay_out(attempts, envelopes[at : at + 1])
    then(folder)
    before = tree(attempts)

    with pytest.raises(AttemptExists, match="is left from an attempt") as caught:
        lay_out(attempts, envelopes)

    assert folder == caught.value.folder
    assert before == tree(attempts)


@pytest.mark.parametrize("count", [1, 2])
def test_an_attempt_with_a_higher_number_is_from_a_lost_journal(attempts, count):
    """Who counts from one again must not deliver again; lower numbers are our own past."""
    for name in (f"{DELIVERY}.0", f"{DELIVERY}.x", f"{MSG}.7"):
        (attempts / name).mkdir()
    later = attempts / f"{DELIVERY}.2"
    later.mkdir()
    envelopes = a_round(count)[::-1]

    with pytest.raises(AttemptExists, match=f"{DELIVERY}.2 is left"):
        lay_out(attempts, envelopes)
    assert len(os.listdir(attempts)) == 4
    later.rmdir()
    lay_out(attempts, envelopes)


@pytest.mark.parametrize("folder_there", [True, False])
def test_a_folder_that_comes_up_meanwhile_is_not_replaced(attempts, folder_there):
    """The rename into place is the last word: the others go again, this one stays."""
    envelopes = a_round(2)
    [companion] = folders_in(attempts, envelopes)[1:]

    def come_up():
        if folder_there:
            os.mkdir(companion)
        Path(companion, "permit" if folder_there else "").touch()

    def act():
        # The first rename of all is the one of the lead's permit.
        stumble(2, come_up, steps=("rename",))
        expect(AttemptExists, lambda: lay_out(attempts, envelopes))

    assert status_of(in_child(act)) == 0
    assert [os.path.basename(companion)] == os.listdir(attempts)
    assert folder_there == os.path.exists(f"{companion}/permit")


def passing(attempts, envelope, *, permit):
    """A folder that a killed dispatcher left on its way; its name."""
    folder = f"{attempts}/{envelope.delivery_id}.1.00ff.new"
    os.mkdir(folder)
    if permit:
        proof.issue(folder, envelope)
    return os.path.basename(folder)


def test_what_a_killed_dispatcher_left_on_its_way_goes(attempts):
    """Of the same deliveries, or of the postbox whose lease we hold; others may live."""
    ours, same_postbox, elsewhere, unknown = a_round(4)
    passing(attempts, ours, permit=False)
    passing(attempts, same_postbox, permit=True)
    stay = [
        passing(attempts, replace(elsewhere, postbox=OTHER), permit=True),
        passing(attempts, unknown, permit=False),
    ]

    [folder] = lay_out(attempts, (ours,))

    assert sorted([os.path.basename(folder), *stay]) == sorted(os.listdir(attempts))


def expect(error, act):
    """Nothing, when *act* raises *error*."""
    try:
        act()
    except error:
        return
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
@pytest.mark.parametrize("count", [1, 3])
def test_a_failure_at_any_step_leaves_nothing(attempts, count, number):
    """Whatever the system refuses, no folder and no permit stays behind."""
    envelopes = a_round(count)
    for at in range(1, ENOUGH):

        def act(at=at):
            stumble(at, fail(number))
            lay_out(attempts, envelopes)

        if status_of(in_child(act)) == 0:
            break
        assert [] == os.listdir(attempts)
    assert at > 8 * count
    assert_laid_out(attempts, envelopes)


def test_a_file_system_that_turns_read_only_leaves_nothing_that_counts(attempts):
    """What stands cannot be removed then, but it is untouched, and made anew later."""
    envelopes = a_round(3)
    names = ("mkdir", "rename", "unlink", "rmdir")
    for at in range(1, ENOUGH):

        def act(at=at):
            stumble(at, fail(errno.EROFS), lasting=True, steps=names)
            lay_out(attempts, envelopes)

        if status_of(in_child(act)) == 0:
            break
        lay_out(attempts, envelopes)
        assert_laid_out(attempts, envelopes)
        for folder in folders_in(attempts, envelopes):
            clear(folder)
    assert at > 5


@pytest.mark.parametrize("left", [0, 1])
def test_a_process_without_descriptors_leaves_nothing(attempts, left):
    """Also what clears the folders needs none."""
    folders = folders_in(attempts, a_round(3))
    spare = os.open(os.devnull, os.O_RDONLY)
    os.close(spare)
    with limited(resource.RLIMIT_NOFILE, spare + left):
        if left == 0:
            with pytest.raises(OSError, match="Too many open files"):
                prepare(folders, a_round(3), "the wrapper")
        else:
            prepare(folders, a_round(3), "the wrapper")
            held = [os.open(os.devnull, os.O_RDONLY) for _ in range(left)]
            for each in folders:
                clear(each)
            for each in held:
                os.close(each)

    assert [] == os.listdir(attempts)


@pytest.mark.parametrize("big", [0, 1, 2])
def test_a_permit_that_does_not_fit_leaves_nothing(attempts, big):
    """The line of one is too long for what is left: none of the round is there."""
    envelopes = list(a_round(3))
    envelopes[big] = replace(envelopes[big], line="x" * 20_000)

    with (
        limited(resource.RLIMIT_FSIZE, 10_000),
        pytest.raises(OSError, match="File too large"),
    ):
        lay_out(attempts, tuple(envelopes))

    assert [] == os.listdir(attempts)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("left", [False, True])
def test_killed_at_any_step_every_folder_that_stands_is_untouched(attempts, count, left):
    """It has its permit and no intent, and the next one to try makes everything anew."""
    envelopes = a_round(count)
    for at in range(1, ENOUGH):

        def act(at=at):
            stumble(at, die)
            lay_out(attempts, envelopes)

        if left:
            lay_out(attempts, a_round(count, nonce="older"))
        if status_of(in_child(act)) == 0:
            break
        for folder in folders_in(attempts, envelopes):
            untouched = proof.peek(folder) or os.path.exists(f"{folder}/{proof.WITHDRAWN}")
            assert untouched or not os.path.exists(folder)
            assert not os.path.exists(f"{folder}/{proof.INTENT}")
        # A lead in its place would let a wrapper look for the others.
        standing = [proof.peek(folder) for folder in folders_in(attempts, envelopes)]
        assert standing[0] != envelopes[0] or envelopes == tuple(standing)
        lay_out(attempts, envelopes)
        assert_laid_out(attempts, envelopes)
        for folder in folders_in(attempts, envelopes):
            clear(folder)
    assert at > 8 * count
    assert_laid_out(attempts, envelopes)


def test_killed_while_it_clears_no_emptied_folder_stands(attempts):
    """It is whole or out of its place, and what is left of it goes with the next lay-out."""
    envelope = an_envelope()
    for at in range(1, ENOUGH):
        [folder] = lay_out(attempts, (envelope,))
        proof.withdraw(folder)

        def act(at=at, folder=folder):
            stumble(at, die)
            clear(folder)

        if status_of(in_child(act)) == 0:
            break
        whole = os.path.exists(folder) and sorted(os.listdir(folder))
        assert whole in (False, [proof.DISPATCHER, proof.SETTINGS, proof.WITHDRAWN])
    assert at > 4
    assert [] == os.listdir(attempts)


def test_a_cleared_folder_is_gone_with_whatever_was_in_it(attempts):
    """Files that we do not know too."""
    [folder] = lay_out(attempts, (an_envelope(),))
    Path(folder, "core").touch()

    clear(folder)
    clear(folder)

    assert [] == os.listdir(attempts)


@pytest.mark.parametrize("then", [_a_file, _a_link, _dangling])
def test_what_is_no_folder_is_not_cleared(attempts, then):
    """Nothing of ours: it stays, and what a link shows stays too."""
    [folder] = lay_out(attempts, (an_envelope(),))
    then(folder)
    before = tree(attempts)

    clear(folder)

    assert before == tree(attempts)


def test_what_cannot_be_removed_stays_out_of_its_place(attempts):
    """A folder in the folder is nobody's: no error, and the attempt is gone."""
    [folder] = lay_out(attempts, (an_envelope(),))
    os.makedirs(f"{folder}/deep")

    clear(folder)

    [left] = os.listdir(attempts)
    assert left.endswith(".new")
    assert ["deep"] == os.listdir(attempts / left)


def test_the_permit_of_each_line_is_its_own(attempts):
    """Ids, nonce and line: what a wrapper takes is what the dispatcher meant."""
    envelopes = a_round(3, line="the same \u2028 text")

    folders = lay_out(attempts, envelopes)

    shown = [json.loads(Path(each, proof.PERMIT).read_bytes()) for each in folders]
    assert [each.nonce for each in envelopes] == [each["nonce"] for each in shown]
    assert envelopes == tuple(map(proof.take, folders))


LAST = "d0000000-0000-4000-8000-000000000009"


@pytest.fixture
def running():
    """A process that runs until the test is over."""
    pid = in_child(lambda: time.sleep(60))
    yield pid
    signal_each([pid], 9)
    os.waitpid(pid, 0)


BY = (proof.CARRIER, proof.DISPATCHER)


def driven(attempts, pid, by, *, taken=True):
    """The folder of a run of another line, in which the file *by* names *pid*."""
    envelope = an_envelope(delivery_id=LAST)
    [folder] = lay_out(attempts, (envelope,))
    if taken:
        proof.take(folder)
    write_down(f"{folder}/{by}", pid, Processes())
    return folder


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_a_run_that_goes_on_keeps_its_postbox(attempts, running, by, count, taken):
    """P7: who drives it, or is about to, does not know that the lock file was replaced."""
    driven(attempts, running, by, taken=taken)
    before = tree(attempts)

    assert carrier_runs(str(attempts), P)
    with pytest.raises(LeaseBusy, match="in use") as caught:
        lay_out(attempts, a_round(count))

    assert P == caught.value.postbox
    assert before == tree(attempts)


def _another_postbox(folder, _by):
    os.rename(f"{folder}/{proof.INTENT}", f"{folder}/{proof.PERMIT}")
    _of_another_postbox(folder)


def _run_is_over(folder, _by):
    Path(folder, proof.RUN).touch()


def _recycled(folder, by):
    pid = Path(folder, by).read_text(encoding="ascii").split()[0]
    Path(folder, by).write_text(f"{pid} 1", encoding="ascii")


def _ended(folder, by):
    gone = in_child(lambda: None)
    token = Path(folder, by).read_text(encoding="ascii").split()[1]
    status_of(gone)
    Path(folder, by).write_text(f"{gone} {token}", encoding="ascii")


def _unnamed(folder, by):
    os.unlink(f"{folder}/{by}")


def _nobodys(folder, _by):
    os.unlink(f"{folder}/{proof.INTENT}")


def _our_own(folder, by):
    write_down(f"{folder}/{by}", os.getpid(), Processes())


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(
    "then", [_another_postbox, _run_is_over, _recycled, _ended, _unnamed, _nobodys, _our_own]
)
def test_what_does_not_drive_the_postbox_is_in_nobodys_way(attempts, running, then, by):
    """Another postbox's run, one that is over or gone or our own, and a name that is nobody's."""
    folder = driven(attempts, running, by)
    then(folder, by)
    before = tree(folder)

    assert not carrier_runs(str(attempts), P)
    [made] = lay_out(attempts, (an_envelope(),))

    assert proof.peek(made) == an_envelope()
    assert before == tree(folder)


def test_where_no_attempt_was_ever_made_no_carrier_runs(tmp_path):
    """The folder comes with the first line."""
    assert not carrier_runs(f"{tmp_path}/none", P)
