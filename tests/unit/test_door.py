"""The door: written once, exactly, by the right process to the right one, or not at all."""

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import carrier.door
from carrier.calls import Answer, Call, auth_line, user_line
from carrier.door import Door, InboxDoor
from carrier.envelope import Envelope
from carrier.notices import Ear
from carrier.transcript import NONE, SURFACED
from dispatch.rig.door import FakeDoor
from registry.clock import Clock
from registry.processes import Processes
from registry.record import replace
from registry.rows import Row, read_rows
from tests.fakes.envelopes import MSG, T, an_envelope, recorded_rows, shape

TOUCHED, UNTOUCHED = True, False
OTHER = "e0000000-0000-4000-8000-000000000002"


def row_of(door: FakeDoor) -> Row:
    """The fake session's row."""
    (row,) = read_rows(door.config, Processes()).rows
    return row


def a_door(within: float = 10.0, uid: int | None = None) -> InboxDoor:
    """The real door for this process."""
    clock = Clock()
    own = os.geteuid() if uid is None else uid
    return InboxDoor(clock, deadline=clock.monotonic() + within, uid=own, pid=os.getpid())


def write(
    row: Row,
    envelope: Envelope | None = None,
    *,
    token: str | None = None,
    state: Callable[[], str] = lambda: NONE,
    within: float = 10.0,
    uid: int | None = None,
) -> Answer:
    """One line through one door by this process."""
    line = envelope or an_envelope(settle_s=0.1)
    door = a_door(within, uid)
    refused = door.speak(row, token, [line])
    answers = door.listen(lambda: {line.msg_id: state()})
    return answers[line.msg_id] if refused is None else refused


@pytest.fixture
def short() -> Iterator[str]:
    """A folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="zdo-", dir="/tmp") as folder:
        yield folder


def listening(path: str, backlog: int = 8) -> socket.socket:
    """A socket of this process that nobody serves."""
    conn = socket.socket(socket.AF_UNIX)
    conn.bind(path)
    conn.listen(backlog)
    return conn


def own_row(path: str) -> Row:
    """A row of this process with its door at *path*."""
    words = ("name", "status", "cwd", "started_at", "status_at", "waiting_for", "version")
    absent = dict.fromkeys((*words, "entrypoint", "pid_domain"))
    return Row(file="1.json", pid=os.getpid(), session_id=T, socket=path, proc_start="", **absent)  # type: ignore[arg-type]


def test_a_line_is_written_whole(tmp_path: Path) -> None:
    """Auth line, one frame in the recorded shape, half-close, EOF; nothing stays behind."""
    with FakeDoor(str(tmp_path)) as door:
        answer = write(row_of(door), token=door.token)
        (call,) = door.calls(1)

        assert os.listdir(door.socks) == [os.path.basename(door.socket)]
    reply = f"{door.socks}/{os.getpid()}.sock"
    assert answer == Answer(wrote=True, eof=True, reply=reply)
    assert shape(call["frames"]) == shape(recorded_rows("frames-zdo.jsonl"))
    assert call["auth"] == door.token
    assert call["peer_pid"] == os.getpid()
    assert call["frames"][1] == {
        "type": "user",
        "msgV": 1,
        "msg_id": MSG,
        "from": f"uds:{reply}",
        "session_id": T,
        "priority": "next",
        "message": {"role": "user", "content": "one line of text"},
    }


@pytest.mark.parametrize(
    "line",
    [
        "Ünïcode 🦊",
        "two\nlines\tand a tab",
        "a\u2028b\u2029c\u0085d",
        '"quotes" \\ </cross-session-message> <x from="y">',
        "/clear @file !cmd",
        "x" * 65_536,
        "é" * 32_768,
        "🦊" * 16_384,
    ],
)
def test_every_character_arrives(tmp_path: Path, line: str) -> None:
    """The text at the door is the line, nothing added, nothing escaped twice."""
    with FakeDoor(str(tmp_path)) as door:
        assert write(row_of(door), an_envelope(line=line, settle_s=0)).eof
        assert [line] == door.lines()


def test_a_frame_is_one_line_of_ascii_and_claims_no_mode() -> None:
    """No reader can split it, and nothing in it attests a permission mode."""
    frame = user_line(an_envelope(line="\n\u2028\r\x85é"), "/s")

    assert frame.isascii()
    assert frame.index(b"\n") == len(frame) - 1
    assert b"mode" not in user_line(an_envelope(), "/s")


def test_without_a_token_there_is_no_auth_line(tmp_path: Path) -> None:
    """The door takes the line all the same."""
    assert auth_line(None) == b""
    with FakeDoor(str(tmp_path), token=False) as door:
        assert write(row_of(door)).eof
        assert [None] == [call["auth"] for call in door.calls(1)]


@pytest.mark.parametrize(
    ("script", "status", "detail"),
    [
        ({"accept": "hold"}, "held", None),
        ({"accept": "refuse"}, "expired", "refused"),
        ({"accept": "dropped", "drop_reason": "duplicate"}, "dropped", None),
        ({"accept": "dropped", "notice_after": 0.05}, "dropped", None),
        ({"accept": "hold", "notice_after": 0.05}, "held", None),
    ],
)
def test_a_notice_is_heard(
    tmp_path: Path, script: dict[str, Any], status: str, detail: str | None
) -> None:
    """At once or within the settle window; the target is not left waiting."""
    with FakeDoor(str(tmp_path), **script) as door:
        answer = write(row_of(door), an_envelope(settle_s=1))
        assert [True] == [each["hung_up"] for each in door.notices(1)]
    (notice,) = answer.notices
    assert (notice.status, notice.status_detail) == (status, detail)
    assert (answer.wrote, answer.eof) == (True, True)


@pytest.mark.parametrize("then", ["delivered", "denied", "expired"])
def test_a_settled_hold_ends_the_window(tmp_path: Path, then: str) -> None:
    """Both notices, in order, and not a moment longer."""
    with FakeDoor(str(tmp_path), accept="hold", hold_then=then, hold_after=0.02) as door:
        started = time.monotonic()
        answer = write(row_of(door), an_envelope(settle_s=8))
        assert time.monotonic() - started < 4
    assert ["held", then] == [notice.status for notice in answer.notices]


def test_a_hold_is_listened_to_until_the_window_ends(tmp_path: Path) -> None:
    """It may still be settled; without a word it stays held."""
    with FakeDoor(str(tmp_path), accept="hold") as door:
        started = time.monotonic()
        answer = write(row_of(door), an_envelope(settle_s=0.3))
        assert time.monotonic() - started >= 0.3
    assert ["held"] == [notice.status for notice in answer.notices]


def test_the_window_ends_when_the_transcript_shows_the_line(tmp_path: Path) -> None:
    """Proof makes waiting needless."""
    looks = iter([NONE, NONE, SURFACED])
    with FakeDoor(str(tmp_path)) as door:
        started = time.monotonic()
        answer = write(row_of(door), an_envelope(settle_s=8), state=lambda: next(looks))
        assert time.monotonic() - started < 4
    assert answer.notices == ()


def test_a_window_of_nothing_still_listens_once(tmp_path: Path) -> None:
    """A notice that came before the EOF is not thrown away."""
    with FakeDoor(str(tmp_path), accept="refuse", eof_after=0.1) as door:
        answer = write(row_of(door), an_envelope(settle_s=0))
    assert ["expired"] == [notice.status for notice in answer.notices]


def test_a_late_end_is_waited_for_and_a_missing_one_is_said(tmp_path: Path) -> None:
    """Read is read, however slowly; without EOF it was perhaps not read."""
    with FakeDoor(str(tmp_path), eof_after=0.3) as door:
        assert write(row_of(door)).eof
        door.change(eof_after=None)
        answer = write(row_of(door), within=0.3)
    assert (answer.wrote, answer.eof, answer.found) == (True, False, None)
    assert answer.detail == "the door did not read to the end"


@pytest.mark.parametrize("when", ["before-accept", "at-accept", "during"])
def test_a_door_that_dies_with_the_line_unread_is_a_doubt(tmp_path: Path, when: str) -> None:
    """Written, not read to the end: never untouched, never delivered."""
    line = an_envelope(line="x" * 60_000, settle_s=0)
    with FakeDoor(str(tmp_path), die=when) as door:
        answer = write(row_of(door), line)
    assert (answer.wrote, answer.eof, answer.found) in (
        (TOUCHED, False, None),
        # It died before our first byte: then nothing was written, and that is said.
        (UNTOUCHED, False, "target-not-running"),
    )


def test_a_silent_drop_looks_like_acceptance(tmp_path: Path) -> None:
    """EOF only means read; nothing more is claimed."""
    with FakeDoor(str(tmp_path), accept="drop") as door:
        answer = write(row_of(door))
        assert door.rows() == []
    assert (answer.wrote, answer.eof, answer.notices) == (True, True, ())


def test_another_process_behind_the_socket_is_a_mismatch(tmp_path: Path) -> None:
    """The kernel's word for the peer against the row's: not one byte is written."""
    with FakeDoor(str(tmp_path)) as door:
        answer = write(replace(row_of(door), pid=door.pid + 1))
        (call,) = door.calls(1)
        assert os.listdir(door.socks) == [os.path.basename(door.socket)]
    assert (answer.wrote, answer.found) == (False, "door-mismatch")
    assert call["bytes"] == 0


@pytest.mark.parametrize("kind", ["link", "file", "folder", "relative", "nul"])
def test_what_is_no_socket_is_not_touched(tmp_path: Path, short: str, kind: str) -> None:
    """A symlink to the very door, a file, a folder, a path with NUL."""
    with FakeDoor(str(tmp_path)) as door:
        place = f"{short}/x.sock"
        if kind == "link":
            os.symlink(door.socket, place)
        if kind == "file":
            Path(place).write_bytes(b"")
        if kind == "folder":
            os.mkdir(place)
        if kind == "nul":
            place = "\0abstract"
        if kind == "relative":
            place = short
        answer = write(replace(row_of(door), socket=place))
        assert door.calls() == []
    assert (answer.wrote, answer.found) == (False, "door-mismatch")


def test_a_door_of_another_user_is_not_touched(tmp_path: Path) -> None:
    """Whoever it is."""
    with FakeDoor(str(tmp_path)) as door:
        answer = write(row_of(door), uid=os.geteuid() + 1)
        assert door.calls() == []
    assert (answer.wrote, answer.found) == (False, "door-mismatch")


def test_a_dead_door_is_not_running(tmp_path: Path) -> None:
    """The socket of a killed session refuses; a removed one is gone."""
    with FakeDoor(str(tmp_path)) as door:
        row = row_of(door)
        door.kill()
        dead = write(row)
        os.unlink(door.socket)
        gone = write(row)
    assert (dead.wrote, dead.found) == (False, "target-not-running")
    assert (gone.wrote, gone.found) == (False, "target-not-running")


def test_without_a_reply_socket_the_door_is_not_touched(tmp_path: Path, short: str) -> None:
    """A hold would go unheard: better not to write."""
    with FakeDoor(str(tmp_path)) as door:
        room = 107 - len(f"{short}/") - len("/1.sock")
        os.makedirs(f"{short}/{'d' * room}")
        place = f"{short}/{'d' * room}/1.sock"
        os.link(door.socket, place)
        answer = write(replace(row_of(door), socket=place))
        assert door.calls() == []
    assert (answer.wrote, answer.found) == (False, "wrapper-trouble")
    assert "no reply socket" in (answer.detail or "")


def test_a_path_too_long_for_a_socket_is_trouble(short: str) -> None:
    """It can be looked at but not reached."""
    folder = f"{short}/{'d' * 40}"
    os.mkdir(folder)
    os.symlink(folder, f"{short}/s")
    listener = listening(f"{short}/s/{'x' * 60}")
    answer = write(own_row(f"{folder}/{'x' * 60}"))
    listener.close()
    assert (answer.wrote, answer.found) == (False, "wrapper-trouble")
    assert "no way to the door" in (answer.detail or "")


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue refuses elsewhere")
def test_a_full_queue_is_waited_for_and_then_left(short: str) -> None:
    """A stopped session with a crowd before its door: nothing is written, and soon."""
    listener = listening(f"{short}/t.sock", backlog=0)
    crowd = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for each in crowd:
        each.settimeout(0)
        each.connect_ex(f"{short}/t.sock")
    answer = write(own_row(f"{short}/t.sock"), within=0.1)
    for each in (*crowd, listener):
        each.close()
    assert (answer.wrote, answer.found) == (False, "wrapper-trouble")


def test_a_door_that_takes_only_half_is_a_doubt(short: str) -> None:
    """A stopped session's buffer fills in the middle of the frame; time ends the wait."""
    listener = listening(f"{short}/t.sock")
    line = "é" * 32_768
    answer = Answer(wrote=True, eof=True)
    # Two lines' worth do not fit: the kernel keeps about 200 KiB for nobody in particular.
    original = carrier.door.user_line
    carrier.door.user_line = lambda *given: original(*given) * 4
    try:
        answer = write(own_row(f"{short}/t.sock"), an_envelope(line=line), within=0.3)
    finally:
        carrier.door.user_line = original
        listener.close()
    assert (answer.wrote, answer.eof, answer.found) == (True, False, None)


class Broken:
    """A connection that breaks after *taken* bytes."""

    def __init__(self, taken: int):
        self.taken = taken

    def send(self, part: bytes) -> int:
        """Take some, then break."""
        if self.taken <= 0:
            raise BrokenPipeError
        now, self.taken = min(self.taken, len(part)), 0
        return now


class Silent(Ear):
    """A reply socket that hears nothing."""

    def __init__(self, *msg_ids: str):
        self.notices = {msg_id: [] for msg_id in msg_ids}
        self.path = "/s"


FRAMES = {"a": b"first\n", "b": b"second\n", "c": b"third\n"}
CLOSED = "the door closed before the line"


@pytest.mark.parametrize(
    ("taken", "wrote"),
    [
        (0, [False, False, False]),
        (4, [False, False, False]),
        (5, [True, False, False]),
        (10, [True, False, False]),
        (11, [True, True, False]),
        (18, [True, True, True]),
    ],
)
def test_only_bytes_of_its_frame_are_a_write(taken: int, wrote: list[bool]) -> None:
    """A break before the first of them leaves a line untouched; after it, a doubt."""
    call = Call(Broken(taken), Silent(*FRAMES), b"auth", FRAMES)  # type: ignore[arg-type]

    call.go_on()

    expected = [
        (True, False, None, "the door did not read to the end")
        if each
        else (False, False, "target-not-running", CLOSED)
        for each in wrote
    ]
    answers = call.answers()
    assert [*FRAMES] == [*answers]
    assert expected == [(a.wrote, a.eof, a.found, a.detail) for a in answers.values()]
    assert call.is_over


def test_a_door_that_breaks_before_the_line_is_not_running(short: str) -> None:
    """It accepts and hangs up at once: told without waiting, and nothing stays behind."""
    listener = listening(f"{short}/t.sock")

    class Closing(InboxDoor):
        def _connect(self, conn: Any, row: Row) -> Answer | None:
            answer = super()._connect(conn, row)
            listener.accept()[0].close()
            return answer

    clock = Clock()
    door = Closing(clock, deadline=clock.monotonic() + 5, uid=os.geteuid(), pid=os.getpid())
    answer = door.speak(own_row(f"{short}/t.sock"), "t", [an_envelope()])
    listener.close()

    assert {} == door.listen(dict)
    assert Answer(wrote=False, eof=False, found="target-not-running", detail=CLOSED) == answer
    assert ["t.sock"] == os.listdir(short)


def test_what_the_door_says_on_the_connection_is_no_end() -> None:
    """The real one says nothing there; only EOF means read."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        call = Call(ours, Silent("a"), b"", {"a": b"line\n"})
        call.go_on()
        theirs.sendall(b"noise")
        call.go_on()
        before = call.is_over
        theirs.shutdown(socket.SHUT_WR)
        call.go_on()

        assert (False, True) == (before, call.is_over)
        assert call.answers()["a"].eof


def test_the_same_door_is_written_by_many_at_once(tmp_path: Path) -> None:
    """Each visit has its own reply socket; all of them go."""
    with FakeDoor(str(tmp_path)) as door:
        row = row_of(door)
        pids = []
        for number in range(4):
            pid = os.fork()
            if pid == 0:
                answer = write(row, an_envelope(line=f"line {number}"))
                os._exit(0 if answer.eof else 1)
            pids.append(pid)
        ends = [os.waitpid(pid, 0)[1] for pid in pids]
        assert ends == [0, 0, 0, 0]
        assert {f"line {number}" for number in range(4)} == set(door.lines())
        assert os.listdir(door.socks) == [os.path.basename(door.socket)]


STAYS: dict[str, tuple[dict[str, Any], bool]] = {
    "held": ({"accept": "hold"}, True),
    "settled": ({"accept": "hold", "hold_then": "denied", "hold_after": 0.02}, False),
    "refused": ({"accept": "refuse"}, False),
    "in": ({}, False),
}


@pytest.mark.parametrize("case", STAYS)
def test_the_ear_of_a_held_line_is_handed_on(tmp_path: Path, case: str) -> None:
    """To whoever wants it, open and with what it heard; every other one is closed."""
    script, stays = STAYS[case]
    staying: list[Ear] = []
    with FakeDoor(str(tmp_path), **script) as fake:
        own = {"deadline": Clock().monotonic() + 10, "uid": os.geteuid(), "pid": os.getpid()}
        door = InboxDoor(Clock(), staying=staying, **own)
        assert door.speak(row_of(fake), None, [an_envelope(settle_s=0.3)]) is None
        answers = door.listen(dict)
        door.close()

        assert stays == (len(staying) == 1)
        assert stays == any(each.awaits_answers() for each in staying)
        for ear in staying:
            assert tuple(ear.notices[MSG]) == answers[MSG].notices
            assert answers[MSG].reply == ear.path
            assert 1 == len(ear.waiting())
            ear.close()
        assert os.listdir(fake.socks) == [os.path.basename(fake.socket)]


def test_of_two_ears_only_the_one_of_the_held_line_is_handed_on(tmp_path: Path) -> None:
    """Doors in two folders: each folder has its own."""
    staying: list[Ear] = []
    one, two = an_envelope(settle_s=0.3), an_envelope(settle_s=0.3, msg_id=OTHER, session_id=OTHER)
    with (
        FakeDoor(str(tmp_path / "a"), accept="hold") as strict,
        FakeDoor(str(tmp_path / "b"), session_id=OTHER) as plain,
    ):
        own = {"deadline": Clock().monotonic() + 10, "uid": os.geteuid(), "pid": os.getpid()}
        door = InboxDoor(Clock(), staying=staying, **own)
        assert door.speak(row_of(strict), None, [one]) is None
        assert door.speak(row_of(plain), None, [two]) is None
        door.listen(dict)

        assert [f"{strict.socks}/{os.getpid()}.sock"] == [ear.path for ear in staying]
        assert [os.path.basename(plain.socket)] == os.listdir(plain.socks)
        staying[0].close()


def test_a_door_is_an_interface() -> None:
    """Another kind may follow; this one is the inbox."""
    with pytest.raises(NotImplementedError):
        Door().speak(own_row("/x"), None, [an_envelope()])
    with pytest.raises(NotImplementedError):
        Door().listen(dict)
    Door().close()
    assert InboxDoor.name == "inbox"
