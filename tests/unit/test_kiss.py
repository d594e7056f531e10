"""One kiss in one straight line: each refusal in its order, each ending told."""

from __future__ import annotations

import json
import os
import sqlite3
import sys

import pytest

from dispatch import journal, keep, spool, verify
from dispatch.house import House
from dispatch.kiss import Order, kiss
from dispatch.line import line_of_text
from registry.clock import Clock
from registry.home import find_places, open_state
from registry.locks import take_lease
from registry.processes import Processes
from registry.record import replace
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.household import ROOT, Household
from tests.fakes.rig import Rig

LINE = "tests are green"


@pytest.fixture
def home(tmp_path):
    """A household in which T runs and no claude is installed."""
    household = Household(tmp_path)
    household.runs()
    yield household
    household.registry.close()


@pytest.fixture
def rig():
    """A whole zdo with a fake claude and a door that surfaces."""
    with Rig() as made:
        made.target = made.door()
        yield made


def house_of(rig, **changes):
    """The house of *rig*, for a kiss in this process."""
    plain = {
        "env": rig.env,
        "places": find_places(rig.env),
        "clock": Clock(),
        "processes": Processes(),
        "python": sys.executable,
        "root": ROOT,
    }
    return House(**(plain | changes))


def order(address="fable", line=LINE, **changes):
    """A kiss of *line* to *address*."""
    plain = {"address": address, "take_line": lambda: line_of_text(line), "sender": "anonymous"}
    return Order(**(plain | {"key": DELIVERY} | changes))


def story(house):
    """The delivery's events as (kind, class)."""
    database = keep.open_database(house)
    with database.reading() as link:
        found = [(event.kind, event.name) for event in journal.story(link, DELIVERY)]
    database.close()
    return found


def state(house):
    """The line's state; None when it was never kept."""
    database = keep.open_database(house)
    with database.reading() as link:
        found = spool.find(link, DELIVERY)
    database.close()
    return None if found is None else found.state


# Refusals, in their order.


def test_a_nested_kiss_is_refused_before_the_line_is_read(home):
    """K16: a carrier's child starts no carrier, and eats no stdin."""

    def read():
        raise AssertionError("the line was read")

    env = home.env | {"ZDO_CARRIER_DOOR_TARGET": "fable"}
    result = kiss(order(take_line=read), home.house(env=env))

    assert result.verdict.name == "nested-kiss"
    assert result.line.bytes is None


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"line": ""}, "line-invalid"),
        ({"address": "nobody"}, "target-unknown"),
        ({"address": "itself"}, "carrier-misbound"),
        ({"address": P.upper()}, "carrier-misbound"),
        ({"address": "TK-7"}, "ticket-unbound"),
        ({"address": "0a000000-0000-4000-8000-00000000000f"}, "target-not-running"),
    ],
)
def test_a_refusal_is_told_and_kept_and_starts_nothing(home, changes, name):
    """Every refusal after parsing has a delivery id and one journal entry."""
    result = kiss(order(**changes), home.house())

    assert name == result.verdict.name
    assert result.reason
    assert [("refused", name)] == story(home.house())
    assert state(home.house()) is None
    assert os.listdir(f"{home.state}/attempts") == []


def test_a_bad_configuration_is_refused_after_the_line(home):
    """78; what is known of the line is said."""
    home.configure("[carrier]\nmax_turns = 0\n")
    result = kiss(order(), home.house())

    assert result.verdict.name == "config-invalid"
    assert result.line.bytes == len(LINE)


def test_a_busy_target_is_refused_with_if_idle(home):
    """75, and the row's status is shown."""
    home.registry.add(sessionId="0a000000-0000-4000-8000-00000000000f", name="b", status="busy")
    result = kiss(order("b", if_idle=True), home.house())

    assert ("target-status", "busy") == (result.verdict.name, result.target.status)


def test_a_key_with_other_bytes_is_a_conflict(home):
    """65; the first line stays as it is."""
    home.claude("exit 1")
    kiss(order(), home.house())

    assert kiss(order(line="tests are red"), home.house()).verdict.name == "key-conflict"


def test_a_state_that_cannot_be_used_starts_nothing(home):
    """73; and there is nowhere to write that down."""
    with open(home.state, "wb"):
        pass

    assert kiss(order(), home.house()).verdict.name == "spool-unwritable"


def test_a_dry_run_keeps_and_starts_nothing(home):
    """K18: argv, names and both ids; no state folder is made for it."""
    result = kiss(order(dry_run=True), home.house())

    assert ("dry-run", T, P) == (
        result.verdict.name,
        result.target.session_id,
        result.carrier.session_id,
    )
    assert result.plan.argv[1:4] == ("-p", "--resume", P)
    assert not os.path.exists(home.state)


def test_a_dry_run_of_a_misbound_target_is_misbound(home):
    """K18."""
    assert kiss(order("itself", dry_run=True), home.house()).verdict.name == "carrier-misbound"


def test_without_a_key_every_kiss_is_its_own_delivery(home):
    """And the key that is shown is the delivery."""
    home.claude("exit 1")
    one, two = (kiss(order(key=None), home.house()) for _ in range(2))

    assert one.delivery_id != two.delivery_id
    assert one.key == one.delivery_id


def test_a_text_key_is_shown_as_it_was_given(home):
    """The delivery id is made of it, the same each time."""
    home.claude("exit 1")
    one, two = (kiss(order(key="build-812"), home.house()) for _ in range(2))

    assert ("build-812", "build-812") == (one.key, two.key)
    assert one.delivery_id == two.delivery_id
    assert (1, 2) == (one.attempt, two.attempt)


# Under the lease.


def test_a_postbox_in_use_is_busy_and_the_line_is_a_dead_letter(home):
    """75: accepted, judged, and free to be tried again."""
    house = home.house()
    open_state(house.places)
    lease = take_lease(house.places.locks, P, timeout_s=0, clock=Clock())
    result = kiss(order(lock_timeout_s=0), house)
    lease.close()

    assert result.verdict.name == "carrier-busy"
    assert story(house) == [("accepted", None), ("judged", "carrier-busy")]
    assert state(house) == spool.DEAD


def test_a_postbox_that_runs_is_live(home):
    """Somebody drives it: 2, and nothing was started."""
    home.claude("exit 1")
    home.registry.add(sessionId=P, name="postbox")

    assert kiss(order(), home.house()).verdict.name == "carrier-live"


class Meanwhile(Clock):
    """A clock whose first look runs *act*: between the acceptance and the lease."""

    def __init__(self, act):
        self._act = act

    def monotonic(self):
        """The time, after the world had its turn."""
        act, self._act = self._act, lambda: None
        act()
        return super().monotonic()


def test_a_target_that_ended_while_we_waited_is_not_running(home):
    """K15: everything is resolved again under the lease."""
    rows = home.registry.sessions

    def end():
        for file in os.listdir(rows):
            os.unlink(f"{rows}/{file}")

    result = kiss(order(), home.house(clock=Meanwhile(end)))

    assert result.verdict.name == "target-not-running"
    assert os.listdir(f"{home.state}/attempts") == []


def test_a_postbox_that_changed_while_we_waited_is_not_driven(home):
    """The lease is on another one: repeat."""
    other = "0a000000-0000-4000-8000-00000000000f"
    fable = f'[targets.fable]\nsession = "{T}"\ncarrier_session = "box"\n'
    home.configure(f'{fable}\n[targets.box]\nname = "box"\n')
    home.registry.add(sessionId=other, name="box")

    def rename():
        turn_off(home, other)
        home.registry.add(sessionId=P, name="box")

    result = kiss(order(), home.house(clock=Meanwhile(rename)))

    assert result.verdict.name == "carrier-unbound"
    assert "changed meanwhile" in str(result.reason)


def turn_off(home, session_id):
    """The row of *session_id* is gone."""
    for file in os.listdir(home.registry.sessions):
        path = f"{home.registry.sessions}/{file}"
        with open(path, "rb") as row:
            content = row.read()
        if session_id.encode() in content:
            os.unlink(path)


def test_a_kiss_that_was_judged_an_orphan_before_it_had_the_lease_delivers_nothing(home):
    """Once somebody was told that a repeat is safe, this attempt must not deliver."""
    home.claude(f"echo ran > {home.root}/ran; exit 1")
    told = []
    house = home.house(clock=Meanwhile(lambda: told.append(verify.verify(DELIVERY, home.house()))))

    result = kiss(order(), house)

    assert told[0].verdict.fate == "queue"
    assert result.verdict.name == "carrier-busy"
    assert not os.path.exists(f"{home.root}/ran")


class Replacing(Processes):
    """A registry whose reading replaces the file of the lease, once there is one."""

    def __init__(self, lock):
        super().__init__()
        self._lock, self.replaced = lock, False

    def start_token(self, pid):
        """As it is, after somebody cleaned up the folder of locks."""
        if os.path.exists(self._lock) and not self.replaced:
            os.unlink(self._lock)
            with open(self._lock, "wb"):
                self.replaced = True
        return super().start_token(pid)


def test_a_lease_that_was_replaced_starts_nothing(home):
    """Somebody else can hold the new file: two drivers would be one too many."""
    home.claude(f"echo ran > {home.root}/ran")
    processes = Replacing(f"{home.state}/locks/{P}.lock")
    result = kiss(order(), home.house(processes=processes))

    assert processes.replaced
    assert result.verdict.name == "spool-unwritable"
    assert "was replaced" in str(result.reason)
    assert not os.path.exists(f"{home.root}/ran")
    assert os.listdir(f"{home.state}/attempts") == []


@pytest.mark.parametrize("damage", ["file", "link"])
def test_an_attempt_folder_that_cannot_be_made_is_spool_unwritable(home, damage):
    """73, told and kept; the key may be tried again."""
    folder = f"{home.state}/attempts/{DELIVERY}.1"
    house = home.house()
    open_state(house.places)
    if damage == "file":
        with open(folder, "wb"):
            pass
    else:
        os.mkdir(folder)
        os.symlink("/nowhere", f"{folder}/settings.json")

    assert kiss(order(), house).verdict.name == "spool-unwritable"
    assert story(house)[-1] == ("judged", "spool-unwritable")
    assert state(house) == spool.DEAD


# Endings.


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("exit 7", "carrier-exit"),
        ("exit 0", "carrier-output"),
        (f"""echo '{{"type":"result","session_id":"{P}"}}'""", "wrapper-not-run"),
        (f"""echo '{{"type":"result","session_id":"{T}"}}'""", "carrier-mismatch"),
        ("mv $ZDO_CARRIER_ATTEMPT/permit $ZDO_CARRIER_ATTEMPT/intent", "unknown"),
        (None, "carrier-spawn"),
    ],
)
def test_an_attempt_that_did_not_deliver_has_its_class(home, script, name):
    """The door is untouched, or nobody can say."""
    if script is not None:
        home.claude(script)
    result = kiss(order(), home.house())

    assert name == result.verdict.name, result.reason
    assert [("accepted", None), ("judged", name)] == story(home.house())
    kept = os.path.exists(f"{home.state}/attempts/{DELIVERY}.1")
    assert kept == (result.verdict.fate == "open")


def test_an_open_outcome_is_never_tried_again(home):
    """The same key then tells what became of the line."""
    home.claude("mv $ZDO_CARRIER_ATTEMPT/permit $ZDO_CARRIER_ATTEMPT/intent")
    first = kiss(order(), home.house())
    home.claude(f"echo ran > {home.root}/ran")
    second = kiss(order(), home.house())

    assert first == second
    assert not os.path.exists(f"{home.root}/ran")


def test_an_outcome_that_cannot_be_kept_is_still_said(home):
    """74 names the class; the line stays claimed until somebody looks."""
    database = f"{home.state}/zdo.db"
    home.claude(f"rm {home.root}/bin/claude; exit 7")

    class Full(Clock):
        """After the run the database refuses every write, as on a full disk."""

        def now(self):
            """The time; by the second look the carrier has run."""
            if not os.path.exists(f"{home.root}/bin/claude"):
                link = sqlite3.connect(database)
                link.execute(
                    "CREATE TRIGGER IF NOT EXISTS full BEFORE UPDATE ON line"
                    " BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
                )
                link.close()
            return super().now()

    result = kiss(order(), home.house(clock=Full()))

    assert result.verdict.name == "journal-unwritable"
    assert "carrier-exit" in str(result.reason)
    assert result.carrier.exit == 7
    assert state(home.house()) == spool.CLAIMED


def test_a_delivery_surfaces_and_its_key_never_delivers_again(rig):
    """The straight line to its end, twice: one frame at the door."""
    house = house_of(rig)
    first = kiss(order(), house)
    second = kiss(order(), house)

    assert ("delivered-start", "surfaced") == (first.verdict.name, first.proof), first.reason
    assert (T, P, P) == (
        first.receipt.session_id,
        first.carrier.session_id,
        first.carrier.result_session_id,
    )
    assert first == second
    assert [LINE] == rig.target.lines()
    assert os.listdir(house.places.attempts) == []


def test_until_surfaced_waits_for_the_model(rig):
    """`--proof surfaced`: the class is surfaced, also for a key that is delivered already."""
    house = house_of(rig)
    first = kiss(order(), house)
    second = kiss(order(until_surfaced=True, wait_s=5.0), house)

    assert ("delivered-start", "surfaced") == (first.verdict.name, second.verdict.name)
    assert [LINE] == rig.target.lines()


class InParent(Clock):
    """A clock that stops this process, and not the keeper, at its first sleep."""

    def __init__(self):
        self._pid = os.getpid()

    def sleep(self, seconds):
        """Ctrl-C, here."""
        if os.getpid() == self._pid:
            raise KeyboardInterrupt
        super().sleep(seconds)


def test_ctrl_c_while_waiting_for_the_model_does_not_invite_a_repeat(rig):
    """The line is in: whatever is said, it is not "repeat when you like"."""
    rig.target.change(surface_after=None)
    house = house_of(rig, clock=InParent())
    result = kiss(order(until_surfaced=True, wait_s=30.0), house)

    assert result.verdict.name == "not-surfaced"
    assert state(house) == spool.DELIVERED
    assert [LINE] == rig.target.lines()


class Editing(Clock):
    """A clock that runs *act* when the verdict is being kept."""

    def __init__(self, act):
        self._pid, self._looks, self._act = os.getpid(), 0, act

    def now(self):
        """The first look is the acceptance, the second the verdict."""
        self._looks += os.getpid() == self._pid
        if self._looks == 2:
            self._act()
        return super().now()


def test_trouble_after_the_delivery_is_not_a_refusal(rig):
    """The line is in: a configuration that somebody breaks now changes nothing of that."""
    rig.target.change(surface_after=None)
    clock = Editing(lambda: rig.configure("[nonsense]\n"))
    result = kiss(order(until_surfaced=True, wait_s=0.1), house_of(rig, clock=clock))

    assert [LINE] == rig.target.lines()
    assert result.verdict.exit in (0, 3), result.reason


def test_ctrl_c_before_the_start_is_interrupted(home):
    """130, and the key may be tried again."""

    def stop():
        raise KeyboardInterrupt

    result = kiss(order(), home.house(clock=Meanwhile(stop)))

    assert ("interrupted", 130) == (result.verdict.name, result.verdict.exit)
    assert "before anything was started" in str(result.reason)
    assert state(home.house()) == spool.DEAD


class AtTheEnd(Clock):
    """A clock that stops this process when it is asked for the time of the verdict."""

    def __init__(self):
        self._pid, self._looks = os.getpid(), 0

    def now(self):
        """The first look is the acceptance, the second the verdict."""
        self._looks += os.getpid() == self._pid
        if self._looks == 2:
            raise KeyboardInterrupt
        return super().now()


def test_ctrl_c_after_the_run_tells_what_it_came_to(home):
    """The verdict is known, though not kept: the line stays claimed until somebody looks."""
    home.claude("exit 7")
    result = kiss(order(), home.house(clock=AtTheEnd()))

    assert result.verdict.name == "carrier-exit"
    assert state(home.house()) == spool.CLAIMED
    assert verify.verify(DELIVERY, home.house()).verdict.name == "carrier-exit"


class AmongOrphans(Clock):
    """A clock that stops this process when it cleans up after a killed keeper."""

    def __init__(self, ran):
        self._pid, self._ran, self._stopped = os.getpid(), ran, False

    def monotonic(self):
        """Once, after the carrier has run."""
        if os.getpid() == self._pid and not self._stopped and os.path.exists(self._ran):
            self._stopped = True
            raise KeyboardInterrupt
        return super().monotonic()


def test_ctrl_c_before_anything_is_known_is_an_honest_doubt(home):
    """A carrier ran and nobody knows how it ended: open, and verify judges what it left."""
    ran = f"{home.root}/ran"
    # A keeper that died before it had named its carrier would leave nobody to clean up after.
    named = "until [ -s $ZDO_CARRIER_ATTEMPT/carrier ]; do sleep 0.01; done"
    home.claude(f"{named}; echo ran > {ran}; kill -9 $PPID")
    result = kiss(order(), home.house(clock=AmongOrphans(ran)))

    assert result.verdict.name == "unknown"
    assert "Ctrl-C" in str(result.reason)
    assert state(home.house()) == spool.CLAIMED
    assert verify.verify(DELIVERY, home.house()).verdict.fate == "queue"


def test_the_journal_has_both_sessions_and_no_line(home):
    """What a later process judges by, without the line."""
    home.claude("exit 7")
    kiss(order(), home.house())
    database = keep.open_database(home.house())
    with database.reading() as link:
        bodies = [json.loads(event.body) for event in journal.story(link, DELIVERY)]
    database.close()

    assert (T, P) == (
        bodies[0]["result"]["target"]["session_id"],
        bodies[0]["result"]["carrier"]["session_id"],
    )
    assert LINE not in json.dumps(bodies)


def test_a_house_is_not_changed_by_a_kiss(home):
    """Ports are values: the same house serves again."""
    home.claude("exit 7")
    house = home.house()
    kiss(order(), house)

    assert replace(house) == house
