"""A kiss that is killed, or stopped by Ctrl-C, at every step that it takes in the file system.

What stands then is judged right by whoever comes next, and what was said is true.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

import pytest

from carrier.proof import INTENT
from dispatch import kept
from dispatch.errand import Order
from dispatch.kiss import kiss
from dispatch.line import line_of_text
from dispatch.verdict import NONE, QUEUE, TABLE
from dispatch.verify import verify
from registry.clock import Clock
from registry.locks import take_lease
from tests.fakes.envelopes import DELIVERY, P
from tests.fakes.household import ROOT, Household, key_of
from tests.fakes.runs import die, in_child, status_of

LINE = "tests are green"
FAILS = "echo ran >> {0}/ran; exit 7"
TAKES = "echo ran >> {0}/ran; cd $ZDO_CARRIER_ATTEMPT; mv permit intent; touch intent; sleep 0.1"

STEPS = ("mkdir", "open", "write", "fsync", "rename", "unlink", "rmdir", "listdir")
# What comes right after a commit has no name of its own but the closing of the lock.
MORE_STEPS = (*STEPS, "close", "stat", "lstat")
# More than each way takes; a test counts them.
KILLS, STOPS, STOPS_OF_QUEUE = 58, 96, 50
WAYS = {"kiss": {}, "--queue": {"queue": True}, "--or-queue": {"or_queue": True}}


@pytest.fixture
def home(tmp_path):
    """A household in which T runs."""
    household = Household(tmp_path)
    household.runs()
    household.database().close()
    yield household
    household.registry.close()


def order(key=DELIVERY, **changes):
    """A kiss that waits for whoever is still at it."""
    return Order("fable", lambda: line_of_text(LINE), "me", key=key, lock_timeout_s=20, **changes)


def ran(home):
    """How often a carrier ran."""
    try:
        with open(f"{home.root}/ran", encoding="ascii") as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


def is_ours(frame):
    """Whether the code that asks for a step is zdo's; a coverage tool takes steps too."""
    while frame.f_code.co_filename in _BETWEEN:
        frame = frame.f_back
    return frame.f_code.co_filename.startswith(OURS)


OURS = tuple(f"{ROOT}/{name}/" for name in ("registry", "carrier", "dispatch", "tests"))
_BETWEEN = (os.path.lexists.__code__.co_filename, os.path.isdir.__code__.co_filename)


def at_step(at, steps, *, before=None, after=None):
    """Let something happen *before* or *after* the *at*-th step of this process, or of its keeper.

    Ctrl-C comes after one: Python hears of it when the call is done.
    """
    taken = 0

    def counting(step):
        def taking(*words, **more):
            nonlocal taken
            taken += is_ours(sys._getframe(1))
            meant = taken == at
            taken += meant
            if meant and before:
                before()
            done = step(*words, **more)
            if meant and after:
                after()
            return done

        return taking

    for name in steps:
        setattr(os, name, counting(getattr(os, name)))


def killed_kiss(home, at, **changes):
    """A kiss is killed at its step *at*, or when it is over."""

    def act():
        at_step(at, STEPS, before=die)
        kiss(order(**changes), home.house())
        die()

    assert -9 == status_of(in_child(act))


def stopped_kiss(home, at, key=DELIVERY, **changes):
    """What a kiss said that Ctrl-C stopped at its step *at*: class, proof, delivery.

    None when the Ctrl-C came while the refusal was written down: the command itself
    says 130 then.
    """
    said = f"{home.root}/said"

    def act():
        own = os.getpid()

        def stop():
            if os.getpid() == own:
                raise KeyboardInterrupt

        at_step(at, MORE_STEPS, after=stop)
        with contextlib.suppress(KeyboardInterrupt):
            result = kiss(order(key, **changes), home.house())
            with io.FileIO(said, "w") as file:
                file.write(json.dumps([result.verdict.name, result.delivery_id]).encode())
        die()  # at once: nothing else of this process shall count

    assert -9 == status_of(in_child(act))
    if not os.path.exists(said):
        return None
    with open(said, encoding="ascii") as file:
        return json.load(file)


def rows(home):
    """Every line, in its order."""
    with home.opened() as database, database.reading() as link:
        return kept.select(link, "ORDER BY id", ())


def let_go(home):
    """Wait until nothing of a killed kiss runs any more."""
    take_lease(f"{home.state}/locks", P, timeout_s=20, clock=Clock()).close()


# Killed.


@pytest.mark.parametrize("at", range(1, KILLS))
def test_a_killed_kiss_whose_wrapper_did_nothing_leaves_no_doubt(home, at):
    """Nothing accepted, or a claimed line whose folder proves it: the next kiss simply goes."""
    home.claude(FAILS.format(home.root))

    killed_kiss(home, at)
    let_go(home)
    claimed = [line for line in rows(home) if line.state == kept.CLAIMED]
    assert all(os.path.isdir(home.folder(line.attempts - kept.FIRST)) for line in claimed)
    before = ran(home)
    again = kiss(order(), home.house())

    assert ("carrier-exit", "dead") == (again.verdict.name, home.state_of()), again.reason
    assert ran(home) == before + 1 <= 2
    assert [] == os.listdir(f"{home.state}/attempts")


@pytest.mark.parametrize("at", range(1, KILLS))
def test_a_killed_kiss_whose_wrapper_took_the_permit_is_never_tried_again(home, at):
    """However often somebody repeats the command: one run, one doubt."""
    home.claude(TAKES.format(home.root))

    killed_kiss(home, at)
    let_go(home)
    # Its keeper may have been killed with it, and then a wrapper has its full time.
    if os.path.exists(f"{home.folder()}/{INTENT}"):
        os.utime(f"{home.folder()}/{INTENT}", (1, 1))
    said = [kiss(order(), home.house()).verdict for _ in range(3)]

    assert {3} == {verdict.exit for verdict in said}
    assert (1, 1, "uncertain") == (ran(home), len(rows(home)), home.state_of())


@pytest.mark.parametrize("at", range(1, KILLS))
def test_a_killed_kiss_that_would_keep_its_line_keeps_it_when_it_is_repeated(home, at):
    """Kept once, under its key; whatever the first one came to."""
    home.claude(FAILS.format(home.root))

    killed_kiss(home, at, or_queue=True)
    again = kiss(order(or_queue=True), home.house())

    assert ("queued", "queued", 1) == (again.verdict.name, home.state_of(), len(rows(home)))
    assert ran(home) <= 2
    assert home.line().is_whole


@pytest.mark.parametrize("at", range(1, STOPS_OF_QUEUE))
def test_a_killed_kiss_for_the_relay_has_kept_its_line_or_has_not(home, at):
    """Half a line is none; repeated under its key it is there once."""
    killed_kiss(home, at, queue=True)
    assert [True] * len(rows(home)) == [line.is_whole for line in rows(home)]
    again = kiss(order(queue=True), home.house())

    assert ("queued", 1) == (again.verdict.name, len(rows(home)))


# Stopped.


def is_true(home, said):
    """Whether what was *said*, class and delivery, is what stands."""
    name, delivery = said
    line = next((each for each in rows(home) if each.key == delivery), None)
    fate = TABLE[name].fate
    if name == "queued":
        return line is not None and line.state == kept.QUEUED
    if fate not in (QUEUE, NONE):
        return line is not None
    # "Provably not delivered": it is not there, or dead, or a look makes it so.
    if line is not None and line.state == kept.CLAIMED:
        verify(delivery, home.house())
        line = home.line(delivery)
    return line is None or line.may_be_tried


@pytest.mark.parametrize("at", range(1, STOPS))
@pytest.mark.parametrize("key", [DELIVERY, None], ids=["key", "no key"])
def test_what_a_stopped_kiss_says_is_true(home, at, key):
    """Ctrl-C at every step: never "not delivered" of a line that may be in, or waits."""
    home.claude(FAILS.format(home.root))
    said = stopped_kiss(home, at, key)

    if said is None:
        assert all(line.may_be_tried for line in rows(home))
        return
    assert is_true(home, said), said
    assert ran(home) <= 1
    if said[0] == "interrupted":
        # Whatever was laid out is gone again: the line does not lie about.
        assert [] == os.listdir(f"{home.state}/attempts")
    if said[0] in ("interrupted", "carrier-exit"):
        assert "carrier-exit" == kiss(order(said[1]), home.house()).verdict.name


@pytest.mark.parametrize("at", range(1, STOPS))
def test_what_a_stopped_kiss_that_would_keep_its_line_says_is_true(home, at):
    """Queued is only said of what waits; whoever is told 130 is sent to `zdo show`."""
    home.claude(FAILS.format(home.root))
    said = stopped_kiss(home, at, None if at % 2 else DELIVERY, or_queue=True)

    if said is None:
        assert all(line.may_be_tried for line in rows(home))
    elif said[0] != "interrupted":
        assert is_true(home, said), said
        assert said[0] in ("queued", "unknown")
    assert len(rows(home)) <= 1


@pytest.mark.parametrize("at", range(1, STOPS_OF_QUEUE))
@pytest.mark.parametrize("way", ["--queue", "--or-queue"])
def test_what_a_stopped_kiss_for_the_relay_says_is_true(home, at, way):
    """Kept and told so, or not kept and told so: repeated, it would go twice."""
    for file in os.listdir(home.registry.sessions):
        os.unlink(f"{home.registry.sessions}/{file}")
    said = stopped_kiss(home, at, None if at % 2 else DELIVERY, **WAYS[way])

    if said is None:
        assert () == rows(home)
        return
    assert said[0] in ("queued", "interrupted", "target-not-running")
    assert is_true(home, said), said
    assert (said[0] == "queued") == (len(rows(home)) == 1)


@pytest.mark.parametrize(
    ("way", "steps", "most"),
    [
        ("kiss", STEPS, KILLS),
        ("--or-queue", STEPS, KILLS),
        ("--queue", MORE_STEPS, STOPS_OF_QUEUE),
        ("kiss", MORE_STEPS, STOPS),
        ("--or-queue", MORE_STEPS, STOPS),
    ],
)
def test_a_kiss_takes_fewer_steps_than_were_tried(home, way, steps, most):
    """The control: the last one that was tried is never reached, the first one is."""
    home.claude(FAILS.format(home.root))
    kiss(order(key_of(7), **WAYS[way]), home.house())  # whatever is done only once is done
    own, trace = os.getpid(), f"{home.root}/trace"

    def act(at):
        def note():
            if os.getppid() == own:  # and no keeper of it
                with io.FileIO(trace, "a") as file:
                    file.write(b"1")

        at_step(at, steps, after=note)
        kiss(order(**WAYS[way]), home.house())
        die()

    for at in (most - 1, 1):
        assert -9 == status_of(in_child(lambda at=at: act(at)))
        assert (at == 1) == os.path.exists(trace)
