"""One kiss in one straight line: each refusal in its order, each ending told."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from carrier.proof import INTENT, issue, take
from carrier.report import Unreadable
from dispatch import journal, keep, kept, verify
from dispatch.errand import Order
from dispatch.errors import DeliveryUnknown
from dispatch.house import House
from dispatch.kiss import kiss
from dispatch.line import line_of_text
from dispatch.rig.rig import Rig
from registry.clock import Clock
from registry.errors import LeaseBusy
from registry.home import find_places, open_state
from registry.ids import draw
from registry.locks import take_lease
from registry.processes import Processes
from registry.record import replace
from tests.fakes.clocks import Meanwhile
from tests.fakes.envelopes import DELIVERY, P, T, an_envelope
from tests.fakes.evidence import OTHER
from tests.fakes.household import ROOT, Household, a_draft, accept, asked

LINE = "tests are green"


# Carriers: one that leaves a trace, and one whose wrapper took the permit and died.
RAN = "echo ran >> {}/ran; exit 7"
TAKEN = "cd $ZDO_CARRIER_ATTEMPT; mv permit intent; sleep 0.1"


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
        "draw": draw,
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
        found = kept.find(link, DELIVERY)
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


def test_a_database_that_cannot_be_used_is_asked_once(home):
    """73, nothing is started; a second try at keeping the refusal would double the wait."""
    home.claude("exit 1")
    os.makedirs(home.state, exist_ok=True)
    with open(f"{home.state}/zdo.db", "wb") as file:
        file.write(b"this is no database at all" * 100)

    result = kiss(order(), home.house())

    assert ("spool-unwritable", 73) == (result.verdict.name, result.verdict.exit)
    assert "not a database" in str(result.reason)
    assert not os.path.exists(f"{home.state}/attempts/{result.delivery_id}.1")


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


@contextlib.contextmanager
def lease_on(house, postbox=P):
    """The lease on *postbox*, held by somebody else."""
    open_state(house.places)
    with contextlib.closing(lease(house, postbox)):
        yield


def lease(house, postbox=P):
    """The lease, or LeaseBusy at once."""
    return take_lease(house.places.locks, postbox, timeout_s=0, clock=Clock())


def test_a_postbox_in_use_is_busy_and_the_line_was_never_accepted(home):
    """75: a refusal in the journal and no row in the spool; the key is as new."""
    house = home.house()
    with lease_on(house):
        result = kiss(order(lock_timeout_s=0), house)

    assert ("carrier-busy", None) == (result.verdict.name, result.attempt)
    assert story(house) == [("refused", "carrier-busy")]
    assert state(house) is None
    home.claude("exit 7")
    assert kiss(order(), house).attempt == 1


def test_a_postbox_that_runs_is_live(home):
    """Somebody drives it: 2, and nothing was started."""
    home.claude("exit 1")
    home.registry.add(sessionId=P, name="postbox")

    assert kiss(order(), home.house()).verdict.name == "carrier-live"


def test_a_dry_run_looks_at_the_postbox_too(home):
    """Running, it is refused; while a kiss holds the lease the row may be our own carrier's."""
    home.registry.add(sessionId=P, name="postbox")
    house = home.house()

    assert kiss(order(dry_run=True), house).verdict.name == "carrier-live"
    with lease_on(house):
        assert kiss(order(dry_run=True), house).verdict.name == "dry-run"


def test_a_target_that_ended_while_we_waited_is_not_running(home):
    """K15: everything is resolved again under the lease."""
    rows = home.registry.sessions

    def end():
        for file in os.listdir(rows):
            os.unlink(f"{rows}/{file}")

    result = kiss(order(), home.house(clock=Meanwhile(end)))

    assert result.verdict.name == "target-not-running"
    assert os.listdir(f"{home.state}/attempts") == []
    assert (None, [("refused", "target-not-running")]) == (state(home.house()), story(home.house()))


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
    assert (None, [("refused", "carrier-unbound")]) == (state(home.house()), story(home.house()))


def turn_off(home, session_id):
    """The row of *session_id* is gone."""
    for file in os.listdir(home.registry.sessions):
        path = f"{home.registry.sessions}/{file}"
        with open(path, "rb") as row:
            content = row.read()
        if session_id.encode() in content:
            os.unlink(path)


def test_of_a_kiss_that_waits_for_the_lease_nothing_is_known(home):
    """Nothing is accepted yet, so no look can judge it while it waits; it goes on by itself."""
    home.claude("exit 7")
    told = []

    def look():
        with pytest.raises(DeliveryUnknown):
            verify.verify(DELIVERY, home.house())
        told.append(state(home.house()))

    result = kiss(order(), home.house(clock=Meanwhile(look)))

    assert ([None], "carrier-exit", 1) == (told, result.verdict.name, result.attempt)
    assert story(home.house()) == [("accepted", None), ("judged", "carrier-exit")]


class AtLook(Clock):
    """A clock that runs *act* at one look at the date: 1 is the acceptance, 2 the verdict."""

    def __init__(self, number, act):
        self._pid, self._left, self._act = os.getpid(), number, act

    def now(self):
        """The time; the keeper's looks do not count."""
        if os.getpid() == self._pid:
            self._left -= 1
            if self._left == 0:
                self._act()
        return super().now()


@pytest.mark.parametrize("number", [1, 2], ids=["acceptance", "verdict"])
def test_the_line_is_accepted_and_settled_while_the_lease_is_held(home, number):
    """A claimed row that whoever has the lease finds is an orphan, never a kiss under way."""
    home.claude("exit 7")
    seen = []

    def look():
        seen.append(state(home.house()))
        with pytest.raises(LeaseBusy):
            lease(home.house())

    kiss(order(), home.house(clock=AtLook(number, look)))

    assert [(None, kept.CLAIMED)[number - 1]] == seen
    lease(home.house()).close()


def test_a_status_that_closed_while_we_waited_is_refused_and_not_accepted(home):
    """The gate is asked again under the lease, before anything is kept."""

    def stop():
        turn_off(home, T)
        home.registry.add(sessionId=T, name="fable", status="stopped")

    result = kiss(order(), home.house(clock=Meanwhile(stop)))

    assert result.verdict.name == "target-status"
    assert (None, [("refused", "target-status")]) == (state(home.house()), story(home.house()))


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


def test_an_attempt_folder_that_cannot_be_made_is_spool_unwritable(home):
    """73, told and kept; nothing was accepted, nothing was started, and the key is as new."""
    home.claude(RAN.format(home.root))
    house = home.house(clock=Meanwhile(lambda: os.rmdir(f"{home.state}/attempts")))

    assert (None, "spool-unwritable") == told(kiss(order(), house))
    assert story(house) == [("refused", "spool-unwritable")]
    assert (None, False) == (state(house), os.path.exists(f"{home.root}/ran"))
    assert (1, "carrier-exit") == told(kiss(order(), home.house()))


@pytest.mark.parametrize("kind", ["file", "folder", "link", "intent"])
def test_an_attempt_folder_that_is_there_already_is_a_doubt(home, kind):
    """An emptied database does not know it: 3, the folder stays, and nothing is ever started."""
    home.claude(RAN.format(home.root))
    house = home.house()
    open_state(house.places)
    folder = Path(f"{home.state}/attempts/{DELIVERY}.1")
    if kind == "file":
        folder.touch()
    elif kind == "link":
        folder.symlink_to(home.root)
    else:
        folder.mkdir()
    if kind == "intent":
        issue(str(folder), an_envelope())
        take(str(folder))

    first, second = kiss(order(), house), kiss(order(), house)

    assert ("unknown", 3) == (first.verdict.name, first.verdict.exit)
    assert f"{DELIVERY}.1 is left" in str(first.reason)
    assert first == second
    assert story(house) == [("refused", "unknown")] * 2
    assert (None, False) == (state(house), os.path.exists(f"{home.root}/ran"))
    assert os.path.lexists(folder)
    assert kind != "intent" or os.listdir(folder) == ["intent"]


def test_a_folder_that_a_killed_kiss_laid_out_and_never_claimed_is_made_anew(home):
    """Its permit stands, so nothing was started: this kiss is the first attempt."""
    home.claude(RAN.format(home.root))
    house = home.house()
    open_state(house.places)
    folder = f"{home.state}/attempts/{DELIVERY}.1"
    os.mkdir(folder)
    issue(folder, an_envelope())

    assert (1, "carrier-exit") == told(kiss(order(), house))
    assert os.listdir(f"{home.state}/attempts") == []


def test_an_emptied_database_delivers_no_second_time(home):
    """The folder of an open outcome outlives the database: the same key is unknown, not new."""
    home.claude(TAKEN)
    kiss(order(), home.house())
    folder = f"{home.state}/attempts/{DELIVERY}.1"
    before = sorted(os.listdir(folder))
    for name in os.listdir(home.state):
        if name.startswith("zdo.db"):
            os.unlink(f"{home.state}/{name}")
    home.claude(RAN.format(home.root))

    assert (None, "unknown") == told(kiss(order(), home.house()))
    assert before == sorted(os.listdir(folder))
    assert not os.path.exists(f"{home.root}/ran")


# The same key again.


def told(result):
    """Attempt and class."""
    return result.attempt, result.verdict.name


def orphan(home, *, permit=True, taken=False):
    """A line whose dispatcher died, and the attempt folder that it left."""
    result = replace(home.accepted(), attempt=1)
    folder = f"{home.state}/attempts/{result.delivery_id}.1"
    os.mkdir(folder, 0o700)
    if permit:
        issue(folder, an_envelope(msg_id=DELIVERY, line=LINE, claude_dir=home.claude_dir))
    if taken:
        take(folder)
        os.utime(f"{folder}/{INTENT}", (1, 1))  # long ago: its wrapper has had its time
    return folder


def test_a_settled_key_is_answered_before_the_lease(home):
    """Whoever holds the postbox: what became of the line is known."""
    before = home.judged()
    with lease_on(home.house()):
        result = kiss(order(lock_timeout_s=0), home.house())

    assert before == result
    assert story(home.house()) == [("accepted", None), ("judged", "delivered-start")]


def test_a_conflicting_key_is_told_before_the_lease(home):
    """Nobody needs to wait for that."""
    home.judged()
    with lease_on(home.house()):
        result = kiss(order(line="tests are red", lock_timeout_s=0), home.house())

    assert result.verdict.name == "key-conflict"


def test_a_key_that_conflicts_by_the_time_we_have_the_lease_is_refused(home):
    """Somebody used it for another line while we waited; that line is left alone."""
    home.claude(RAN.format(home.root))

    def use():
        with contextlib.closing(home.database()) as database:
            accept(database, a_draft(b"tests are red"), asked(attempt=1))

    result = kiss(order(), home.house(clock=Meanwhile(use)))

    assert result.verdict.name == "key-conflict"
    assert story(home.house()) == [("accepted", None), ("refused", "key-conflict")]
    assert (kept.CLAIMED, False) == (state(home.house()), os.path.exists(f"{home.root}/ran"))


def test_a_key_that_may_be_tried_waits_its_turn_like_any_other(home):
    """A safe failure before: with the postbox in use it is busy, and stays so."""
    home.claude("exit 7")
    kiss(order(), home.house())
    with lease_on(home.house()):
        result = kiss(order(lock_timeout_s=0), home.house())

    assert result.verdict.name == "carrier-busy"
    assert (kept.DEAD, ("refused", "carrier-busy")) == (
        state(home.house()), story(home.house())[-1]
    )  # fmt: skip


def test_a_key_that_was_settled_while_we_waited_is_answered(home):
    """The other dispatcher had the lease first: nothing is started a second time."""
    home.claude(RAN.format(home.root))
    kept = []

    result = kiss(order(), home.house(clock=Meanwhile(lambda: kept.append(home.judged()))))

    assert kept == [result]
    assert not os.path.exists(f"{home.root}/ran")


def test_a_key_that_was_settled_at_the_last_moment_is_answered(home):
    """Through another postbox, say: what was laid out is taken away, and nothing is started."""
    home.claude(RAN.format(home.root))
    kept = []

    result = kiss(order(), home.house(clock=AtLook(1, lambda: kept.append(home.judged()))))

    assert kept == [result]
    assert ([], False) == (os.listdir(f"{home.state}/attempts"), os.path.exists(f"{home.root}/ran"))


SAFE = {"intent": False, "receipt": None, "report": Unreadable("empty"), "proof": "none"}


@pytest.mark.parametrize("or_queue", [False, True])
def test_a_key_that_was_tried_at_the_last_moment_is_busy(home, or_queue):
    """What was laid out has another's number by now: 75, nothing is started, the row stands."""
    home.claude(RAN.format(home.root))
    clock = AtLook(1, lambda: home.judged(**SAFE))

    result = kiss(order(or_queue=or_queue), home.house(clock=clock))

    assert (None, "queued" if or_queue else "carrier-busy") == told(result)
    assert (kept.QUEUED if or_queue else kept.DEAD) == state(home.house())
    assert ([], False) == (os.listdir(f"{home.state}/attempts"), os.path.exists(f"{home.root}/ran"))
    assert (2, "carrier-exit") == told(kiss(order(), home.house())) or or_queue


def test_an_orphan_that_never_reached_the_door_is_judged_and_tried_again(home):
    """Its permit is withdrawn first: whatever of it still lives can write nothing."""
    folder = orphan(home)
    home.claude(RAN.format(home.root))

    assert (2, "carrier-exit") == told(kiss(order(), home.house()))
    assert story(home.house()) == [
        ("accepted", None),
        ("verified", "carrier-exit"),
        ("accepted", None),
        ("judged", "carrier-exit"),
    ]
    assert not os.path.exists(folder)
    with open(f"{home.root}/ran", encoding="ascii") as file:
        assert file.read() == "ran\n"


@pytest.mark.parametrize("left", ["intent", "emptied", "nothing"])
@pytest.mark.parametrize("surfaced", [False, True])
def test_an_orphan_that_may_be_in_is_judged_and_never_tried_again(home, left, surfaced):
    """Taken by a wrapper, emptied, or removed: the transcript decides, else it is unknown."""
    folder = orphan(home, permit=left == "intent", taken=left == "intent")
    if left == "nothing":
        os.rmdir(folder)
    if surfaced:
        home.transcript().surface(DELIVERY)
    home.claude(RAN.format(home.root))
    name, ends = ("surfaced", kept.DELIVERED) if surfaced else ("unknown", kept.UNCERTAIN)

    results = [kiss(order(), home.house()) for _ in range(2)]

    assert [(1, name)] * 2 == [told(each) for each in results]
    assert story(home.house()) == [("accepted", None), ("verified", name)]
    assert (ends, False) == (state(home.house()), os.path.exists(f"{home.root}/ran"))


def test_an_orphan_of_another_postbox_is_left_to_whoever_has_that_one(home):
    """Its carrier may still run there: unknown, its permit stands, and nothing is started here."""
    folder = orphan(home)
    own = f'carrier_session = "{OTHER}"\n'
    home.configure(f'[targets.fable]\nsession = "{T}"\n{own}')
    home.claude(RAN.format(home.root))
    with lease_on(home.house()):
        result = kiss(order(lock_timeout_s=0), home.house())

    assert result.verdict.name == "unknown"
    assert "under way" in str(result.reason)
    assert (kept.CLAIMED, ["permit"]) == (state(home.house()), os.listdir(folder))
    assert story(home.house()) == [("accepted", None)]
    assert not os.path.exists(f"{home.root}/ran")


def test_an_orphan_whose_story_cannot_be_read_is_not_tried(home):
    """A later zdo wrote it: its entry is named, the line stays claimed."""
    home.accepted()
    with contextlib.closing(home.database()) as database, database.writing() as link:
        link.execute('UPDATE event SET body = \'{"attempt": 1, "result": {"v": 2}}\'')
    home.claude(RAN.format(home.root))

    result = kiss(order(), home.house())

    assert ("unknown", 3) == (result.verdict.name, result.verdict.exit)
    assert (kept.CLAIMED, False) == (state(home.house()), os.path.exists(f"{home.root}/ran"))


def test_an_orphan_that_never_reached_the_door_is_delivered_once(rig):
    """With a real wrapper: the key that nobody finished is in the door one time."""
    house = house_of(rig)
    rig.install_claude(hook="none")
    kiss(order(), house)  # the state folder and the first attempt's row
    with contextlib.closing(keep.open_database(house)) as database, database.writing() as link:
        link.execute("UPDATE line SET state = ?", (kept.CLAIMED,))
        link.execute("DELETE FROM event WHERE kind = 'judged'")
    folder = f"{house.places.attempts}/{DELIVERY}.1"
    os.mkdir(folder, 0o700)
    issue(folder, an_envelope(msg_id=DELIVERY, line=LINE, claude_dir=rig.claude_dir))
    rig.install_claude()

    assert (2, "delivered-start") == told(kiss(order(), house))
    assert (2, "delivered-start") == told(kiss(order(), house))
    assert [LINE] == rig.target.lines()
    assert os.listdir(house.places.attempts) == []


# Endings.


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("exit 7", "carrier-exit"),
        ("exit 0", "carrier-output"),
        (f"""echo '{{"type":"result","session_id":"{P}"}}'""", "wrapper-not-run"),
        (f"""echo '{{"type":"result","session_id":"{T}"}}'""", "carrier-mismatch"),
        (TAKEN, "unknown"),
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
    home.claude(TAKEN)
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
    assert state(home.house()) == kept.CLAIMED


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


def test_a_key_that_is_in_is_never_called_not_delivered(rig):
    """The target has gone, or is busy, or somebody presses Ctrl-C: the line is in all the same."""
    house = house_of(rig)
    kiss(order(), house)
    rig.target.change(status="busy")
    busy = kiss(order(if_idle=True), house)
    rig.target.change(registered=False)
    gone = kiss(order(), house)

    assert ["delivered-start"] * 2 == [each.verdict.name for each in (busy, gone)]
    assert [LINE] == rig.target.lines()


def test_a_key_that_is_under_way_is_a_doubt_and_no_refusal(rig):
    """Its first kiss may be at the door: unknown, whatever keeps the second from trying."""
    house = house_of(rig)
    database = keep.open_database(house)
    accept(database, a_draft(), asked(attempt=1))
    database.close()
    with lease_on(house):
        found = kiss(order(lock_timeout_s=0), house)

    assert ("unknown", 3) == (found.verdict.name, found.verdict.exit)
    assert [] == rig.target.lines()


@pytest.mark.parametrize("other", ["bytes", "target"])
def test_the_verdict_of_another_line_is_not_borrowed(rig, other):
    """The same key for something else is refused for its own reason."""
    house = house_of(rig)
    kiss(order(), house)
    rig.target.change(registered=False)
    if other == "bytes":
        found = kiss(order(line="tests are red"), house)
    else:
        found = kiss(order(address="itself"), house)

    assert found.verdict.name == ("target-not-running" if other == "bytes" else "carrier-misbound")


def test_ctrl_c_between_verdict_and_wait_is_not_surfaced(rig):
    """Who asks for proof is not told 0 without it."""
    rig.target.change(accept="bare")

    def stop():
        raise KeyboardInterrupt

    clock = AtLook(2, stop)
    found = kiss(order(until_surfaced=True, wait_s=5.0), house_of(rig, clock=clock))

    assert ("not-surfaced", "written") == (found.verdict.name, found.proof)
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
    assert state(house) == kept.SENT
    assert [LINE] == rig.target.lines()


def test_trouble_after_the_delivery_is_not_a_refusal(rig):
    """The line is in: a configuration that somebody breaks now changes nothing of that."""
    rig.target.change(surface_after=None)
    clock = AtLook(2, lambda: rig.configure("[nonsense]\n"))
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
    assert (None, [("refused", "interrupted")]) == (state(home.house()), story(home.house()))


@pytest.mark.parametrize("key", [DELIVERY, None])
def test_ctrl_c_with_the_claim_leaves_nothing(home, key):
    """130: nothing was started, and the line that was laid out does not lie about."""

    def stop():
        raise KeyboardInterrupt

    home.claude(RAN.format(home.root))
    result = kiss(order(key=key), home.house(clock=AtLook(1, stop)))

    assert ("interrupted", 130) == (result.verdict.name, result.verdict.exit)
    assert home.story(result.delivery_id) == [("refused", "interrupted")]
    assert (None, []) == (
        home.line(result.delivery_id), os.listdir(f"{home.state}/attempts")
    )  # fmt: skip
    assert not os.path.exists(f"{home.root}/ran")


def test_ctrl_c_after_a_run_whose_line_would_be_kept_does_not_invite_a_repeat(home):
    """It may be kept by now, or not: 130 sends to `zdo show`, 76 would say "repeat it"."""
    home.claude("exit 7")

    def stop():
        raise KeyboardInterrupt

    result = kiss(order(or_queue=True), home.house(clock=AtLook(2, stop)))

    assert ("interrupted", 130) == (result.verdict.name, result.verdict.exit)
    assert "carrier-exit" in str(result.reason)
    assert state(home.house()) == kept.CLAIMED
    assert verify.verify(DELIVERY, home.house()).verdict.name == "carrier-exit"


@pytest.mark.parametrize("key", [DELIVERY, None])
def test_a_refusal_without_a_key_is_looked_up_nowhere(home, key):
    """Nothing can be known of a line that was never there."""
    assert "target-unknown" == kiss(order("nobody", key=key), home.house()).verdict.name


def test_ctrl_c_after_the_run_tells_what_it_came_to(home):
    """The verdict is known, though not kept: the line stays claimed until somebody looks."""
    home.claude("exit 7")

    def stop():
        raise KeyboardInterrupt

    result = kiss(order(), home.house(clock=AtLook(2, stop)))

    assert result.verdict.name == "carrier-exit"
    assert state(home.house()) == kept.CLAIMED
    assert verify.verify(DELIVERY, home.house()).verdict.name == "carrier-exit"


class AmongOrphans(Clock):
    """A clock that stops this process when it cleans up after a killed keeper."""

    def __init__(self, ran):
        self._pid, self._ran = os.getpid(), ran

    def sleep(self, seconds):
        """Ctrl-C, while a carrier that has run takes its time to end."""
        if os.getpid() == self._pid and os.path.exists(self._ran):
            raise KeyboardInterrupt
        super().sleep(seconds)


def test_ctrl_c_before_anything_is_known_is_an_honest_doubt(home):
    """A carrier ran and nobody knows how it ended: open, and verify judges what it left."""
    ran = f"{home.root}/ran"
    # A keeper that died before it had named its carrier would leave nobody to clean up after.
    named = "until [ -s $ZDO_CARRIER_ATTEMPT/carrier ]; do sleep 0.01; done"
    home.claude(f"trap '' TERM; {named}; echo ran > {ran}; kill -9 $PPID; sleep 0.3")
    result = kiss(order(), home.house(clock=AmongOrphans(ran)))

    assert result.verdict.name == "unknown"
    assert "Ctrl-C" in str(result.reason)
    assert state(home.house()) == kept.CLAIMED
    take_lease(f"{home.state}/locks", P, timeout_s=10, clock=Clock()).close()
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
