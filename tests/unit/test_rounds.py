"""One way for a line to go: laid out, then claimed, then run; what is left wherever it ends."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest

from carrier.errors import AttemptExists
from carrier.proof import INTENT, PERMIT, RUN, peek
from dispatch import post, rounds
from dispatch.errors import DatabaseFull, KeyConflict, SpoolUnwritable
from dispatch.result import LineFacts
from registry.clock import Clock
from registry.errors import StateUnsafe
from registry.home import open_state
from registry.locks import take_lease
from tests.fakes.envelopes import P
from tests.fakes.evidence import BINDING
from tests.fakes.household import LINE, Household, asked, key_of
from tests.fakes.runs import die, fail, in_child, status_of, stumble

RAN = "echo ran >> {}/ran; exit 7"
TAKING = "cd $ZDO_CARRIER_ATTEMPT; mv permit intent; exit 7"


@pytest.fixture
def home(tmp_path):
    """A household whose claude leaves a trace and touches nothing."""
    household = Household(tmp_path)
    open_state(household.house().places)
    household.claude(RAN.format(household.root))
    yield household
    household.registry.close()


@pytest.fixture
def lease(home):
    """The lease on the postbox."""
    with contextlib.closing(taken(home)) as held:
        yield held


def taken(home):
    """The lease, or LeaseBusy."""
    return take_lease(home.house().places.locks, P, timeout_s=10, clock=Clock())


def letters(home, count=1):
    """So many letters to T, each of its own delivery."""
    house = home.house()
    made = []
    for number in range(1, count + 1):
        key = key_of(number)
        result = asked(delivery_id=key, key=key, attempt=1, line=LineFacts(len(LINE), "00"))
        made.append(post.letter(result, BINDING, house.config(), house, LINE))
    return made


def carry(home, lease, claim=lambda _: True, count=1):
    """What became of so many letters."""
    house = home.house()
    return rounds.carry(letters(home, count), lease, house.config(), house, claim)


def left(home):
    """The folders under attempts."""
    return sorted(os.listdir(f"{home.state}/attempts"))


def ran(home):
    """How often a carrier ran."""
    try:
        with open(f"{home.root}/ran", encoding="ascii") as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def test_every_letter_of_a_run_has_its_own_verdict(home, lease):
    """In their order; the folders stay until the verdicts are kept."""
    found = carry(home, lease, count=3)

    assert [key_of(n) for n in (1, 2, 3)] == [result.delivery_id for result, _ in found]
    assert {"carrier-exit"} == {result.verdict.name for result, _ in found}
    assert (1, 3) == (ran(home), len(left(home)))


def test_when_it_is_claimed_everything_is_on_disk_and_nothing_has_run(home, lease):
    """So a claimed line always has its folder, and a run has only claimed lines."""
    seen = []

    def claim(timed):
        seen.extend((peek(each.folder) == each.envelope, ran(home)) for each in timed)
        return True

    carry(home, lease, claim, count=2)

    assert [(True, 0)] * 2 == seen


def test_the_claim_knows_how_long_a_wrapper_may_take(home, lease):
    """More lines, more time; whoever judges a dead run later counts with it."""
    limits = []

    def claim(timed):
        limits.extend(each.envelope.wrapper_s for each in timed)
        return False

    carry(home, lease, claim)
    carry(home, lease, claim, count=3)

    assert limits[1] == limits[2] == limits[3] > limits[0]


def test_what_is_not_claimed_is_not_run_and_leaves_nothing(home, lease):
    """Somebody else has decided about it."""
    assert carry(home, lease, lambda _: False, count=2) is None
    assert ([], 0) == (left(home), ran(home))


@pytest.mark.parametrize("error", [KeyConflict("k", "t"), DatabaseFull("zdo.db", "full")])
def test_a_claim_that_fails_leaves_nothing_and_runs_nothing(home, lease, error):
    """A full disk, a conflict: no folder with the line in it stays behind."""

    def claim(_):
        raise error

    with pytest.raises(type(error)):
        carry(home, lease, claim, count=2)
    assert ([], 0) == (left(home), ran(home))


def test_a_claim_that_ctrl_c_came_into_keeps_its_folders(home, lease):
    """It may be on disk: only the permits that stand show then that nothing was started."""

    def claim(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry(home, lease, claim, count=2)
    assert [f"{key_of(n)}.1" for n in (1, 2)] == left(home)
    assert (2, 0) == (folders_with(home, PERMIT, 2), ran(home))


def test_a_lease_that_was_replaced_claims_nothing(home, lease):
    """Somebody else may hold the new file: it is asked again before the claim."""
    os.unlink(lease.path)
    claimed = []

    with pytest.raises(StateUnsafe, match="was replaced"):
        carry(home, lease, claimed.append)
    assert ([], [], 0) == (claimed, left(home), ran(home))


def test_a_folder_with_a_history_claims_nothing(home, lease):
    """The journal does not know it: it stays, and so does the line."""
    folder = f"{home.state}/attempts/{key_of(2)}.1"
    os.mkdir(folder)
    claimed = []

    with pytest.raises(AttemptExists, match=key_of(2)):
        carry(home, lease, claimed.append, count=3)
    assert ([], [f"{key_of(2)}.1"], 0) == (claimed, left(home), ran(home))


def test_what_cannot_be_laid_out_claims_nothing(home, lease):
    """73."""
    os.rmdir(f"{home.state}/attempts")

    with pytest.raises(SpoolUnwritable):
        carry(home, lease, lambda _: True)
    assert 0 == ran(home)


# Killed, or out of luck, at every step in the file system.

# More than there are for so many letters; a test counts them.
STEPS = {1: 24, 2: 35}
PLACES = [(count, at) for count, most in STEPS.items() for at in range(1, most)]


def carried_in_a_child(home, at, trip, count, *, runs=True):
    """How a process ended that carried so many letters and stumbled at its step *at*."""

    def act():
        held = taken(home)
        made, house = letters(home, count), home.house()
        config = house.config()

        def claim(_):
            with open(f"{home.root}/claimed", "wb"):
                return runs

        stumble(at, trip)
        rounds.carry(made, held, config, house, claim)

    return status_of(in_child(act))


def is_claimed(home):
    """Whether the claim was reached."""
    return os.path.exists(f"{home.root}/claimed")


def folders_with(home, name, count):
    """How many of the letters' folders have the file *name*."""
    folders = [f"{home.state}/attempts/{key_of(n)}.1" for n in range(1, count + 1)]
    return sum(os.path.lexists(f"{folder}/{name}") for folder in folders)


@pytest.mark.parametrize(("count", "at"), PLACES)
def test_killed_at_any_step_a_claimed_line_has_its_folder_and_an_unclaimed_one_never_ran(
    home, count, at
):
    """What stands of an unclaimed one is provably untouched, and the next run takes its place."""
    carried_in_a_child(home, at, die, count)

    if is_claimed(home):
        assert count == len([name for name in left(home) if name.endswith(".1")])
        return
    assert (0, 0, 0) == (
        ran(home), folders_with(home, INTENT, count), folders_with(home, RUN, count)
    )  # fmt: skip
    with contextlib.closing(taken(home)) as lease:
        found = carry(home, lease, count=count)
    assert {"carrier-exit"} == {result.verdict.name for result, _ in found}
    assert [f"{key_of(n)}.1" for n in range(1, count + 1)] == left(home)


@pytest.mark.parametrize(("count", "at"), PLACES)
def test_an_error_at_any_step_before_the_claim_leaves_nothing(home, count, at):
    """A disk that is full, at each call: refused, and no folder with the line in it stays."""
    status = carried_in_a_child(home, at, fail(errno.ENOSPC), count, runs=False)

    if not is_claimed(home):
        assert (1, 0, 0) == (status, ran(home), folders_with(home, PERMIT, count))


@pytest.mark.parametrize("count", STEPS)
def test_there_are_fewer_steps_than_were_tried(home, count):
    """The control: the last one is reached, and after it nothing stumbles."""
    own, taken_steps = os.getpid(), f"{home.root}/steps"

    def note():
        if os.getppid() == own:  # and no keeper of it
            with open(taken_steps, "ab") as file:
                file.write(b"1")

    for at in (STEPS[count] - 1, 1):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(taken_steps)
        assert 0 == carried_in_a_child(home, at, note, count)
        assert (at == 1) == os.path.exists(taken_steps)
