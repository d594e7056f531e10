"""One visit: the row found afresh, the door left alone for the right reason, the receipt made."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from carrier.door import Answer, Door, InboxDoor
from carrier.envelope import Envelope
from carrier.proof import Notice, Receipt
from carrier.visit import StayAway, find_row, visit
from registry.clock import Clock
from registry.processes import Processes
from registry.rows import Row
from tests.fakes.door import REASONS, FakeDoor
from tests.fakes.envelopes import P, T, a_receipt, an_envelope

AT = "2026-11-30T14:24:04.751Z"


class PaperDoor(Door):
    """A door that only remembers, and answers as it is told."""

    name = "paper"

    def __init__(self, answer: Answer | None = None, act: Callable[[], object] = bool):
        self.answer = answer or Answer(wrote=True, eof=True, reply="/r")
        self.act = act
        self.visits: list[tuple[int, str | None, str]] = []
        self.seen: list[bool] = []

    def write(
        self, row: Row, token: str | None, envelope: Envelope, surfaced: Callable[[], bool]
    ) -> Answer:
        """Remember the visit."""
        self.visits.append((row.pid, token, envelope.line))
        self.act()
        self.seen.append(surfaced())
        return self.answer


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
    return visit(envelope_for(door, **changes), Processes(), paper, AT)


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

    assert [(target.pid, target.token, "one line of text")] == paper.visits
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

    receipt = visit(envelope_for(target), Broken(), paper, AT)

    assert (receipt.wrote, receipt.found) == (False, "wrapper-trouble")
    assert receipt.detail == told
    assert paper.visits == []


def test_trouble_at_the_door_makes_no_receipt(target: FakeDoor) -> None:
    """The line may be in: only the absence of a receipt is honest."""

    def broken() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        visited(target, PaperDoor(act=broken))


def test_trouble_after_the_write_does_not_hide_it(target: FakeDoor) -> None:
    """Out of descriptors once the line is in, the receipt still says that it was written."""
    written = []

    class Starving(Processes):
        def start_token(self, pid: int) -> str | None:
            if written:
                raise OSError(24, "too many open files")
            return super().start_token(pid)

    receipt = visit(
        envelope_for(target), Starving(), PaperDoor(act=lambda: written.append(True)), AT
    )

    assert (receipt.wrote, receipt.eof, receipt.moved_to) == (True, True, None)
