"""The wrapper with many lines: order, each its own receipt, and no trouble that spreads."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from carrier import proof
from carrier.envelope import to_bytes
from carrier.late import read_late
from carrier.proof import Receipt
from dispatch.rig.door import FakeDoor
from tests.fakes.ears import is_gone, send_away, started_with, the_ear_of
from tests.fakes.envelopes import P, an_envelope
from tests.fakes.runs import wait_for

if TYPE_CHECKING:
    from carrier.envelope import Envelope

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
RUN = "from carrier.wrapper import main; main()"
BEHIND = "an earlier line of this run did not get in"
GONE = P


def session(number: int) -> str:
    """The id of the fake session *number*."""
    return f"388e03f6-0000-4000-8000-{number:012}"


class Round:
    """Targets in one registry, and one attempt folder for each line; the first is the lead."""

    def __init__(self, root: Path, stack: contextlib.ExitStack):
        self.root, self._stack = root / "attempts", stack
        self.config = str(root / "claude")
        self.root.mkdir()
        self.doors: list[FakeDoor] = []
        self.folders: list[str] = []
        self.lines: list[Envelope] = []

    def door(self, **script: Any) -> FakeDoor:
        """One more running session; all of them have their doors in one folder."""
        socks = self.doors[0].socks if self.doors else None
        number = len(self.doors) + 1
        door = FakeDoor(self.config, socks=socks, session_id=session(number), **script)
        self.doors.append(self._stack.enter_context(door))
        return door

    def line(self, door: FakeDoor, text: str, folder: str | None = None, **changes: Any) -> str:
        """The folder of one more line for *door*, with its permit."""
        number = len(self.lines) + 1
        plain = {
            "delivery_id": f"d0000000-0000-4000-8000-{number:012}",
            "msg_id": f"e0000000-0000-4000-8000-{number:012}",
            "nonce": f"nonce {number}",
            "line": text,
            "session_id": door.session_id,
            "pid": door.pid,
            "claude_dir": self.config,
            "settle_s": 0.1,
            "wrapper_s": 20.0,
        }
        envelope = an_envelope(**(plain | changes))
        path = f"{self.root}/{folder or f'{envelope.delivery_id}.1'}"
        os.mkdir(path, 0o700)
        proof.write_plain(f"{path}/{proof.PERMIT}", to_bytes(envelope))
        self.folders.append(path)
        self.lines.append(envelope)
        return path

    def lay_out(self, *order: tuple[FakeDoor, str], **changes: Any) -> None:
        """All lines on disk, and the lead's list of companions."""
        for door, text in order:
            self.line(door, text, **changes)
        self.list_companions()

    def list_companions(self) -> None:
        """The lead names the others, in their order."""
        proof.write_round(self.folders[0], [os.path.basename(each) for each in self.folders[1:]])

    def command(self, program: str = RUN) -> tuple[list[str], dict[str, str], bytes]:
        """How the carrier would start the wrapper; coverage's own variables pass."""
        ours = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
        env = ours | {"PATH": os.defpath, "PYTHONPATH": ROOT, "ZDO_CARRIER_DOOR_TARGET": "fable"}
        env["ZDO_CARRIER_ATTEMPT"] = self.folders[0]
        hook = {"session_id": P, "prompt": f"zdo knock {self.lines[0].delivery_id}"}
        return [sys.executable, "-c", program], env, json.dumps(hook).encode()

    def run(self, program: str = RUN, hook: bytes | None = None) -> str:
        """The reason of the wrapper's block decision, after one run."""
        argv, env, plain = self.command(program)
        done = subprocess.run(
            argv, env=env, input=plain if hook is None else hook, capture_output=True, check=False
        )
        assert (0, b"") == (done.returncode, done.stderr)
        decision = json.loads(done.stdout)
        assert decision.pop("decision") == "block"
        return str(decision["reason"])

    def receipts(self) -> list[Receipt | None]:
        """The receipt of each line; None where none lies."""
        found = [proof.read_receipt(folder) for folder in self.folders]
        assert not [each for each in found if isinstance(each, proof.TornReceipt)]
        return found  # type: ignore[return-value]

    def fates(self) -> list[str]:
        """Each line in one word: wrote, what was found, `open` (intent alone) or `permit`."""
        return [
            ("wrote" if receipt.wrote else str(receipt.found))
            if receipt is not None
            else ("open" if os.path.lexists(f"{folder}/{proof.INTENT}") else "permit")
            for folder, receipt in zip(self.folders, self.receipts(), strict=True)
        ]

    def details(self) -> list[str | None]:
        """The detail of each receipt."""
        return [None if receipt is None else receipt.detail for receipt in self.receipts()]

    def left_behind(self) -> set[str]:
        """Sockets beside the doors that are no doors."""
        own = {os.path.basename(door.socket) for door in self.doors}
        return {*os.listdir(self.doors[0].socks)} - own


@pytest.fixture
def round_(tmp_path: Path) -> Iterator[Round]:
    """A round without targets and lines as yet; no process and no socket of ours is left."""
    with contextlib.ExitStack() as stack:
        made = Round(tmp_path, stack)
        yield made
        wait_for(lambda: started_with(str(made.root)) == [])
        if made.doors:
            assert made.left_behind() == set()


def test_every_line_gets_in_and_has_its_receipt(round_: Round) -> None:
    """Interleaved sessions: order within each, one connection and one sender, own receipts."""
    one, two, three = (round_.door() for _ in range(3))
    order = [(one, "a"), (two, "b"), (one, "c"), (three, "d"), (two, "e"), (one, "f")]
    round_.lay_out(*order)

    said = round_.run()

    assert f"zdo wrote {round_.lines[0].delivery_id}" == said
    assert [["a", "c", "f"], ["b", "e"], ["d"]] == [door.lines() for door in (one, two, three)]
    calls = [call for door in round_.doors for call in door.calls(1)]
    assert [1, 1, 1] == [len(door.calls()) for door in round_.doors]
    froms = {frame["from"] for call in calls for frame in call["frames"][1:]}
    assert {f"uds:{one.socks}/{calls[0]['peer_pid']}.sock"} == froms
    for line, folder, receipt in zip(round_.lines, round_.folders, round_.receipts(), strict=True):
        assert receipt is not None
        assert (line.nonce, line.msg_id, line.session_id, line.delivery_id, 1) == (
            receipt.nonce,
            receipt.msg_id,
            receipt.session_id,
            receipt.delivery_id,
            receipt.attempt,
        )
        assert (True, True, True) == (receipt.wrote, receipt.eof, receipt.surfaced)
        assert {proof.INTENT, proof.RECEIPT, proof.ROUND} >= {*os.listdir(folder)}


def test_thirty_long_lines_get_in(round_: Round) -> None:
    """64 KiB each, in one run to one session."""
    one = round_.door()
    texts = [f"{n:02}" + "x" * 65_534 for n in range(30)]
    round_.lay_out(*((one, text) for text in texts))

    round_.run()

    assert texts == one.lines()
    assert ["wrote"] * 30 == round_.fates()


def test_a_thousand_lines_to_fifty_sessions_take_a_few_seconds(round_: Round) -> None:
    """20 lines for each, interleaved."""
    doors = [round_.door() for _ in range(50)]
    order = [(door, f"line {n}") for n in range(20) for door in doors]
    round_.lay_out(*order, wrapper_s=60.0)
    started = time.monotonic()

    round_.run()

    took = time.monotonic() - started
    assert ["wrote"] * 1000 == round_.fates()
    assert {True} == {receipt.eof for receipt in round_.receipts() if receipt}
    assert [[f"line {n}" for n in range(20)]] * 50 == [door.lines() for door in doors]
    assert took < 20


def test_a_second_wrapper_does_nothing(round_: Round) -> None:
    """Neither for the lead nor for the companions, not even where a permit still stands."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"))
    round_.run()
    before = round_.receipts()
    round_.line(two, "late")
    round_.list_companions()

    assert f"zdo not-written {round_.lines[0].delivery_id}" == round_.run()
    assert (["a"], ["b"]) == (one.lines(), two.lines())
    assert [*before, None] == round_.receipts()
    assert "permit" == round_.fates()[2]


def test_wrappers_at_once_write_each_line_once(round_: Round) -> None:
    """Four of them on one round."""
    one, two = round_.door(), round_.door()
    round_.lay_out(*((door, f"{n}") for n in range(5) for door in (one, two)))
    argv, env, hook = round_.command()
    pipe = subprocess.PIPE
    runs = [subprocess.Popen(argv, env=env, stdin=pipe, stdout=pipe) for _ in range(4)]
    said = [run.communicate(hook)[0] for run in runs]

    assert 1 == sum(b"zdo wrote" in each for each in said)
    assert [[f"{n}" for n in range(5)]] * 2 == [door.lines() for door in (one, two)]


def test_without_the_leads_permit_nothing_is_done(round_: Round) -> None:
    """The companions' permits stand and can be withdrawn."""
    one = round_.door()
    round_.lay_out((one, "a"), (one, "b"))
    assert proof.withdraw(round_.folders[0])

    assert f"zdo not-written {round_.lines[0].delivery_id}" == round_.run()
    assert [] == one.calls()
    assert ["permit", "permit"] == round_.fates()
    assert proof.withdraw(round_.folders[1])


@pytest.mark.parametrize("how", ["withdrawn", "taken", "torn-now"])
def test_a_permit_that_is_gone_ends_its_session_alone(round_: Round, how: str) -> None:
    """What stands before it is written, what stands behind it is not even taken."""
    one, two = round_.door(), round_.door()
    order = [(one, "a"), (two, "b"), (one, "c"), (two, "d"), (one, "e"), (two, "f")]
    round_.lay_out(*order)
    folder, program = round_.folders[2], RUN
    if how == "withdrawn":
        assert proof.withdraw(folder)
    if how == "taken":
        os.rename(f"{folder}/{proof.PERMIT}", f"{folder}/{proof.INTENT}")
    if how == "torn-now":
        program = (
            "import carrier.proof as p, carrier.companions as c\n"
            "from carrier.errors import EnvelopeTorn\n"
            "def take(folder, take=p.take):\n"
            f"    if folder == {folder!r}: raise EnvelopeTorn('now')\n"
            "    return take(folder)\n"
            f"c.take = take\n{RUN}"
        )

    round_.run(program)

    assert (["a"], ["b", "d", "f"]) == (one.lines(), two.lines())
    gone = "open" if how == "taken" else "permit"
    assert ["wrote", "wrote", gone, "wrote", "permit", "wrote"] == round_.fates()
    assert proof.withdraw(round_.folders[4])


@pytest.mark.parametrize("how", ["missing", "torn", "no-folder"])
def test_behind_a_line_of_nobody_knows_whom_nothing_follows(round_: Round, how: str) -> None:
    """It may be anybody's, and so might every later line come before its turn."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"), (one, "c"), (two, "d"), (one, "e"))
    folder = round_.folders[2]
    os.unlink(f"{folder}/{proof.PERMIT}")
    if how == "torn":
        Path(folder, proof.PERMIT).write_bytes(b'{"line":')
    if how == "no-folder":
        os.rmdir(folder)

    round_.run()

    assert (["a"], ["b"]) == (one.lines(), two.lines())
    assert ["wrote", "wrote", "permit", "permit", "permit"] == round_.fates()


@pytest.mark.parametrize("name", ["../x", "/etc", "x", "", ".", "..", "a/b.1"])
def test_a_hostile_companion_is_ignored(round_: Round, name: str) -> None:
    """With one name that is none, the list is no list: the lead goes alone."""
    one = round_.door()
    round_.lay_out((one, "a"), (one, "b"))
    decoy = round_.line(one, "decoy", folder="../x")
    with open(f"{round_.folders[0]}/{proof.ROUND}", "a", encoding="ascii") as file:
        file.write(f"{name}\n")

    assert f"zdo wrote {round_.lines[0].delivery_id}" == round_.run()
    assert ["a"] == one.lines()
    assert [proof.PERMIT] == os.listdir(decoy)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"postbox": GONE.replace("6", "7")}, "another postbox"),
        ({"claude_dir": "/elsewhere"}, "another registry"),
        ({"attempt": 2}, "another delivery's"),
        ({"msg_id": f"e0000000-0000-4000-8000-{1:012}"}, "in this run already"),
    ],
)
def test_a_companion_that_does_not_fit_is_not_written(
    round_: Round, changes: dict[str, Any], why: str
) -> None:
    """It and the later lines of its session stay out, told; the others go in."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"))
    number = len(round_.lines) + 1
    round_.line(one, "wrong", f"d0000000-0000-4000-8000-{number:012}.1", **changes)
    for door, text in ((two, "d"), (one, "e")):
        round_.line(door, text)
    round_.list_companions()

    assert f"zdo wrote {round_.lines[0].delivery_id}" == round_.run()
    assert (["a"], ["b", "d"]) == (one.lines(), two.lines())
    trouble = "wrapper-trouble"
    assert ["wrote", "wrote", trouble, "wrote", trouble] == round_.fates()
    _, _, wrong, _, later = round_.details()
    assert why in str(wrong)
    assert BEHIND == later


def test_a_permit_that_changed_its_session_is_not_written(round_: Round) -> None:
    """It was looked at before its turn, and is another's when it is taken."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (one, "b"))
    program = (
        "import carrier.companions as c\n"
        "from registry.record import replace\n"
        f"c.peek = lambda folder, peek=c.peek: replace(peek(folder), session_id={session(2)!r})\n"
        f"{RUN}"
    )

    round_.run(program)

    assert (["a"], []) == (one.lines(), two.lines())
    assert ["wrote", "wrapper-trouble"] == round_.fates()
    assert "another session" in str(round_.details()[1])


@pytest.mark.parametrize("changes", [{"session_id": GONE.replace("6", "7")}, {"session_id": 7}])
def test_a_run_that_is_not_the_leads_writes_nothing(round_: Round, changes: dict[str, Any]) -> None:
    """Another session than the postbox: every line is told so, no door is touched."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"), (one, "c"))
    hook = json.dumps(json.loads(round_.command()[2]) | changes).encode()

    assert f"zdo not-written {round_.lines[0].delivery_id}" == round_.run(hook=hook)
    assert [[], []] == [door.calls() for door in (one, two)]
    assert ["wrapper-trouble"] * 3 == round_.fates()
    why = "the hook ran in another session than the postbox"
    assert [why, why, BEHIND] == round_.details()


def test_a_dead_target_concerns_its_own_lines_alone(round_: Round) -> None:
    """The first of them has the reason, the others came behind it."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"), (one, "c"), (two, "d"))
    one.kill()

    assert f"zdo not-written {round_.lines[0].delivery_id}" == round_.run()
    assert ["b", "d"] == two.lines()
    assert ["target-not-running", "wrote", "target-not-running", "wrote"] == round_.fates()
    assert "no-process" in str(round_.details()[0])
    assert BEHIND == round_.details()[2]


def test_a_door_that_dies_half_way_splits_its_lines(round_: Round) -> None:
    """Some perhaps in, the rest provably not; another session gets all."""
    dying, one = round_.door(die="during"), round_.door()
    order = [(dying, f"{n:02}" + "x" * 60_000) for n in range(12)]
    round_.lay_out(*order, (one, "a"))

    round_.run()

    *half, fine = round_.fates()
    doubts = half.count("wrote")
    assert 0 < doubts < 12
    assert ["wrote"] * doubts + ["target-not-running"] * (12 - doubts) == half
    assert [False] * doubts == [r.eof for r in round_.receipts()[:doubts] if r]
    assert "wrote" == fine
    assert "the door closed before the line" == round_.details()[doubts]
    assert {BEHIND} == {*round_.details()[doubts + 1 : 12]}


def test_a_frozen_target_leaves_the_others_their_time(round_: Round) -> None:
    """Its lines are written and not read; theirs are; within one wait for all."""
    ice, one = round_.door(), round_.door()
    round_.lay_out((ice, "a"), (one, "b"), (ice, "c"), wrapper_s=3.0)
    os.kill(ice.pid, signal.SIGSTOP)
    started = time.monotonic()
    try:
        round_.run()
    finally:
        os.kill(ice.pid, signal.SIGCONT)

    assert time.monotonic() - started < 5
    assert ["wrote"] * 3 == round_.fates()
    assert [False, True, False] == [receipt.eof for receipt in round_.receipts() if receipt]


def test_notices_are_in_the_receipts_of_their_lines(round_: Round) -> None:
    """Held ones each with its own, dropped ones exactly, the others without a word."""
    strict, tight, one = round_.door(accept="hold"), round_.door(limits=True), round_.door()
    round_.lay_out(
        (strict, "a"), (tight, "b"), (one, "c"), (strict, "d"), (tight, "b"), (tight, "e"),
        settle_s=0.5,
    )  # fmt: skip

    round_.run()

    told = [[n.status for n in receipt.notices] for receipt in round_.receipts() if receipt]
    assert [["held"], [], [], ["held"], ["dropped"], []] == told
    assert ["wrote"] * 6 == round_.fates()
    send_away(the_ear_of(round_.folders[0]))


def late(round_: Round) -> list[list[str]]:
    """What was heard of each line after the run."""
    return [[each.status for each in read_late(folder)] for folder in round_.folders]


def test_one_ear_stays_for_all_held_lines(round_: Round) -> None:
    """Two targets that hold, one that does not: each held line gets its own target's answer."""
    hold = {"accept": "hold"}
    one = round_.door(**hold, hold_then="denied", hold_after=1.5)
    two = round_.door(**hold, hold_then="expired", hold_after=2.5)
    three = round_.door()
    round_.lay_out((three, "a"), (one, "b"), (two, "c"), (one, "d"), (two, "e"), (three, "f"))

    round_.run()

    ear = the_ear_of(round_.folders[0])
    assert [ear] == started_with(str(round_.root))
    assert f"{ear}.sock" in round_.left_behind()
    denied, expired = ["held", "denied"], ["held", "expired"]
    wait_for(lambda: late(round_) == [[], denied, [], denied, [], []])
    assert [ear] == started_with(str(round_.root))
    wait_for(lambda: late(round_) == [[], denied, expired, denied, expired, []])
    assert is_gone(ear)


def test_an_ear_stays_for_those_whose_target_lives(round_: Round) -> None:
    """One of two targets is killed, and its lines with it; the other's answer is waited for."""
    one = round_.door(accept="hold")
    two = round_.door(accept="hold", hold_then="denied", hold_after=3.0)
    round_.lay_out((one, "a"), (two, "b"))
    round_.run()
    ear = the_ear_of(round_.folders[0])

    one.kill()

    wait_for(lambda: late(round_) == [[], ["held", "denied"]])
    assert is_gone(ear)


def test_a_lead_that_is_settled_at_once_takes_no_ear_from_the_others(round_: Round) -> None:
    """Its folder names the companions, and may be gone as soon as the hook is over."""
    one, two = round_.door(), round_.door(accept="hold", hold_then="denied", hold_after=1.5)
    round_.lay_out((one, "a"), (two, "b"))
    program = (
        "import os, shutil, carrier.wrapper as w\n"
        "def tell(told, said, tell=w._tell):\n"
        f"    shutil.rmtree({round_.folders[0]!r})\n"
        "    tell(told, said)\n"
        f"w._tell = tell\n{RUN}"
    )

    round_.run(program)

    wait_for(lambda: late(round_) == [[], ["held", "denied"]])


def test_its_alarm_leaves_the_receipts_of_what_is_known(round_: Round) -> None:
    """One session was left alone, one hangs at its door, one has not had its turn."""
    dead, hung, later = (round_.door() for _ in range(3))
    round_.lay_out((dead, "a"), (hung, "b"), (later, "c"), (dead, "d"), wrapper_s=1.5)
    dead.kill()
    program = (
        f"import time, carrier.door as d\nd.InboxDoor.speak = lambda *_: time.sleep(30)\n{RUN}"
    )

    assert "zdo wrapper-trouble OutOfTime" == round_.run(program)
    assert ["target-not-running", "open", "permit", "target-not-running"] == round_.fates()


def test_its_alarm_at_a_permit_leaves_untouched_lines_untouched(round_: Round) -> None:
    """A disk that hangs at the third permit of a session: the first two were not written yet."""
    one = round_.door()
    round_.lay_out((one, "a"), (one, "b"), (one, "c"), wrapper_s=1.0)
    program = (
        "import time, carrier.companions as c\n"
        "def take(folder, take=c.take):\n"
        f"    return time.sleep(30) if folder == {round_.folders[2]!r} else take(folder)\n"
        f"c.take = take\n{RUN}"
    )

    assert "zdo wrapper-trouble OutOfTime" == round_.run(program)
    assert ["wrapper-trouble", "wrapper-trouble", "permit"] == round_.fates()
    assert ["the wrapper's time was over before the door"] * 2 == round_.details()[:2]
    assert [] == one.calls()


def test_an_alarm_is_followed_by_another(round_: Round) -> None:
    """A door that hangs, and then a disk: the prompt stays blocked soon after."""
    dead, hung = round_.door(), round_.door()
    round_.lay_out((dead, "a"), (hung, "b"), wrapper_s=1.0)
    dead.kill()
    program = (
        "import time, carrier.door as d, carrier.proof as p\n"
        f"d.InboxDoor.speak = p.leave_receipt = lambda *_: time.sleep(30)\n{RUN}"
    )
    started = time.monotonic()

    assert "zdo wrapper-trouble OutOfTime" == round_.run(program)
    assert 2 < time.monotonic() - started < 6
    assert ["open", "open"] == round_.fates()


def test_no_permit_is_taken_when_it_is_late(round_: Round) -> None:
    """Slow permits: what is taken in time goes in and is heard, the rest stands for another run."""
    one, two = round_.door(), round_.door()
    round_.lay_out(*((door, f"{n}") for n in range(6) for door in (one, two)), wrapper_s=4.0)
    program = (
        "import time, carrier.companions as c\n"
        "def take(folder, take=c.take):\n"
        "    time.sleep(0.4)\n"
        "    return take(folder)\n"
        f"c.take = take\n{RUN}"
    )

    round_.run(program)

    fates = round_.fates()
    taken = fates.count("wrote")
    assert 1 < taken < 6
    assert ["permit"] * (12 - taken) == [fate for fate in fates if fate != "wrote"]
    assert [f"{n}" for n in range(taken)] == one.lines()
    assert [] == two.calls()
    assert {True} == {receipt.eof for receipt in round_.receipts() if receipt}


def test_a_receipt_that_cannot_be_left_takes_nothing_from_the_others(round_: Round) -> None:
    """The line is in and nothing says so; the others have theirs."""
    one = round_.door()
    round_.lay_out((one, "a"), (one, "b"), (one, "c"))
    os.mkdir(f"{round_.folders[1]}/{proof.RECEIPT}")

    assert round_.run().startswith("zdo wrapper-trouble")
    assert ["a", "b", "c"] == one.lines()
    kept = [proof.read_receipt(round_.folders[n]) for n in (0, 2)]
    assert [True, True] == [isinstance(each, Receipt) and each.wrote for each in kept]


def test_a_door_in_trouble_is_told_when_the_others_are_done(round_: Round) -> None:
    """No receipt for its lines, receipts for the others, and the decision names the trouble."""
    one, two = round_.door(), round_.door()
    round_.lay_out((one, "a"), (two, "b"), (one, "c"))
    program = (
        "import carrier.door as d\n"
        "def speak(self, row, *given, speak=d.InboxDoor.speak):\n"
        f"    return 1 / 0 if row.pid == {one.pid} else speak(self, row, *given)\n"
        f"d.InboxDoor.speak = speak\n{RUN}"
    )

    assert "zdo wrapper-trouble ZeroDivisionError" == round_.run(program)
    assert ["open", "wrote", "open"] == round_.fates()
    assert ["b"] == two.lines()


@pytest.mark.parametrize(("lines", "loaded"), [(1, False), (2, True)])
def test_one_line_does_not_wait_for_what_many_need(round_: Round, lines: int, loaded: bool) -> None:
    """The module for companions is only loaded where there are some, and only in the child."""
    one = round_.door()
    order: Sequence[tuple[FakeDoor, str]] = [(one, f"{n}") for n in range(lines)]
    round_.lay_out(*order)
    if lines == 1:
        os.unlink(f"{round_.folders[0]}/{proof.ROUND}")
    program = (
        "import sys, carrier.wrapper as w\n"
        "tell = w._tell\n"
        "w._tell = lambda told, _: tell(told, str('carrier.companions' in sys.modules))\n"
        "w.main()"
    )

    assert str(loaded) == round_.run(program)
    assert ["wrote"] * lines == round_.fates()
