"""K05: several at once, and a dispatcher that is killed at any moment."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import P, Rig, Said
from dispatch.rig.script import T
from registry.processes import Processes
from tests.acceptance.saying import (
    CONFIG,
    GATED,
    OTHER,
    SHELL,
    accepted,
    at_gate,
    complained,
    delivered,
    journal,
    lease,
    lease_is_held,
    open_gate,
    refused,
    shell_claude,
    shell_runs,
    story,
    wait_for,
    waits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "a0000001-0000-4000-8000-000000000001"


@pytest.fixture
def rig(own_rig) -> Iterator[Rig]:
    """A rig of the test's own; whatever is left over in it is ended."""
    yield own_rig
    for gate in ("before", "after"):
        open_gate(own_rig, gate)


def ended(process: subprocess.Popen[str]) -> Said:
    """What *process* said at its end."""
    out, err = process.communicate(timeout=30)
    return Said(subprocess.CompletedProcess((), process.returncode, out, err))


def killed(process: subprocess.Popen[str]) -> None:
    """*process* is gone by SIGKILL, its streams closed."""
    process.kill()
    assert -signal.SIGKILL == ended(process).exit


def unread(pipe: int) -> int:
    """How many bytes wait in *pipe* for its reader."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def overlaps(rig: Rig) -> list[tuple[int, int]]:
    """The pairs of carrier runs that were under way at one time."""
    pids = [entry["pid"] for entry in rig.runs()]
    times = {pid: [e["at"] for e in rig.log() if e["pid"] == pid] for pid in pids}
    spans = sorted((min(at), max(at), pid) for pid, at in times.items())
    return [(a[2], b[2]) for a, b in itertools.pairwise(spans) if b[0] < a[1]]


def test_k05_parallel_kisses_through_one_postbox_take_turns(rig):
    """K05: eight at once: all 0, the carriers' starts and ends never overlap, each line once."""
    door = rig.door()
    lines = [f"line {n}" for n in range(8)]

    kisses = [rig.start("kiss", "--json", "fable", line) for line in lines]
    told = [delivered(ended(kiss)) for kiss in kisses]

    assert ["surfaced"] * 8 == [each["proof"] for each in told]
    assert (8, []) == (len(rig.runs()), overlaps(rig))
    assert sorted(lines) == sorted(door.lines())


def test_k05_kisses_through_two_postboxes_do_not_wait_for_each_other(rig):
    """K05: the lease is on the postbox; another postbox is free meanwhile."""
    own = f'[targets.own]\nsession = "{T}"\ncarrier_session = "{OTHER}"\n'
    rig.configure(CONFIG + own)
    rig.door()

    with lease(rig):
        delivered(rig.zdo("kiss", "--json", "own", "x"))
        refused(
            rig, rig.zdo("kiss", "--json", "fable", "x", "--lock-timeout", "0"), "carrier-busy", 75
        )


def test_k05_losers_that_do_not_wait_are_busy(rig):
    """K05: `--lock-timeout 0` while a carrier runs is 75 `carrier-busy`, nothing is started."""
    door = rig.door()
    shell_claude(rig, GATED)
    winner = rig.start("kiss", "--json", "fable", "first")
    at_gate(rig, "before")

    losers = [
        rig.start("kiss", "--json", "fable", f"loser {n}", "--lock-timeout", "0") for n in range(3)
    ]
    for loser in losers:
        told = refused(rig, ended(loser), "carrier-busy", 75)
        assert "refused" == told["state"]
    for gate in ("before", "after"):
        open_gate(rig, gate)

    delivered(ended(winner))
    assert ["first"] == door.lines()


def test_one_key_at_once_is_one_delivery(rig):
    """Six kisses with one key: the line is in once, and all of them say so."""
    door = rig.door()

    kisses = [rig.start("kiss", "--json", "fable", "x", "--key", "build-1") for _ in range(6)]
    said = [ended(kiss) for kiss in kisses]

    assert (["x"], 1) == (door.lines(), len(rig.runs()))
    told = [delivered(each) for each in said]
    assert 1 == len({each["delivery_id"] for each in told})
    assert {1} == {each["attempt"] for each in told}


# -- kill -9


def test_killed_before_the_acceptance_nothing_was_started(rig):
    """113: killed while it still reads the line, nothing is known, started or in the way."""
    door = rig.door()
    kiss = rig.start("kiss", "fable", "-", "--key", KEY, stdin=subprocess.PIPE)
    os.write(kiss.stdin.fileno(), b"half a li")
    wait_for(lambda: unread(kiss.stdin.fileno()) == 0, "the reading")

    killed(kiss)

    complained(rig.zdo("verify", KEY), "target-unknown", 67)
    assert ([], []) == (rig.runs(), door.calls())
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))


def test_killed_while_waiting_for_the_lease_it_was_never_accepted(rig):
    """113: killed before its turn: nothing is known of it, and its key is as new."""
    door = rig.door()
    with lease(rig):
        kiss = rig.start("kiss", "fable", "x", "--key", KEY)
        wait_for(lambda: waits(kiss), "the wait for the lease")
        killed(kiss)

    assert not accepted(rig, KEY)
    for command in ("show", "verify"):
        complained(rig.zdo(command, KEY), "target-unknown", 67)
    assert ([], []) == (rig.runs(), door.calls())
    told = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    assert (1, ["x"]) == (told["attempt"], door.lines())


def test_refused_while_waiting_for_the_lease_it_is_known_as_refused(rig):
    """K05: a busy postbox leaves a refusal in the journal, and no row in the spool."""
    door = rig.door()
    with lease(rig):
        said = rig.zdo("kiss", "--json", "fable", "x", "--key", KEY, "--lock-timeout", "0")
        refused(rig, said, "carrier-busy", 75)

    assert not accepted(rig, KEY)
    assert ["refused"] == [event["kind"] for event in story(rig, KEY)]
    complained(rig.zdo("verify", KEY), "carrier-busy", 75)
    told = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    assert (1, ["x"]) == (told["attempt"], door.lines())
    assert ["refused", "accepted", "judged"] == [event["kind"] for event in story(rig, KEY)]


def test_a_known_key_is_answered_while_the_postbox_is_in_use(rig):
    """What became of a settled line is said at once, whoever holds the lease."""
    door = rig.door()
    first = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))

    with lease(rig):
        again = rig.zdo("kiss", "--json", "fable", "x", "--key", KEY, "--lock-timeout", "0")

    assert (first, ["x"]) == (delivered(again), door.lines())


def test_killed_before_the_write_the_postbox_stays_leased_until_the_carrier_ends(rig):
    """K05, 113: the carrier lives on with the lease, delivers, and verify judges it delivered."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    carrier = at_gate(rig, "before")

    killed(kiss)

    assert lease_is_held(rig)
    assert os.path.exists(f"/proc/{carrier}")
    busy = rig.zdo("kiss", "--json", "fable", "y", "--lock-timeout", "0")
    refused(rig, busy, "carrier-busy", 75)
    complained(rig.zdo("verify", KEY), "unknown", 3)
    for gate in ("before", "after"):
        open_gate(rig, gate)
    wait_for(lambda: not lease_is_held(rig), "the end of the lease")

    told = delivered(rig.zdo("verify", "--json", KEY))
    assert ("surfaced", ["x"], 1) == (told["proof"], door.lines(), told["attempt"])
    again = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    assert (KEY, ["x"]) == (again["delivery_id"], door.lines())


def test_killed_before_the_write_its_key_waits_for_the_carrier_that_lives_on(rig):
    """113: the second kiss with the key has its turn when the first one's carrier is over."""
    door = rig.door()
    shell_claude(rig, GATED)
    killed_before_the_write(rig, alone=True)

    again = rig.start("kiss", "--json", "fable", "x", "--key", KEY)
    wait_for(lambda: waits(again), "the wait for the lease")
    for gate in ("before", "after"):
        open_gate(rig, gate)

    told = delivered(ended(again))
    assert ("surfaced", 1, ["x"]) == (told["proof"], told["attempt"], door.lines())
    assert ["accepted", "verified"] == [event["kind"] for event in story(rig, KEY)]
    assert [] == os.listdir(f"{rig.state}/attempts")


def killed_before_the_write(rig: Rig, *, alone: bool = False) -> None:
    """A dispatcher is killed while its GATED carrier has not yet started the wrapper.

    Unless it dies *alone*, keeper and carrier are killed with it, and the lease is free.
    """
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    carrier = at_gate(rig, "before")
    keeper = parent(carrier)
    killed(kiss)
    if not alone:
        for pid in (keeper, carrier):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not lease_is_held(rig), "the end of the lease")


def killed_after_the_write(rig: Rig) -> None:
    """Dispatcher and GATED carrier are killed when the line is at the door; the lease is free."""
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    at_gate(rig, "before")
    open_gate(rig, "before")
    carrier = at_gate(rig, "after")
    killed(kiss)
    os.kill(carrier, signal.SIGKILL)
    wait_for(lambda: not lease_is_held(rig), "the end of the lease")


def remove_attempts(rig: Rig) -> None:
    """Every attempt's folder is gone."""
    for name in os.listdir(f"{rig.state}/attempts"):
        shutil.rmtree(f"{rig.state}/attempts/{name}")


def empty_the_database(rig: Rig) -> None:
    """Every file of the database is gone."""
    for name in os.listdir(rig.state):
        if name.startswith("zdo.db"):
            os.unlink(f"{rig.state}/{name}")


def test_the_key_of_an_orphan_that_never_reached_the_door_delivers_once(rig):
    """113: all killed before the wrapper: the second kiss judges that, and is the one delivery."""
    door = rig.door()
    shell_claude(rig, GATED)
    killed_before_the_write(rig)
    shell_claude(rig, SHELL % "")

    told = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))

    assert (2, "surfaced", ["x"]) == (told["attempt"], told["proof"], door.lines())
    kinds = ["accepted", "verified", "accepted", "judged"]
    assert kinds == [event["kind"] for event in story(rig, KEY)]
    assert [None, "carrier-exit", None, "delivered-start"] == journal(rig, KEY)
    assert [] == os.listdir(f"{rig.state}/attempts")


@pytest.mark.parametrize(
    ("accept", "name", "status"), [("surface", "surfaced", 0), ("bare", "unknown", 3)]
)
def test_the_key_of_an_orphan_that_reached_the_door_delivers_nothing(rig, accept, name, status):
    """113: all killed after the write: the second kiss says what the transcript shows, twice."""
    door = rig.door(accept=accept)
    shell_claude(rig, GATED)
    killed_after_the_write(rig)
    shell_claude(rig, SHELL % "")

    for _ in range(2):
        told = rig.zdo("kiss", "--json", "fable", "x", "--key", KEY).json
        assert (name, status, 1) == (told["class"], told["exit"], told["attempt"])

    assert ([None, name], ["x"], 0) == (journal(rig, KEY), door.lines(), shell_runs(rig))


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("by", ["kiss", "verify"])
def test_an_orphan_whose_folder_was_removed_is_never_tried_again(rig, written, by):
    """113: without its files nothing is proved: 3, and the same key delivers nothing."""
    door = rig.door(accept="bare")
    shell_claude(rig, GATED)
    (killed_after_the_write if written else killed_before_the_write)(rig)
    remove_attempts(rig)
    shell_claude(rig, SHELL % "")

    if by == "verify":
        complained(rig.zdo("verify", KEY), "unknown", 3)
    complained(rig.zdo("kiss", "fable", "x", "--key", KEY), "unknown", 3)

    assert (["x"] if written else [], 0) == (door.lines(), shell_runs(rig))
    assert [None, "unknown"] == journal(rig, KEY)


def test_an_emptied_database_does_not_make_an_old_key_new(rig):
    """113: the intent that is still there belongs to an attempt nobody knows: 3, and it stays."""
    door = rig.door(accept="bare")
    shell_claude(rig, GATED)
    killed_after_the_write(rig)
    empty_the_database(rig)
    folder = f"{rig.state}/attempts/{KEY}.1"
    before = sorted(os.listdir(folder))
    shell_claude(rig, SHELL % "")

    for _ in range(2):
        said = rig.zdo("kiss", "--json", "fable", "x", "--key", KEY)
        told = refused(rig, said, "unknown", 3)
        assert folder in told["reason"]

    assert (["x"], 0) == (door.lines(), shell_runs(rig))
    assert before == sorted(os.listdir(folder))
    assert ["unknown", "unknown"] == journal(rig, KEY)


def test_a_withdrawn_permit_proves_its_door_untouched_also_to_an_emptied_database(rig):
    """113: the folder itself shows that the lost attempt wrote nothing, so the line goes, once."""
    door = rig.door()
    shell_claude(rig, GATED)
    killed_before_the_write(rig)
    empty_the_database(rig)
    shell_claude(rig, SHELL % "")

    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))

    assert (["x"], 1) == (door.lines(), shell_runs(rig))
    assert [] == os.listdir(f"{rig.state}/attempts")


def test_killed_after_the_write_the_next_kiss_waits_and_works(rig):
    """K05, 113: the line is in; the next kiss has its turn when the carrier is over."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    at_gate(rig, "before")
    open_gate(rig, "before")
    at_gate(rig, "after")

    killed(kiss)

    following = rig.start("kiss", "--json", "fable", "y")
    open_gate(rig, "after")
    delivered(ended(following))
    delivered(rig.zdo("verify", "--json", KEY))
    assert ["x", "y"] == door.lines()
    assert [] == os.listdir(f"{rig.state}/attempts")


@pytest.mark.parametrize("accept", ["surface", "bare"])
def test_dispatcher_and_carrier_killed_after_the_write(rig, accept):
    """13, 113: nobody is left to say it; the transcript decides, else it is `unknown`, once."""
    door = rig.door(accept=accept)
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    at_gate(rig, "before")
    open_gate(rig, "before")
    carrier = at_gate(rig, "after")

    killed(kiss)
    os.kill(carrier, signal.SIGKILL)
    wait_for(lambda: not lease_is_held(rig), "the end of the lease")

    said = rig.zdo("verify", "--json", KEY)
    told = said.json
    wanted = ("surfaced", 0) if accept == "surface" else ("unknown", 3)
    assert wanted == (told["class"], told["exit"])
    rig.zdo("kiss", "fable", "x", "--key", KEY)
    assert ["x"] == door.lines()


def test_dispatcher_keeper_and_carrier_killed_before_the_write(rig):
    """113: all three killed; the permit is withdrawn by the look, and the key may be used again."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "fable", "x", "--key", KEY)
    carrier = at_gate(rig, "before")
    keeper = parent(carrier)

    for pid in (kiss.pid, keeper, carrier):
        os.kill(pid, signal.SIGKILL)
    ended(kiss)
    wait_for(lambda: not lease_is_held(rig), "the end of the lease")

    told = rig.zdo("verify", "--json", KEY).json
    assert (76, "none") == (told["exit"], told["proof"])
    shell_claude(rig, SHELL % "")
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    assert ["x"] == door.lines()


def test_a_killed_keeper_does_not_free_the_postbox(rig):
    """K05: with the keeper gone the dispatcher ends the carrier before it says 76 or unknown."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "x", "--key", KEY)
    carrier = at_gate(rig, "before")

    os.kill(parent(carrier), signal.SIGKILL)
    said = ended(kiss)

    assert (76, "none", []) == (said.exit, said.json["proof"], door.calls())
    # Its parent is gone: whoever adopted it may not have reaped it yet.
    wait_for(lambda: Processes().start_token(carrier) is None, "the carrier's end")
    assert not lease_is_held(rig)


def parent(pid: int) -> int:
    """The parent of *pid*."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])


def asleep_before_the_lease(rig: Rig) -> subprocess.Popen[str]:
    """A kiss that was stopped while it waited for the lease, which is free by now."""
    rig.zdo("kiss", "nobody", "x")  # the database is made, so nobody is stopped making it
    with lease(rig):
        kiss = rig.start("kiss", "--json", "fable", "x", "--key", KEY)
        wait_for(lambda: waits(kiss), "the wait for the lease")
        os.kill(kiss.pid, signal.SIGSTOP)
    return kiss


def test_of_a_kiss_that_sleeps_before_the_lease_no_look_says_anything(rig):
    """113: it has accepted nothing, so nobody is told that a repeat is safe; it goes on, once."""
    door = rig.door()
    kiss = asleep_before_the_lease(rig)
    complained(rig.zdo("verify", KEY), "target-unknown", 67)

    os.kill(kiss.pid, signal.SIGCONT)

    delivered(ended(kiss))
    assert ["x"] == door.lines()


def test_a_kiss_whose_key_was_delivered_while_it_slept_delivers_nothing(rig):
    """113: whoever wakes up finds the line settled under the lease, and tells that verdict."""
    door = rig.door()
    kiss = asleep_before_the_lease(rig)
    told = delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))

    os.kill(kiss.pid, signal.SIGCONT)

    assert told == delivered(ended(kiss))
    assert (["x"], 1) == (door.lines(), len(rig.runs()))


# -- Ctrl-C


def interrupted(process: subprocess.Popen[str]) -> Said:
    """What *process* said after Ctrl-C."""
    process.send_signal(signal.SIGINT)
    return ended(process)


def test_ctrl_c_while_waiting_for_the_lease_is_130(rig):
    """130, one line and one object, nothing was started, and the key may be used again."""
    door = rig.door()
    with lease(rig):
        kiss = rig.start("kiss", "--json", "fable", "x", "--key", KEY)
        wait_for(lambda: waits(kiss), "the wait for the lease")
        refused(rig, interrupted(kiss), "interrupted", 130)

    assert not accepted(rig, KEY)
    delivered(rig.zdo("kiss", "--json", "fable", "x", "--key", KEY))
    assert ["x"] == door.lines()


def test_ctrl_c_before_the_write_ends_the_carrier(rig):
    """130: the carrier is gone, the door untouched, the lease free."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "x")
    carrier = at_gate(rig, "before")

    refused(rig, interrupted(kiss), "interrupted", 130)

    assert ([], False) == (door.calls(), os.path.exists(f"/proc/{carrier}"))
    assert not lease_is_held(rig)


def test_ctrl_c_after_the_write_says_what_the_transcript_shows(rig):
    """Ctrl-C with the line in the target's transcript is not a failure that invites a repeat."""
    door = rig.door()
    shell_claude(rig, GATED)
    kiss = rig.start("kiss", "--json", "fable", "x")
    at_gate(rig, "before")
    open_gate(rig, "before")
    at_gate(rig, "after")

    said = interrupted(kiss)

    assert (["x"], "surfaced") == (door.lines(), said.json["proof"])
    assert (0, "surfaced") == (said.exit, said.json["class"])


# -- locks


def test_a_lock_file_with_a_strangers_pid_means_nothing(rig):
    """111: what stands in a lock file is not read; only the kernel's lock counts."""
    rig.door()
    os.makedirs(f"{rig.state}/locks", 0o700)
    os.chmod(rig.state, 0o700)
    with open(f"{rig.state}/locks/{P}.lock", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.chmod(f"{rig.state}/locks/{P}.lock", 0o600)

    delivered(rig.zdo("kiss", "--json", "fable", "x", "--lock-timeout", "0"))


def test_an_unlinked_lock_file_does_not_make_two_holders(rig):
    """123: the file is taken away under a waiter, a third makes it anew: carriers never overlap."""
    door = rig.door()
    rig.install_claude(before_s=0.1)
    with lease(rig):
        waiter = rig.start("kiss", "--json", "fable", "b", "--key", KEY)
        wait_for(lambda: waits(waiter), "the wait for the lease")
        os.unlink(f"{rig.state}/locks/{P}.lock")
        third = rig.start("kiss", "--json", "fable", "c")
        delivered(ended(third))
    delivered(ended(waiter))

    assert ([], ["b", "c"]) == (overlaps(rig), sorted(door.lines()))
    assert "delivered-start" == journal(rig, KEY)[-1]
