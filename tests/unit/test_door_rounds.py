"""Many lines through several doors in one run: order, one sender, and each line's own answer."""

import contextlib
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import carrier.door
from carrier.calls import Answer
from carrier.door import InboxDoor
from carrier.envelope import Envelope
from carrier.transcript import Follower
from dispatch.rig.door import FakeDoor
from registry.clock import Clock
from registry.processes import Processes
from registry.rows import Row, read_rows
from tests.fakes.envelopes import T, an_envelope

T2 = "388e03f6-0000-4000-8000-000000000002"
T3 = "388e03f6-0000-4000-8000-000000000003"


def row_of(door: FakeDoor) -> Row:
    """The fake session's row."""
    return next(row for row in read_rows(door.config, Processes()).rows if row.pid == door.pid)


def lines_for(door: FakeDoor, *texts: str, settle_s: float = 0.1) -> list[Envelope]:
    """An envelope for each of *texts*."""
    where = {"session_id": door.session_id, "claude_dir": door.config, "pid": door.pid}
    return [
        an_envelope(line=text, msg_id=f"{door.session_id[:-4]}{n:04}", settle_s=settle_s, **where)
        for n, text in enumerate(texts, 1000 * int(door.session_id[-1]))
    ]


def a_door(within: float = 20.0, clock: Clock | None = None) -> InboxDoor:
    """The real door for this process."""
    clock = clock or Clock()
    deadline = clock.monotonic() + within
    return InboxDoor(clock, deadline=deadline, uid=os.geteuid(), pid=os.getpid())


def nothing() -> dict[str, str]:
    """Transcripts that show nothing."""
    return {}


def looking(*places: tuple[FakeDoor, Sequence[Envelope]]) -> Callable[[], Mapping[str, str]]:
    """A look at the transcripts of all *places*."""
    followers = [
        Follower(None, 0, {e.msg_id: e.line for e in lines}, door.session_id, find=_path(door))
        for door, lines in places
    ]

    def look() -> Mapping[str, str]:
        states: dict[str, str] = {}
        for follower in followers:
            follower.look()
            states |= follower.states
        return states

    return look


def _path(door: FakeDoor) -> Callable[[], str | None]:
    return lambda: door.transcript if os.path.exists(door.transcript) else None


def told(answer: Answer) -> list[str]:
    """The notices of one line."""
    return [notice.status for notice in answer.notices]


@pytest.fixture
def config(tmp_path: Path) -> str:
    """One registry for all doors."""
    return str(tmp_path / "claude")


@pytest.fixture
def short() -> Iterator[str]:
    """A folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="zdo-", dir="/tmp") as folder:
        yield folder


@contextlib.contextmanager
def frozen(door: FakeDoor) -> Iterator[None]:
    """*door*'s process is stopped meanwhile."""
    os.kill(door.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(door.pid, signal.SIGCONT)


def test_all_lines_of_a_session_go_in_order_on_one_connection(config: str) -> None:
    """One auth line, then frame behind frame; each line has its own answer."""
    with FakeDoor(config) as target:
        lines = lines_for(target, *(f"line {n}" for n in range(20)))
        door = a_door()

        assert door.speak(row_of(target), target.token, lines) is None
        answers = door.listen(looking((target, lines)))
        (call,) = target.calls(1)

        assert [line.line for line in lines] == target.lines()
        assert os.listdir(target.socks) == [os.path.basename(target.socket)]
    reply = f"{target.socks}/{os.getpid()}.sock"
    assert [line.msg_id for line in lines] == [*answers]
    assert {Answer(wrote=True, eof=True, reply=reply)} == {*answers.values()}
    assert [target.token] == [f["token"] for f in call["frames"] if f["type"] == "auth"]
    assert {f"uds:{reply}"} == {f["from"] for f in call["frames"][1:]}


def test_thirty_of_the_longest_lines_go_in(config: str) -> None:
    """Far more than the kernel keeps for nobody in particular: pushed as the door reads."""
    with FakeDoor(config) as target:
        lines = lines_for(target, *(f"{n:02}" + "é" * 32_767 for n in range(30)))
        door = a_door()

        assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((target, lines)))

        assert [True] * 30 == [answer.eof for answer in answers.values()]
        assert [line.line for line in lines] == target.lines()


def test_doors_in_one_folder_share_one_sender(config: str) -> None:
    """A second address would be a second allowance; another folder has to have its own."""
    with (
        FakeDoor(config) as one,
        FakeDoor(config, socks=one.socks, session_id=T2) as two,
        FakeDoor(config, session_id=T3) as far,
    ):
        door = a_door()
        for target in (one, two, far):
            assert door.speak(row_of(target), None, lines_for(target, "a", "b")) is None
        answers = door.listen(nothing)
        froms = [call["frames"][0]["from"] for t in (one, two, far) for call in t.calls(1)]

        here, there = f"{one.socks}/{os.getpid()}.sock", f"{far.socks}/{os.getpid()}.sock"
        assert [f"uds:{here}", f"uds:{here}", f"uds:{there}"] == froms
        assert [here] * 4 + [there] * 2 == [answer.reply for answer in answers.values()]
        assert {"cc-socks"} == {*os.listdir(far.base)} - {"script.json", "log.jsonl"} - {
            "script.json.seen"
        }
        assert not os.path.lexists(here)
        assert not os.path.lexists(there)


def test_a_frozen_door_costs_the_others_nothing_but_the_shared_wait(config: str) -> None:
    """Its lines are a doubt; theirs are read, and the whole takes one wait, not one for each."""
    with (
        FakeDoor(config) as one,
        FakeDoor(config, session_id=T2) as ice,
        FakeDoor(config, session_id=T3) as snow,
        frozen(ice),
        frozen(snow),
    ):
        rows = {target: row_of(target) for target in (ice, snow, one)}
        door, started = a_door(within=0.8), time.monotonic()
        for target, row in rows.items():
            assert door.speak(row, None, lines_for(target, "a", "b")) is None
        spoken = time.monotonic() - started
        answers = door.listen(nothing)
        took = time.monotonic() - started

        assert ["a", "b"] == one.lines()
    assert [False] * 4 + [True] * 2 == [answer.eof for answer in answers.values()]
    assert {True} == {answer.wrote for answer in answers.values()}
    assert spoken < 0.5
    assert took < 2


def test_a_frozen_door_with_its_buffer_full_keeps_the_rest_out(config: str) -> None:
    """What the kernel took is a doubt, what it did not take is not in; the other door gets all."""
    with (
        FakeDoor(config) as one,
        FakeDoor(config, session_id=T2) as ice,
        frozen(ice),
    ):
        large = [f"{n:02}" + "x" * 60_000 for n in range(12)]
        icy, fine = lines_for(ice, *large), lines_for(one, *large)
        door = a_door(within=1.0)
        assert door.speak(row_of(ice), None, icy) is None
        assert door.speak(row_of(one), None, fine) is None
        answers = door.listen(nothing)

        assert large == one.lines()
    wrote = [answers[line.msg_id].wrote for line in icy]
    assert [True, False] == sorted(set(wrote), reverse=True)
    assert sorted(wrote, reverse=True) == wrote
    rest = [answers[line.msg_id] for line in icy if not answers[line.msg_id].wrote]
    assert {("wrapper-trouble", "the door stopped reading before the line")} == {
        (answer.found, answer.detail) for answer in rest
    }
    assert [True] * 12 == [answers[line.msg_id].eof for line in fine]


def test_a_door_that_dies_half_way_splits_the_lines(config: str) -> None:
    """The first ones perhaps, the later ones provably not; another door is not concerned."""
    with (
        FakeDoor(config, die="during") as dying,
        FakeDoor(config, session_id=T2) as one,
    ):
        large = [f"{n:02}" + "x" * 60_000 for n in range(20)]
        lost, fine = lines_for(dying, *large), lines_for(one, "a")
        door = a_door()
        assert door.speak(row_of(dying), None, lost) is None
        assert door.speak(row_of(one), None, fine) is None
        answers = door.listen(nothing)

        assert os.listdir(dying.socks) == [os.path.basename(dying.socket)]
    found = [(answers[line.msg_id].wrote, answers[line.msg_id].found) for line in lost]
    doubts = found.count((True, None))
    assert 0 < doubts < 20
    assert [(True, None)] * doubts + [(False, "target-not-running")] * (20 - doubts) == found
    assert {False} == {answers[line.msg_id].eof for line in lost}
    assert answers[fine[0].msg_id].eof


def test_each_held_line_has_its_own_notice(config: str) -> None:
    """And the lines of another door have none."""
    with (
        FakeDoor(config, accept="hold") as strict,
        FakeDoor(config, socks=strict.socks, session_id=T2) as one,
    ):
        held, fine = lines_for(strict, *"abcde", settle_s=0.4), lines_for(one, "a", "b")
        door = a_door()
        for target, lines in ((strict, held), (one, fine)):
            assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((one, fine)))

        assert [True] * 5 == [each["hung_up"] for each in strict.notices(5)]
    assert [["held"]] * 5 == [told(answers[line.msg_id]) for line in held]
    assert [[]] * 2 == [told(answers[line.msg_id]) for line in fine]


@pytest.mark.parametrize("then", ["delivered", "denied"])
def test_the_window_ends_when_every_line_is_in_or_told_of(config: str, then: str) -> None:
    """Some surfaced, the others with a final notice: nobody waits for more."""
    with (
        FakeDoor(config, accept="hold", hold_then=then, hold_after=0.02) as strict,
        FakeDoor(config, session_id=T2) as one,
    ):
        held, fine = lines_for(strict, "a", "b", settle_s=8), lines_for(one, "a", "b", settle_s=8)
        door, started = a_door(), time.monotonic()
        for target, lines in ((strict, held), (one, fine)):
            assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((one, fine)))

        assert time.monotonic() - started < 4
    assert [["held", then]] * 2 == [told(answers[line.msg_id]) for line in held]


def test_a_line_that_is_not_told_of_keeps_the_window_open(config: str) -> None:
    """One of two lines is refused as a duplicate; the other never shows: it waits to the end."""
    with FakeDoor(config, limits=True, surface_after=None, sum_after=0.1) as target:
        lines = lines_for(target, "a", "b", "a", settle_s=0.3)
        door, started = a_door(), time.monotonic()
        assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((target, lines)))
        took = time.monotonic() - started

    assert [[], [], ["dropped"]] == [told(answers[line.msg_id]) for line in lines]
    # They are enqueued, so a sum of drops cannot name them: the window is the usual one.
    assert 0.3 < took < 3


def test_drops_are_told_of_exactly_the_dropped_lines(config: str) -> None:
    """The first notice comes at once, the sum of the others is waited for."""
    with FakeDoor(config, limits=True, sum_after=1.0) as target:
        texts = [f"line {n}" for n in range(34)]
        texts[7] = texts[3]
        lines = lines_for(target, *texts, settle_s=0.2)
        door, started = a_door(), time.monotonic()
        assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((target, lines)))
        took = time.monotonic() - started
        told_of = [each["notice"]["dropped_msg_ids"] for each in target.notices(3)]

    drops = [n for n, line in enumerate(lines) if told(answers[line.msg_id]) == ["dropped"]]
    assert [7, 31, 32, 33] == drops
    assert [[]] * 30 == [told(answers[x.msg_id]) for n, x in enumerate(lines) if n not in drops]
    reasons = [answers[lines[n].msg_id].notices[0].drop_reason for n in drops]
    assert ["duplicate", "rate-limited", "rate-limited", "rate-limited"] == reasons
    assert [[], [], [line.msg_id for line in lines[32:]]] == told_of
    # Not a moment longer than the sum takes.
    assert 1.0 < took < 4


def test_the_wait_for_a_sum_ends_with_the_wrappers_time(config: str) -> None:
    """A line of which nothing is known may still be in it, but the deadline is the deadline."""
    script = {"limits": True, "sum_after": 30, "enqueue": False, "surface_after": None}
    with FakeDoor(config, **script) as target:
        lines = lines_for(target, *(f"line {n}" for n in range(32)), settle_s=0.1)
        door, started = a_door(within=1.0), time.monotonic()
        assert door.speak(row_of(target), None, lines) is None
        answers = door.listen(looking((target, lines)))
        took = time.monotonic() - started

    assert [[]] * 30 + [["dropped"], []] == [told(answer) for answer in answers.values()]
    assert 0.8 < took < 2


class Skipping(Clock):
    """A clock that can be put forward."""

    ahead = 0.0

    def monotonic(self) -> float:
        """Later than it is."""
        return super().monotonic() + self.ahead


def test_the_sum_is_waited_for_once(config: str) -> None:
    """Six seconds from the first notice of a drop; a second drop does not make it longer."""
    script = {"limits": True, "sum_after": 0.3, "enqueue": False, "surface_after": None}
    with FakeDoor(config, **script) as target:
        lines = lines_for(target, *(f"line {n}" for n in range(33)), settle_s=0.1)
        clock = Skipping()
        door = a_door(60, clock)
        assert door.speak(row_of(target), None, lines) is None

        def look() -> Mapping[str, str]:
            if len(target.notices()) == 2:
                clock.ahead += 0.5
            return {}

        started = clock.monotonic()
        answers = door.listen(look)
        took = clock.monotonic() - started

    assert [[]] * 30 + [["dropped"]] * 3 == [told(answer) for answer in answers.values()]
    assert 5.8 < took < 8


def test_ends_are_waited_for_from_the_last_line_on(config: str) -> None:
    """However long the other doors have taken meanwhile."""
    with FakeDoor(config) as target:
        clock = Skipping()
        door = a_door(60, clock)
        lines = lines_for(target, *("x" * 60_000 + f"{n}" for n in range(8)), settle_s=0)
        assert door.speak(row_of(target), None, lines) is None
        clock.ahead = 30

        assert [True] * 8 == [answer.eof for answer in door.listen(nothing).values()]


def test_after_the_time_the_doors_are_asked_once_more(config: str) -> None:
    """What has been read by then is read."""
    with FakeDoor(config) as target:
        clock = Skipping()
        door = a_door(5, clock)
        assert door.speak(row_of(target), None, lines_for(target, "a")) is None
        target.calls(1)
        clock.ahead = 30

        assert [True] == [answer.eof for answer in door.listen(nothing).values()]


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses elsewhere")
def test_full_queues_are_waited_for_once_in_all(short: str) -> None:
    """Ten stopped sessions with a crowd before them take no longer than one."""
    clock = Skipping()
    door = a_door(60, clock)
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        answers = []
        for number in range(5):
            path = f"{short}/{number}.sock"
            for conn in full_queue(path):
                stack.enter_context(conn)
            answers.append(door.speak(own_row(path), None, [an_envelope()]))
        door.close()

    assert {(False, "wrapper-trouble", "the door's queue stayed full")} == {
        answer and (answer.wrote, answer.found, answer.detail) for answer in answers
    }
    assert 1.5 < time.monotonic() - started < 5


def full_queue(path: str) -> list[socket.socket]:
    """A listener that accepts nobody, and those who wait at it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(0)
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for each in crowd:
        each.settimeout(0)
        each.connect_ex(path)
    return [listener, *crowd]


def own_row(path: str) -> Row:
    """A row of this process with its door at *path*."""
    words = ("name", "status", "cwd", "started_at", "status_at", "waiting_for", "version")
    absent = dict.fromkeys((*words, "entrypoint", "pid_domain"))
    return Row(file="1.json", pid=os.getpid(), session_id=T, socket=path, proc_start="", **absent)  # type: ignore[arg-type]


def test_without_a_descriptor_the_door_is_not_touched(config: str) -> None:
    """Too many doors for one process: the last ones are left alone, the others are not lost."""

    class Starved:
        AF_UNIX = SOCK_STREAM = SOL_SOCKET = SO_PEERCRED = 1

        @staticmethod
        def socket(*_: Any) -> Any:
            raise OSError(24, "Too many open files")

    original = carrier.door._socket
    with FakeDoor(config) as one, FakeDoor(config, session_id=T2) as two:
        door = a_door()
        assert door.speak(row_of(one), None, lines_for(one, "a")) is None
        carrier.door._socket = Starved  # type: ignore[assignment]
        try:
            answer = door.speak(row_of(two), None, lines_for(two, "a"))
        finally:
            carrier.door._socket = original
        answers = door.listen(nothing)

        assert [True] == [each.eof for each in answers.values()]
        assert [] == two.calls()
    assert answer is not None
    assert (False, "wrapper-trouble") == (answer.wrote, answer.found)
    assert answer.detail == "no way to the door: Too many open files"


def test_a_closed_door_leaves_nothing_behind(config: str) -> None:
    """Also when nobody listens any more; and a second time does nothing."""
    with FakeDoor(config) as target:
        door = a_door()
        assert door.speak(row_of(target), None, lines_for(target, "a")) is None
        assert len(os.listdir(target.socks)) == 2
        door.close()
        door.close()

        assert [os.path.basename(target.socket)] == os.listdir(target.socks)
        assert {} == door.listen(nothing)


def test_a_look_that_fails_leaves_no_socket_behind(config: str) -> None:
    """Whatever cuts in: the reply socket goes."""

    def broken() -> dict[str, str]:
        raise RuntimeError

    with FakeDoor(config) as target:
        door = a_door()
        assert door.speak(row_of(target), None, lines_for(target, "a")) is None
        with pytest.raises(RuntimeError):
            door.listen(broken)

        assert [os.path.basename(target.socket)] == os.listdir(target.socks)


def test_a_refused_door_says_nothing_of_the_others(config: str) -> None:
    """Its answer comes at once, and it is not among those that are listened to."""
    with FakeDoor(config) as one, FakeDoor(config, session_id=T2) as dead:
        door = a_door()
        row = row_of(dead)
        dead.kill()
        refused = door.speak(row, None, lines_for(dead, "a"))
        assert door.speak(row_of(one), None, lines_for(one, "b")) is None
        answers = door.listen(nothing)

    assert refused is not None
    assert (False, "target-not-running") == (refused.wrote, refused.found)
    assert [line.msg_id for line in lines_for(one, "b")] == [*answers]


def test_a_slow_look_is_not_taken_all_the_time(config: str) -> None:
    """Many transcripts on a slow disk: at least as long as a look takes, none is taken."""
    looks = []
    with FakeDoor(config) as target:
        door = a_door()
        lines = lines_for(target, "a", settle_s=0.5)
        assert door.speak(row_of(target), None, lines) is None

        def look() -> dict[str, str]:
            looks.append(time.monotonic())
            time.sleep(0.05)
            return {}

        door.listen(look)

    assert 2 < len(looks) < 8
