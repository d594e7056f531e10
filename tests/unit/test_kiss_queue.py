"""Kissed for the relay: what is kept, after what, and what a key says in every state."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

import pytest

from carrier.proof import INTENT, issue, take
from carrier.report import Unreadable
from dispatch import journal, keep, kept, outcome
from dispatch.errand import Order
from dispatch.house import House
from dispatch.kiss import kiss
from dispatch.line import line_of_text
from dispatch.rig.rig import Rig
from dispatch.verdict import TABLE
from registry.clock import Clock
from registry.home import find_places, open_state
from registry.ids import draw
from registry.locks import take_lease
from registry.processes import Processes
from tests.fakes.envelopes import DELIVERY, P, T, a_receipt, an_envelope
from tests.fakes.evidence import told
from tests.fakes.household import BEGAN, ROOT, Household, asked

LINE = "tests are green"
RAN = "echo ran >> {}/ran; exit 7"
TAKEN = "cd $ZDO_CARRIER_ATTEMPT; mv permit intent; sleep 0.1"


@pytest.fixture
def home(tmp_path):
    """A household in which T runs, and whose claude fails before its hook."""
    household = Household(tmp_path)
    open_state(household.house().places)
    household.runs()
    household.claude(RAN.format(household.root))
    yield household
    household.registry.close()


def order(address="fable", line=LINE, **changes):
    """A kiss of *line* to *address* under one key."""
    plain = {"address": address, "take_line": lambda: line_of_text(line), "sender": "anonymous"}
    return Order(**(plain | {"key": DELIVERY, "lock_timeout_s": 0} | changes))


def ran(home):
    """How often a carrier ran."""
    try:
        with open(f"{home.root}/ran", encoding="ascii") as file:
            return len(file.readlines())
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def leased(home):
    """The lease on the postbox, held by somebody else."""
    held = take_lease(home.house().places.locks, P, timeout_s=0, clock=Clock())
    with contextlib.closing(held):
        yield


# A key in every state, and what each way of kissing it answers.


def orphan(home, *, taken):
    """A line whose dispatcher died, and what its attempt left."""
    home.accepted()
    os.mkdir(home.folder(), 0o700)
    issue(home.folder(), an_envelope(msg_id=DELIVERY, line=LINE, claude_dir=home.claude_dir))
    if taken:
        take(home.folder())
        os.utime(f"{home.folder()}/{INTENT}", (1, 1))


def given_up(home):
    """A line that the relay has had for five days."""
    home.queued()
    gone = asked(verdict=TABLE["target-not-running"], reason="given up")
    with home.opened() as database, database.writing() as link:
        becomes = outcome.given_up()
        link.execute("UPDATE line SET state = ?, status = ?", (becomes.state, becomes.status))
        keep.note(link, journal.JUDGED, gone, {}, BEGAN)


SAFE = {"intent": False, "receipt": None, "report": Unreadable("empty"), "proof": "none"}
MAKE = {
    "nothing": lambda _: None,
    "queued": lambda home: home.queued(),
    "orphan, untouched": lambda home: orphan(home, taken=False),
    "orphan, taken": lambda home: orphan(home, taken=True),
    "sent": lambda home: home.judged(),
    "delivered": lambda home: home.judged(proof="surfaced"),
    "in doubt": lambda home: home.judged(receipt=None, proof="none"),
    "dead": lambda home: home.judged(**SAFE),
    "given up": given_up,
    "denied": lambda home: home.judged(receipt=a_receipt(notices=told("denied"))),
}

# What stands for the key already, whichever way it is kissed: class, state.
STANDS = {
    "queued": ("queued", "queued"),
    "sent": ("delivered-start", "sent"),
    "delivered": ("delivered-start", "delivered"),
    "in doubt": ("receipt-missing", "uncertain"),
    "denied": ("door-denied", "dead"),
}
FREE = ("nothing", "dead", "given up")
# And the rest: class, state, carriers that ran.
FAILED = ("carrier-exit", "dead", 1)
KEPT = ("queued", "queued", 0)
TRIED_AND_KEPT = ("queued", "queued", 1)
UNDER_WAY = ("unknown", "claimed", 0)
JUDGED = ("unknown", "uncertain", 0)
ANSWERS = {
    "kiss": dict.fromkeys(FREE, FAILED) | {"orphan, untouched": FAILED, "orphan, taken": JUDGED},
    "--queue": dict.fromkeys(FREE, KEPT)
    | {"orphan, untouched": UNDER_WAY, "orphan, taken": UNDER_WAY},
    "--or-queue": dict.fromkeys(FREE, TRIED_AND_KEPT)
    | {"orphan, untouched": TRIED_AND_KEPT, "orphan, taken": JUDGED},
}
WAYS = {"kiss": {}, "--queue": {"queue": True}, "--or-queue": {"or_queue": True}}
CASES = [(way, state) for way in WAYS for state in MAKE]


def answer(home, way, **changes):
    """Class, state and carriers of one kiss."""
    result = kiss(order(**(WAYS[way] | changes)), home.house())
    return result.verdict.name, home.state_of(), ran(home)


@pytest.mark.parametrize(("way", "state"), CASES)
def test_what_a_key_says_in_every_state(home, way, state):
    """One line, one key: what may be in is told, what provably is not goes or waits."""
    MAKE[state](home)

    expected = ANSWERS[way].get(state) or (*STANDS[state], 0)

    assert expected == answer(home, way)


@pytest.mark.parametrize(("way", "state"), CASES)
def test_asked_once_more_it_says_the_same_and_starts_nothing_that_waits(home, way, state):
    """A script that repeats its command gets the same class; only a safe failure is tried again."""
    MAKE[state](home)

    first = answer(home, way)
    second = answer(home, way)

    if first == FAILED:
        assert ("carrier-exit", "dead", 2) == second
    else:
        assert first == second


def gone(home):
    """T does not run any more."""
    for file in os.listdir(home.registry.sessions):
        os.unlink(f"{home.registry.sessions}/{file}")


# The target does not run: class and state; nothing is started.
WITHOUT_TARGET = {
    "kiss": {"nothing": ("target-not-running", None)}
    | dict.fromkeys(("dead", "given up"), ("target-not-running", "dead"))
    | dict.fromkeys(("orphan, untouched", "orphan, taken"), ("unknown", "claimed")),
    "--queue": dict.fromkeys(FREE, ("queued", "queued"))
    | dict.fromkeys(("orphan, untouched", "orphan, taken"), ("unknown", "claimed")),
}
WITHOUT_TARGET["--or-queue"] = WITHOUT_TARGET["--queue"]


@pytest.mark.parametrize(("way", "state"), CASES)
def test_what_a_key_says_while_its_target_does_not_run(home, way, state):
    """It is said of what provably is not delivered alone, and kept where that was asked for."""
    MAKE[state](home)
    gone(home)

    expected = WITHOUT_TARGET[way].get(state) or STANDS[state]

    assert (*expected, 0) == answer(home, way)


@pytest.mark.parametrize(("way", "state"), CASES)
def test_what_a_key_says_while_its_postbox_is_driven(home, way, state):
    """Somebody has the lease: a line under way is a doubt, a free one is kept or refused."""
    MAKE[state](home)
    free = {"kiss": "carrier-busy", "--queue": "queued", "--or-queue": "queued"}[way]
    with leased(home):
        name, ends, carriers = answer(home, way)

    if state in FREE:
        assert free == name
        assert (ends == "queued") == (free == "queued")
    elif state.startswith("orphan"):
        assert ("unknown", "claimed") == (name, ends)
    else:
        assert STANDS[state] == (name, ends)
    assert 0 == carriers


@pytest.mark.parametrize(
    ("way", "state"), [(way, state) for way, state in CASES if state != "nothing"]
)
@pytest.mark.parametrize("runs", [True, False])
def test_a_key_never_says_anything_of_another_line(home, way, state, runs):
    """Other bytes: 65, or another refusal; the line stays what it was, and nothing is started."""
    MAKE[state](home)
    before = home.line()
    if not runs:
        gone(home)

    name, _, carriers = answer(home, way, take_line=lambda: line_of_text("tests are red"))

    expected = "target-not-running" if way == "kiss" and not runs else "key-conflict"
    assert (expected, before, 0) == (name, home.line(), carriers)


# After what `--or-queue` keeps.

KEEPS = {
    "carrier-exit": "exit 7",
    "carrier-output": "exit 0",
    "wrapper-not-run": f"""echo '{{"type":"result","session_id":"{P}"}}'""",
}
NEVER = {
    "carrier-mismatch": f"""echo '{{"type":"result","session_id":"{T}"}}'""",
    "unknown": TAKEN,
}


@pytest.mark.parametrize("name", KEEPS)
def test_a_line_is_kept_after_a_carrier_that_touched_nothing(home, name):
    """76: 0, queued, with the reason; due at once, with all its patience before it."""
    home.claude(KEEPS[name])
    home.alter("UPDATE pulse SET watched = 500000.5")

    result = kiss(order(or_queue=True), home.house())

    line = home.line()
    assert ("queued", 0, 1) == (result.verdict.name, result.verdict.exit, result.attempt)
    assert str(result.reason).startswith(f"{name}: ")
    assert (kept.QUEUED, kept.AGAIN, 1, 1.5) == (line.state, line.status, line.kept, line.due_at)
    assert (500000.5, kept.FIRST) == (line.born, line.tries)
    assert [("accepted", None), ("judged", name)] == home.story()
    assert [] == os.listdir(f"{home.state}/attempts")


def test_a_line_is_kept_after_a_deadline(home):
    """76 too: the permit was withdrawn."""
    home.configure(f'[carrier]\ntimeout_s = 0.2\n[targets.fable]\nsession = "{T}"\n')
    home.claude("sleep 5")

    result = kiss(order(or_queue=True), home.house())

    assert ("queued", "queued") == (result.verdict.name, home.state_of())
    assert str(result.reason).startswith("carrier-timeout: ")


@pytest.mark.parametrize("name", NEVER)
def test_a_line_that_may_be_in_is_never_kept_for_a_second_try(home, name):
    """3: a doubt is looked up, whatever was asked for."""
    home.claude(NEVER[name])

    result = kiss(order(or_queue=True), home.house())

    assert (name, "uncertain") == (result.verdict.name, home.state_of())
    assert 0 == home.line().kept


def test_a_claude_that_cannot_be_started_is_not_waited_for(home):
    """69 too, but no time mends it: a person must install it."""
    os.unlink(f"{home.root}/bin/claude")

    result = kiss(order(or_queue=True), home.house())

    assert ("carrier-spawn", "dead") == (result.verdict.name, home.state_of())


def busy(home):
    """T works."""
    gone(home)
    home.runs(status="busy")


@pytest.mark.parametrize(
    ("trouble", "changes", "name"),
    [(gone, {}, "target-not-running"), (busy, {"if_idle": True}, "target-status")],
)
def test_a_line_is_kept_for_a_target_that_does_not_take_it_now(home, trouble, changes, name):
    """69 and 75: nothing was started; a line for an idle target stays one."""
    trouble(home)

    result = kiss(order(or_queue=True, **changes), home.house())

    assert ("queued", None, 0) == (result.verdict.name, result.attempt, ran(home))
    assert str(result.reason).startswith(f"{name}: ")
    assert (kept.QUEUED, len(changes)) == (home.line().state, home.line().idle)
    assert [("queued", "queued")] == home.story()


def test_a_line_is_kept_while_a_postbox_is_driven(home):
    """75: whoever has the lease may be at it for long."""
    with leased(home):
        result = kiss(order(or_queue=True), home.house())

    assert ("queued", "queued") == (result.verdict.name, home.state_of())
    assert str(result.reason).startswith("carrier-busy: ")


@pytest.mark.parametrize("way", ["--queue", "--or-queue"])
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"line": ""}, "line-invalid"),
        ({"address": "nobody"}, "target-unknown"),
        ({"address": "itself"}, "carrier-misbound"),
        ({"address": "TK-7"}, "ticket-unbound"),
    ],
)
def test_what_time_does_not_mend_is_refused_at_once(home, way, changes, name):
    """2, 65, 67: told and kept in the journal, and no row."""
    result = kiss(order(**(WAYS[way] | changes)), home.house())

    assert (name, None, 0) == (result.verdict.name, home.state_of(), ran(home))
    assert [("refused", name)] == home.story()


@pytest.mark.parametrize("way", ["--queue", "--or-queue"])
def test_a_nested_kiss_keeps_nothing(home, way):
    """K16: a carrier's child does not even read its line."""

    def read():
        raise AssertionError("the line was read")

    env = home.env | {"ZDO_CARRIER_DOOR_TARGET": "fable"}
    result = kiss(order(take_line=read, **WAYS[way]), home.house(env=env))

    assert ("nested-kiss", None) == (result.verdict.name, home.state_of())


def test_a_running_postbox_is_not_waited_for(home):
    """2: somebody drives it as a session of his own."""
    home.registry.add(sessionId=P, name="postbox")

    assert "carrier-live" == kiss(order(or_queue=True), home.house()).verdict.name
    assert home.state_of() is None


def test_a_kiss_for_the_relay_takes_no_lease_and_starts_nothing(home):
    """Neither a busy postbox nor one that runs matters to it."""
    home.registry.add(sessionId=P, name="postbox")
    with leased(home):
        result = kiss(order(queue=True), home.house())

    assert ("queued", "queued", 0) == (result.verdict.name, home.state_of(), ran(home))


class Once:
    """A pipe: it gives its line once."""

    def __init__(self):
        self.read = 0

    def __call__(self):
        """The line."""
        self.read += 1
        return line_of_text(LINE)


@pytest.mark.parametrize("trouble", [gone, lambda _: None])
@pytest.mark.parametrize("way", WAYS)
def test_a_line_is_read_once(home, way, trouble):
    """Kept or tried or both: a pipe is empty the second time."""
    trouble(home)
    pipe = Once()

    kiss(order(take_line=pipe, **WAYS[way]), home.house())

    assert 1 == pipe.read
    assert way == "kiss" or home.line().body == LINE.encode()


def test_without_a_key_every_kiss_for_the_relay_is_a_line_of_its_own(home):
    """The same text twice is two lines."""
    one, two = (kiss(order(queue=True, key=None), home.house()) for _ in range(2))

    assert one.delivery_id != two.delivery_id
    assert ["queued", "queued"] == [home.state_of(each.delivery_id) for each in (one, two)]
    assert "" == home.line(one.delivery_id).given_key


# Where it cannot be kept.


def break_database(home):
    """The file is none any more."""
    Path(f"{home.state}/zdo.db").write_bytes(b"this is no database at all" * 100)


@pytest.mark.parametrize("way", ["--queue", "--or-queue"])
def test_a_spool_that_cannot_be_used_is_told_and_never_raised(home, way):
    """73 for a verdict, in every way."""
    gone(home)
    break_database(home)

    result = kiss(order(**WAYS[way]), home.house())

    assert ("spool-unwritable", 73) == (result.verdict.name, result.verdict.exit)


@pytest.mark.parametrize("way", ["--queue", "--or-queue"])
def test_a_state_folder_that_cannot_be_used_is_told_and_never_raised(tmp_path, way):
    """It is a file: 73."""
    household = Household(tmp_path)
    Path(household.state).write_text("", encoding="utf-8")

    result = kiss(order(**WAYS[way]), household.house())
    household.registry.close()

    assert "spool-unwritable" == result.verdict.name


# With real doors.


@pytest.fixture
def rig():
    """A whole zdo with a fake claude."""
    with Rig() as made:
        made.configure(f"[carrier]\nsettle_s = 0.5\n{Path(made.config_file).read_text()}")
        yield made


def house_of(rig):
    """The house of *rig*, for a kiss in this process."""
    return House(
        env=rig.env,
        places=find_places(rig.env),
        clock=Clock(),
        processes=Processes(),
        draw=draw,
        python=sys.executable,
        root=ROOT,
    )


def line_in(house):
    """The line as it stands."""
    with contextlib.closing(keep.open_database(house)) as database, database.reading() as link:
        return kept.find(link, DELIVERY)


@pytest.mark.parametrize(
    ("script", "name", "state"),
    [
        ({"accept": "dropped"}, "queued", kept.QUEUED),
        ({"accept": "refuse"}, "door-refused", kept.DEAD),
        ({"accept": "hold"}, "door-held", kept.UNCERTAIN),
        ({"accept": "surface"}, "delivered-start", kept.DELIVERED),
    ],
)
def test_what_a_door_says_is_kept_only_when_it_threw_the_line_away(rig, script, name, state):
    """75 for want of room; a refusal is one, a held line is nobody's to repeat."""
    rig.door(**script)
    house = house_of(rig)

    result = kiss(order(or_queue=True), house)

    assert (name, state) == (result.verdict.name, line_in(house).state), result.reason
