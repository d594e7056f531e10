"""Visits: rows found afresh, doors left alone for the right reason, every line's receipt."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import carrier.visit
from carrier.calls import Answer
from carrier.door import Door, InboxDoor
from carrier.envelope import Envelope
from carrier.proof import Notice, Receipt
from carrier.transcript import SURFACED
from carrier.visit import Line, StayAway, Tour, find_row
from dispatch.rig.door import FakeDoor
from dispatch.rig.script import REASONS
from registry.clock import Clock
from registry.processes import Processes
from registry.rows import Row
from tests.fakes.envelopes import MSG, P, T, a_receipt, an_envelope

AT = "2026-11-30T14:24:04.751Z"
T2 = "388e03f6-0000-4000-8000-000000000002"
WROTE = Answer(wrote=True, eof=True, reply="/r")


class Fixed(Clock):
    """A clock that stands at AT."""

    def now(self) -> float:
        """Always the same."""
        return 1_796_048_644.751


class PaperDoor(Door):
    """A door that only remembers, and answers as it is told."""

    name = "paper"

    def __init__(self, answer: Answer = WROTE, act: Callable[[], object] = bool):
        self.answer, self.act = answer, act
        self.visits: list[tuple[int, str | None, list[str]]] = []
        self.seen: list[bool] = []
        self.lines: list[str] = []

    def speak(self, row: Row, token: str | None, envelopes: Sequence[Envelope]) -> Answer | None:
        """Remember the visit."""
        self.visits.append((row.pid, token, [each.line for each in envelopes]))
        self.act()
        if not self.answer.wrote:
            return self.answer
        self.lines += [each.msg_id for each in envelopes]
        return None

    def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
        """The same answer for every line."""
        self.seen += [state == SURFACED for state in look().values()]
        return dict.fromkeys(self.lines, self.answer)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[FakeDoor]:
    """A running session."""
    with FakeDoor(str(tmp_path)) as door:
        yield door


def envelope_for(door: FakeDoor, **changes: Any) -> Envelope:
    """An envelope for *door*'s session with *changes*."""
    return an_envelope(**({"pid": door.pid, "claude_dir": door.config, "settle_s": 0.1} | changes))


def visited(door: FakeDoor, paper: Door, **changes: Any) -> Receipt:
    """The receipt of one visit."""
    return toured(paper, envelope_for(door, **changes))[0]


def toured(
    door: Door, *envelopes: Envelope, processes: Processes | None = None
) -> tuple[Receipt, ...]:
    """The receipts of one run, each session visited once, in the order of *envelopes*."""
    tour = Tour(door, processes or Processes(), Fixed())
    lines = [Line(f"/folder/{number}", each) for number, each in enumerate(envelopes)]
    tour.sessions = tuple(dict.fromkeys(each.session_id for each in envelopes))
    for line in lines:
        tour.expect(line)
    for session in tour.sessions:
        tour.call_on([line for line in lines if line.envelope.session_id == session])
    tour.listen()
    assert tour.trouble is None
    return tuple(tour.known[line.folder] for line in lines)


def inbox() -> InboxDoor:
    """The real door for this process."""
    clock = Clock()
    deadline = clock.monotonic() + 10
    return InboxDoor(clock, deadline=deadline, uid=os.geteuid(), pid=os.getpid())


def test_a_written_line_has_its_receipt(target: FakeDoor) -> None:
    """Ids, nonce, row, proof: all of it from this attempt."""
    receipt = visited(target, inbox())

    assert receipt == a_receipt(
        pid=target.pid,
        at=AT,
        surfaced=True,
        transcript=target.transcript,
        reply=f"{target.socks}/{os.getpid()}.sock",
    )
    assert ["one line of text"] == target.lines()


def test_the_door_gets_the_row_and_its_token(target: FakeDoor) -> None:
    """Once."""
    paper = PaperDoor()

    receipt = visited(target, paper)

    assert [(target.pid, target.token, ["one line of text"])] == paper.visits
    assert (receipt.door, receipt.reply, receipt.surfaced) == ("paper", "/r", False)


def test_the_transcript_is_read_from_where_it_ended_before_the_write(target: FakeDoor) -> None:
    """The receipt names the file and the offset, so that others can look again."""
    visited(target, inbox())
    before = os.stat(target.transcript).st_size

    receipt = visited(target, PaperDoor())

    assert (receipt.transcript, receipt.offset) == (target.transcript, before)
    # The same id stands before the offset: this attempt has not surfaced it.
    assert not receipt.surfaced


def test_what_the_transcript_shows_during_the_write_is_seen(target: FakeDoor) -> None:
    """Even in a file that was not there before."""
    paper = PaperDoor(act=lambda: visited(target, inbox()))

    receipt = visited(target, paper)

    assert paper.seen == [True]
    assert (receipt.surfaced, receipt.transcript, receipt.offset) == (True, target.transcript, 0)


def test_the_doors_own_refusal_is_the_receipts(target: FakeDoor) -> None:
    """Not written: found and detail as the door said, and nothing surfaced."""
    no = Answer(wrote=False, eof=False, found="door-mismatch", detail="why")

    receipt = visited(target, PaperDoor(no))

    assert (receipt.wrote, receipt.found, receipt.detail) == (False, "door-mismatch", "why")
    assert (receipt.session_id, receipt.pid, receipt.surfaced) == (T, target.pid, False)


def test_notices_are_in_the_receipt(target: FakeDoor) -> None:
    """As they were heard."""
    target.change(accept="hold")

    (notice,) = visited(target, inbox()).notices

    assert notice == Notice("held", None, None, REASONS["held"])


def test_a_cleared_session_is_a_mismatch(target: FakeDoor) -> None:
    """The same process under another id: its door is left alone, and the receipt names it."""
    paper = PaperDoor()
    target.change(session_id=P)

    receipt = visited(target, paper)

    assert (receipt.wrote, receipt.found) == (False, "door-mismatch")
    assert (receipt.session_id, receipt.pid) == (P, target.pid)
    assert paper.visits == []


def test_a_session_cleared_at_the_connection_drops_the_line(target: FakeDoor) -> None:
    """Too late to see beforehand; the pin makes the target drop it, and nothing surfaces."""
    target.change(clear_to=P, accept="surface")

    receipt = visited(target, inbox())

    assert (receipt.wrote, receipt.eof, receipt.surfaced) == (True, True, False)
    assert [["session-mismatch"]] == [call["fates"] for call in target.calls(1)]


def test_a_second_row_with_the_id_is_a_mismatch(target: FakeDoor) -> None:
    """Two candidates are no door."""
    paper = PaperDoor()
    with FakeDoor(target.config):
        receipt = visited(target, paper)

    assert (receipt.found, receipt.session_id, receipt.pid) == ("door-mismatch", T, None)
    assert "2 running rows" in (receipt.detail or "")
    assert paper.visits == []


def test_a_session_that_moved_to_another_process_is_written_there(target: FakeDoor) -> None:
    """Resumed elsewhere since: the id decides, not the pid."""
    paper = PaperDoor()
    target.change(session_id=P)
    with FakeDoor(target.config) as other:
        receipt = visited(target, paper)

        assert (receipt.session_id, receipt.pid) == (T, other.pid)


def test_an_ended_session_is_not_running(target: FakeDoor) -> None:
    """Its row may stay behind; its process does not."""
    target.kill()

    receipt = visited(target, PaperDoor())

    assert (receipt.found, receipt.session_id) == ("target-not-running", T)
    assert "no-process" in (receipt.detail or "")


def test_another_session_that_runs_is_no_substitute(target: FakeDoor) -> None:
    """Neither the id nor the pid of the envelope: it is not touched."""
    paper = PaperDoor()

    receipt = visited(target, paper, session_id=P, pid=1)

    assert (receipt.found, receipt.session_id, receipt.pid) == ("target-not-running", P, None)
    assert paper.visits == []


def test_no_row_at_all_is_not_running(tmp_path: Path) -> None:
    """An empty registry."""
    with pytest.raises(StayAway, match="target-not-running: no running row: none has the id"):
        find_row(an_envelope(claude_dir=str(tmp_path)), Processes())


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_session_behind_an_odd_socket_is_a_mismatch(target: FakeDoor, kind: str) -> None:
    """It lives, but what stands at the door's path is not to be trusted."""
    row = json.loads(Path(target.row_file).read_bytes())
    row["messagingSocketPath"] = f"{target.base}/odd"
    Path(target.row_file).write_text(json.dumps(row))
    if kind == "link":
        os.symlink(target.socket, f"{target.base}/odd")
    else:
        Path(f"{target.base}/odd").write_bytes(b"")
    paper = PaperDoor()

    receipt = visited(target, paper)

    assert (receipt.wrote, receipt.found) == (False, "door-mismatch")
    assert paper.visits == []
    assert target.calls() == []


def test_a_session_of_another_user_is_a_mismatch(target: FakeDoor) -> None:
    """Another uid behind the socket."""

    class Stranger(Processes):
        def own_uid(self) -> int:
            return os.geteuid() + 1

    with pytest.raises(StayAway, match="door-mismatch: no running row: foreign-owner"):
        find_row(envelope_for(target), Stranger())


def test_a_row_in_other_letters_is_found(target: FakeDoor) -> None:
    """The quick look misses it, the whole one does not."""
    target.change(session_id=T.upper())

    assert find_row(envelope_for(target), Processes()).pid == target.pid


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (OSError, "RegistryUnreadable"),
        (RuntimeError, "RuntimeError"),
        (KeyboardInterrupt, "KeyboardInterrupt"),
        (MemoryError, "MemoryError"),
    ],
)
def test_any_trouble_before_the_door_leaves_it_untouched(
    target: FakeDoor, trouble: type[BaseException], told: str
) -> None:
    """Nothing was written, so the receipt can say so; it never quotes the error."""

    class Broken(Processes):
        def start_token(self, pid: int) -> str | None:
            raise trouble(f"one line of text {pid}")

    paper = PaperDoor()

    (receipt,) = toured(paper, envelope_for(target), processes=Broken())

    assert (receipt.wrote, receipt.found) == (False, "wrapper-trouble")
    assert receipt.detail == told
    assert paper.visits == []


def test_trouble_at_the_door_makes_no_receipt(target: FakeDoor) -> None:
    """The line may be in: only the absence of a receipt is honest."""

    def broken() -> None:
        raise RuntimeError

    tour = Tour(PaperDoor(act=broken), Processes(), Clock())
    line = Line("/folder", envelope_for(target))
    tour.expect(line)
    tour.call_on([line])
    tour.listen()

    assert isinstance(tour.trouble, RuntimeError)
    assert {} == tour.known


def test_trouble_after_the_write_does_not_hide_it(target: FakeDoor) -> None:
    """Out of descriptors once the line is in, the receipt still says that it was written."""
    written = []

    class Starving(Processes):
        def start_token(self, pid: int) -> str | None:
            if written:
                raise OSError(24, "too many open files")
            return super().start_token(pid)

    paper = PaperDoor(act=lambda: written.append(True))
    (receipt,) = toured(paper, envelope_for(target), processes=Starving())

    assert (receipt.wrote, receipt.eof, receipt.moved_to) == (True, True, None)


def lines_for(door: FakeDoor, *texts: str) -> list[Envelope]:
    """An envelope for each of *texts*."""
    own = int(door.session_id[-1])
    where = {"session_id": door.session_id, "nonce": f"n{own}"}
    return [
        envelope_for(door, line=text, msg_id=f"{MSG[:-4]}{own}{n:03}", **where)
        for n, text in enumerate(texts)
    ]


@pytest.fixture
def second(target: FakeDoor) -> Iterator[FakeDoor]:
    """Another running session."""
    with FakeDoor(target.config, session_id=T2) as door:
        yield door


def test_every_line_of_every_session_has_its_receipt(target: FakeDoor, second: FakeDoor) -> None:
    """Two sessions through the real door: each line's own ids, its own row, its own proof."""
    lines = [*lines_for(target, "a", "b"), *lines_for(second, "a", "c", "d")]

    receipts = toured(inbox(), *lines)

    assert [line.msg_id for line in lines] == [each.msg_id for each in receipts]
    assert [target.pid] * 2 + [second.pid] * 3 == [each.pid for each in receipts]
    assert [target.transcript] * 2 + [second.transcript] * 3 == [e.transcript for e in receipts]
    assert [(True, True, True)] * 5 == [(e.wrote, e.eof, e.surfaced) for e in receipts]
    assert (["a", "b"], ["a", "c", "d"]) == (target.lines(), second.lines())


def test_the_registry_is_read_once_for_all_sessions(
    target: FakeDoor, second: FakeDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One scan, and afterwards a session's own row alone, right before its door."""
    asked: list[str] = []
    for name in ("rows_with", "read_rows", "row_of"):
        plain = getattr(carrier.visit, name)

        def noting(*given: Any, name: str = name, plain: Any = plain) -> Any:
            asked.append(name)
            return plain(*given)

        monkeypatch.setattr(carrier.visit, name, noting)
    moved = ["row_of"] * 2  # afterwards, for lines that have not surfaced

    toured(PaperDoor(), *lines_for(target, "a", "b"), *lines_for(second, "a"))

    assert ["rows_with", "row_of", *moved] == asked


def test_a_target_that_dies_between_two_visits_is_not_running(
    target: FakeDoor, second: FakeDoor
) -> None:
    """The scan had seen it; its own row is asked again, and only its lines are concerned."""
    paper = PaperDoor(act=second.kill)

    first, *rest = toured(paper, *lines_for(target, "a"), *lines_for(second, "a", "b"))

    assert (True, None) == (first.wrote, first.found)
    assert [(False, "target-not-running", T2)] * 2 == [
        (each.wrote, each.found, each.session_id) for each in rest
    ]
    assert "no-process" in (rest[0].detail or "")
    assert "an earlier line of this run did not get in" == rest[1].detail


def test_a_target_that_is_cleared_between_two_visits_is_a_mismatch(
    target: FakeDoor, second: FakeDoor
) -> None:
    """Its process runs on under another id."""
    paper = PaperDoor(act=lambda: second.change(session_id=P))

    _, *rest = toured(paper, *lines_for(target, "a"), *lines_for(second, "a", "b"))

    assert [("door-mismatch", P, second.pid)] * 2 == [
        (each.found, each.session_id, each.pid) for each in rest
    ]
    assert [target.pid] == [pid for pid, *_ in paper.visits]


def test_a_target_that_the_scan_did_not_find_is_looked_for_again(
    target: FakeDoor, second: FakeDoor
) -> None:
    """Registered meanwhile: written."""
    second.change(registered=False)
    paper = PaperDoor(act=lambda: second.change(registered=True))

    receipts = toured(paper, *lines_for(target, "a"), *lines_for(second, "a"))

    assert [(True, target.pid), (True, second.pid)] == [(e.wrote, e.pid) for e in receipts]


def test_a_door_that_says_no_says_it_for_all_its_lines(target: FakeDoor, second: FakeDoor) -> None:
    """The first line has the reason, the later ones that they came behind it."""
    no = Answer(wrote=False, eof=False, found="door-mismatch", detail="why")

    receipts = toured(PaperDoor(no), *lines_for(target, "a", "b"), *lines_for(second, "a"))

    behind = "an earlier line of this run did not get in"
    assert [("door-mismatch", "why"), ("door-mismatch", behind), ("door-mismatch", "why")] == [
        (each.found, each.detail) for each in receipts
    ]
    assert [target.pid, target.pid, second.pid] == [each.pid for each in receipts]


def test_lines_behind_the_one_that_was_not_written_say_so(target: FakeDoor) -> None:
    """A door that took a part: written ones as they are, then the reason, then the order."""
    lines = lines_for(target, "a", "b", "c", "d")
    closed = Answer(wrote=False, eof=False, found="target-not-running", detail="closed")
    half = Answer(wrote=True, eof=False, detail="the door did not read to the end", reply="/r")

    class HalfDoor(PaperDoor):
        def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
            return dict(zip(super().listen(look), (half, half, closed, closed), strict=True))

    receipts = toured(HalfDoor(), *lines)

    assert [
        (True, None, half.detail),
        (True, None, half.detail),
        (False, "target-not-running", "closed"),
        (False, "target-not-running", "an earlier line of this run did not get in"),
    ] == [(each.wrote, each.found, each.detail) for each in receipts]


def test_a_line_that_was_not_written_has_not_moved(target: FakeDoor) -> None:
    """Only for a written line it matters who took over the process."""
    lines = lines_for(target, "a", "b")
    closed = Answer(wrote=False, eof=False, found="target-not-running", detail="closed")

    class ClearedDoor(PaperDoor):
        def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
            target.change(session_id=P)
            return dict(zip(super().listen(look), (WROTE, closed), strict=True))

    receipts = toured(ClearedDoor(), *lines)

    assert [(True, P), (False, None)] == [(each.wrote, each.moved_to) for each in receipts]


def test_a_door_in_trouble_takes_nothing_from_the_others(
    target: FakeDoor, second: FakeDoor
) -> None:
    """No receipt for its own lines, all of them for the others."""
    tour = Tour(HalfBroken(target.pid), Processes(), Clock())
    lines = [Line(each.msg_id, each) for each in (*lines_for(target, "a"), *lines_for(second, "b"))]
    tour.sessions = (T, T2)
    for line in lines:
        tour.expect(line)
        tour.call_on([line])
    tour.listen()

    assert isinstance(tour.trouble, RuntimeError)
    assert [(lines[1].folder, True)] == [(k, receipt.wrote) for k, receipt in tour.known.items()]


class HalfBroken(PaperDoor):
    """A door that breaks at the session of one *pid*."""

    def __init__(self, pid: int):
        super().__init__()
        self.pid = pid

    def speak(self, row: Row, token: str | None, envelopes: Sequence[Envelope]) -> Answer | None:
        """Break, or remember."""
        if row.pid == self.pid:
            raise RuntimeError
        return super().speak(row, token, envelopes)


def test_what_is_known_is_true_at_every_moment(target: FakeDoor) -> None:
    """Untouched until the door, in nobody's hand at it, settled afterwards."""
    line = Line("/folder", envelope_for(target))
    moments = []
    tour: Tour

    class Noting(PaperDoor):
        def speak(self, *given: Any) -> Answer | None:
            moments.append(dict(tour.known))
            return super().speak(*given)

        def listen(self, look: Callable[[], Mapping[str, str]]) -> dict[str, Answer]:
            moments.append(dict(tour.known))
            return super().listen(look)

    tour = Tour(Noting(), Processes(), Clock())
    tour.expect(line)
    before = tour.known["/folder"]
    tour.call_on([line])
    tour.listen()

    assert (False, "wrapper-trouble") == (before.wrote, before.found)
    assert [{}, {}] == moments
    assert tour.known["/folder"].wrote
