"""The fake session is like the real one: in its files, its rows, its notices and its rules."""

import hashlib
import json
import os
import socket
import stat
import time
from pathlib import Path
from typing import Any, Self

import pytest

from dispatch.rig.door import FakeDoor
from dispatch.rig.script import LONGEST_FRAME, REASONS
from registry.processes import Processes
from registry.rows import key_of, read_rows
from tests.fakes.envelopes import MSG, P, T, recorded, recorded_rows, shape

READ_S = 5


def frame(**changes: Any) -> bytes:
    """The recorded frame for the fake session with *changes*."""
    plain = recorded_rows("frames-zdo.jsonl")[1] | {"session_id": T, "msg_id": MSG}
    return json.dumps(plain | changes).encode() + b"\n"


def speak(door: FakeDoor, *frames: bytes) -> bytes:
    """Write *frames*, half-close and read to the end."""
    with socket.socket(socket.AF_UNIX) as conn:
        conn.settimeout(READ_S)
        conn.connect(door.socket)
        conn.sendall(b"".join(frames))
        conn.shutdown(socket.SHUT_WR)
        return conn.recv(100)


class Listener:
    """A reply socket of this process."""

    def __init__(self, folder: str):
        os.makedirs(folder, exist_ok=True)
        self.path = f"{folder}/{os.getpid()}.sock"
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(self.path)
        self.socket.listen(64)
        self.socket.settimeout(READ_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        os.unlink(self.path)

    def notice(self) -> dict[str, Any]:
        """The next one."""
        conn, _ = self.socket.accept()
        with conn, conn.makefile() as file:
            found = json.loads(file.readline())
        assert isinstance(found, dict)
        return found


def test_it_registers_like_a_session(tmp_path: Path) -> None:
    """Row, key and socket in the recorded shape, under its own pid; all gone at its end."""
    with FakeDoor(str(tmp_path), name="w-48", cwd="/home/u/w_busy") as door:
        row = json.loads(Path(door.row_file).read_bytes())
        found = read_rows(str(tmp_path), Processes()).rows
        digest = hashlib.sha256(door.socket.encode()).hexdigest()
        key = json.loads((tmp_path / "sessions" / f"{door.pid}.{digest}.key").read_bytes())

        assert [(door.pid, T, "w-48", "idle")] == [
            (each.pid, each.session_id, each.name, each.status) for each in found
        ]
        assert key_of(str(tmp_path), found[0]) == door.token
        assert stat.S_ISSOCK(os.lstat(door.socket).st_mode)
        assert os.path.basename(os.path.dirname(door.socket)) == "cc-socks"
    assert shape(json.loads(recorded("registry-row-interactive-idle.json"))) == shape(row)
    assert shape(json.loads(recorded("registry-key-file.json"))) == shape(key)
    assert os.listdir(tmp_path / "sessions") == []
    assert not os.path.lexists(door.socket)


def test_its_script_is_followed_while_it_runs(tmp_path: Path) -> None:
    """Status, name, id and registration change in the row, as soon as `change` returns."""
    with FakeDoor(str(tmp_path)) as door:
        door.change(status="waiting", waiting_for="permission prompt", name="n", session_id=P)
        row = json.loads(Path(door.row_file).read_bytes())
        door.change(status=None, waiting_for=None, token=False)
        plain = json.loads(Path(door.row_file).read_bytes())
        door.change(registered=False)

        assert os.listdir(tmp_path / "sessions") == []
    assert shape(json.loads(recorded("registry-row-interactive-waiting.json"))) == shape(row)
    assert (row["status"], row["name"], row["sessionId"]) == ("waiting", "n", P)
    assert not plain.keys() & {"status", "waitingFor"}


@pytest.mark.parametrize(
    ("way", "name"),
    [("surface", "transcript-idle-delivery.jsonl"), ("busy", "transcript-busy-delivery.jsonl")],
)
def test_its_transcript_has_the_recorded_shape(tmp_path: Path, way: str, name: str) -> None:
    """Every row, name by name, type by type; with the token also `verifiedLocal`."""
    with FakeDoor(str(tmp_path), accept=way) as door:
        auth = json.dumps({"type": "auth", "token": door.token}).encode() + b"\n"
        assert speak(door, auth, frame()) == b""
        rows = door.rows()

    assert shape(rows) == shape(recorded_rows(name))
    origin = rows[-1].get("attachment", rows[-1])["origin"]
    assert (origin["msg_id"], origin["verifiedPeerPid"]) == (MSG, os.getpid())


@pytest.mark.parametrize("then", ["delivered", "denied", "expired"])
def test_its_hold_has_the_recorded_shape(tmp_path: Path, then: str) -> None:
    """The notices, in shape and word for word in their reasons, and the row of the transcript."""
    told = recorded_rows("receipts.jsonl")
    with FakeDoor(str(tmp_path), accept="hold", hold_then=then, hold_after=0.01) as door:
        with Listener(door.socks) as listener:
            speak(door, frame(**{"from": f"uds:{listener.path}"}))
            held, last = listener.notice(), listener.notice()
        assert all(each["hung_up"] for each in door.notices(2))
        rows = door.rows()

    assert shape(held) == shape(told[0])
    assert (held["status"], last["status"]) == ("held", then)
    assert {each["reason"] for each in told if each["status"] == then} == {last["reason"]}
    assert held["reason"] == told[0]["reason"] == REASONS["held"]
    assert shape(rows[0]) == shape(recorded_rows("transcript-held.jsonl")[0])
    assert (then == "delivered") == any(row["type"] == "user" for row in rows)


def test_its_refusal_has_the_recorded_shape(tmp_path: Path) -> None:
    """`expired` with the detail `refused`, and nothing in the transcript."""
    with FakeDoor(str(tmp_path), accept="refuse") as door, Listener(door.socks) as listener:
        speak(door, frame(**{"from": f"uds:{listener.path}"}))
        notice = listener.notice()
        rows = door.rows()

    told = json.loads(recorded("receipt-refused.json"))
    assert shape(notice) == shape(told)
    assert (notice["status_detail"], notice["reason"]) == ("refused", told["reason"])
    assert rows == []


def ids(*numbers: int) -> list[str]:
    """The msg_ids that `say_all` gives."""
    return [f"e0000000-0000-4000-8000-{number:012}" for number in numbers]


def say_all(door: FakeDoor, sender: str, *texts: str) -> list[str]:
    """Write *texts* on one connection; what the door made of each."""
    before = len(door.calls())
    frames = [
        frame(**{"from": sender, "msg_id": msg_id, "message": {"role": "user", "content": text}})
        for msg_id, text in zip(ids(*range(len(texts))), texts, strict=True)
    ]
    speak(door, *frames)
    fates: list[str] = door.calls(before + 1)[-1]["fates"]
    return fates


def test_its_inbox_takes_thirty_lines_at_once_from_a_sender(tmp_path: Path) -> None:
    """The first drop is told at once, the others in one sum, as recorded."""
    with FakeDoor(str(tmp_path), limits=True, sum_after=0.3) as door:
        with Listener(door.socks) as listener:
            mine = f"uds:{listener.path}"
            fates = say_all(door, mine, *(f"{number}" for number in range(34)))
            first, others = listener.notice(), listener.notice()
        assert ["surface"] * 2 == say_all(door, "another", "a", "b")
        surfaced = [row["origin"]["msg_id"] for row in door.rows() if row["type"] == "user"]

    assert ["surface"] * 30 + ["dropped"] * 4 == fates
    assert ids(*range(30), 0, 1) == surfaced
    assert shape(recorded_rows("receipt-dropped.jsonl")[0]) == shape(first)
    assert recorded_rows("receipt-dropped.jsonl")[1].keys() == others.keys()
    told = [(each["orig_msg_id"], each["dropped_msg_ids"]) for each in (first, others)]
    assert [(ids(30)[0], []), (ids(33)[0], ids(31, 32, 33))] == told
    assert {("dropped", "rate-limited", REASONS["dropped"])} == {
        (each["status"], each["drop_reason"], each["reason"]) for each in (first, others)
    }
    assert recorded_rows("receipt-dropped.jsonl")[0]["reason"] == REASONS["dropped"]


def test_its_inbox_takes_one_more_line_every_two_seconds(tmp_path: Path) -> None:
    """What was dropped is no loan: the allowance grows from empty."""
    with FakeDoor(str(tmp_path), limits=True) as door:
        say_all(door, "me", *(f"{number}" for number in range(40)))
        time.sleep(2.1)
        fates = say_all(door, "me", "a", "b")

    assert ["surface", "dropped"] == fates


def test_its_inbox_drops_the_same_text_of_a_sender(tmp_path: Path) -> None:
    """A duplicate costs no allowance, and each kind of drop has its own first notice."""
    with FakeDoor(str(tmp_path), limits=True, sum_after=0.1) as door:
        with Listener(door.socks) as listener:
            mine = f"uds:{listener.path}"
            texts = ["a", "a", "a", *(f"{number}" for number in range(29)), "b"]
            fates = say_all(door, mine, *texts)
            told = [listener.notice() for _ in range(3)]
        assert ["surface"] == say_all(door, "another", "a")

    assert ["surface", "dropped", "dropped", *["surface"] * 29, "dropped"] == fates
    assert [
        ("duplicate", ids(1)[0], []),
        ("rate-limited", ids(32)[0], []),
        ("duplicate", ids(2)[0], ids(2)),
    ] == [(each["drop_reason"], each["orig_msg_id"], each["dropped_msg_ids"]) for each in told]


def test_its_held_lines_know_no_limits(tmp_path: Path) -> None:
    """40 at once: a notice for each, and none is dropped."""
    strict = FakeDoor(str(tmp_path), limits=True, accept="hold")
    with strict as door, Listener(door.socks) as listener:
        texts = [f"{number}" for number in range(40)]
        fates = say_all(door, f"uds:{listener.path}", *texts)
        told = [listener.notice() for _ in texts]

    assert ["hold"] * 40 == fates
    assert ids(*range(40)) == [each["orig_msg_id"] for each in told]


@pytest.mark.parametrize(
    ("content", "fate"),
    [
        (frame(session_id=P), "session-mismatch"),
        (b"not json\n", "malformed"),
        (frame(type="assistant"), "malformed"),
        (frame(message={"role": "user", "content": ""}), "malformed"),
        (frame(message={"role": "user", "content": ["x"]}), "malformed"),
        (b"[]\n", "malformed"),
    ],
)
def test_it_drops_silently_what_the_real_one_drops(
    tmp_path: Path, content: bytes, fate: str
) -> None:
    """EOF looks the same as ever, and the transcript stays empty."""
    with FakeDoor(str(tmp_path)) as door:
        assert speak(door, content) == b""
        assert [[fate]] == [call["fates"] for call in door.calls(1)]
        assert door.rows() == []


@pytest.mark.parametrize(
    "content",
    [
        frame(msgV=99),
        frame(message={"role": "assistant", "content": "x"}),
        frame()[:-1],
        frame(session_id=None),
        frame(message={"role": "user", "content": "x" * (LONGEST_FRAME - 1000)}),
    ],
)
def test_it_accepts_what_the_real_one_accepts(tmp_path: Path, content: bytes) -> None:
    """Another version, another role, no newline, no pin, nearly the longest line."""
    with FakeDoor(str(tmp_path)) as door:
        speak(door, content)
        assert [["surface"]] == [call["fates"] for call in door.calls(1)]


def test_it_hangs_up_on_a_line_that_is_too_long(tmp_path: Path) -> None:
    """No receipt, no EOF in order."""
    with FakeDoor(str(tmp_path)) as door, socket.socket(socket.AF_UNIX) as conn:
        conn.connect(door.socket)
        with pytest.raises(OSError, match=r"reset|pipe"):
            conn.sendall(b"x" * (2 * LONGEST_FRAME))
        assert [["too-long"]] == [call["fates"] for call in door.calls(1)]


@pytest.mark.parametrize("address", ["zdo", "uds:{folder}/x/{pid}.sock", "uds:{socks}/none.sock"])
def test_it_notifies_only_a_reply_socket_in_its_place(tmp_path: Path, address: str) -> None:
    """A free word, another folder, nobody there: no notice, the door goes on."""
    with FakeDoor(str(tmp_path), accept="refuse") as door:
        mine = address.format(folder=door.base, socks=door.socks, pid=os.getpid())
        speak(door, frame(**{"from": mine}))
        door.change(accept="surface")
        speak(door, frame())
        assert len(door.calls(2)) == 2
        assert door.notices() == []


def test_it_notifies_only_the_process_that_wrote(tmp_path: Path) -> None:
    """A listener of another process gets nothing."""
    with FakeDoor(str(tmp_path), accept="refuse") as door:
        with FakeDoor(str(tmp_path), socks=door.socks) as other:
            speak(door, frame(**{"from": f"uds:{other.socket}"}))
            door.calls(1)
        assert door.notices() == []


def test_it_records_who_wrote(tmp_path: Path) -> None:
    """Peer pid, its ancestry up to the first process, the auth line, the frames."""
    with FakeDoor(str(tmp_path)) as door:
        speak(door, b'{"type":"auth","token":"wrong"}\n', frame())
        (call,) = door.calls(1)

    assert (call["peer_pid"], call["auth"]) == (os.getpid(), "wrong")
    assert call["ancestry"][0]["pid"] == os.getpid()
    assert call["ancestry"][1]["pid"] == os.getppid()
    assert door.session_id == call["frames"][1]["session_id"]
    assert call["at"] <= call["frame_at"]


def test_it_clears_its_session_at_a_connection(tmp_path: Path) -> None:
    """As `/clear` in that very moment: the pin no longer fits."""
    with FakeDoor(str(tmp_path), clear_to=P) as door:
        speak(door, frame())
        row = json.loads(Path(door.row_file).read_bytes())
        assert [["session-mismatch"]] == [call["fates"] for call in door.calls(1)]
    assert row["sessionId"] == P


@pytest.mark.parametrize("when", ["before-accept", "at-accept", "during", "after-read"])
def test_it_dies_when_it_is_told(tmp_path: Path, when: str) -> None:
    """Row and socket stay behind, as after SIGKILL."""
    with FakeDoor(str(tmp_path), die=when) as door:
        try:
            speak(door, frame(message={"role": "user", "content": "x" * 9000}))
        except OSError:
            assert when != "after-read"
        assert door.process.wait(5) == 9
        assert os.path.exists(door.row_file)
        assert os.path.exists(door.socket)


def test_it_holds_back_the_end(tmp_path: Path) -> None:
    """No EOF for a script that says so; a silent caller is still heard."""
    with FakeDoor(str(tmp_path), eof_after=None) as door, socket.socket(socket.AF_UNIX) as conn:
        conn.settimeout(0.05)
        conn.connect(door.socket)
        conn.sendall(frame())
        conn.shutdown(socket.SHUT_WR)
        door.calls(1)
        with pytest.raises(TimeoutError):
            conn.recv(1)


def test_a_script_with_an_unknown_word_is_refused(tmp_path: Path) -> None:
    """A misspelt behaviour must not pass as the plain one."""
    door = FakeDoor(str(tmp_path), acept="hold")
    with pytest.raises(AssertionError, match="did not start"):
        door.__enter__()
