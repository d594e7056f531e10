"""The reply socket: what a target tells the process that wrote."""

import errno
import json
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrier.notices import SETTLED, UNREADABLE, Ear, is_held, parse_notice
from carrier.proof import Notice
from tests.fakes.envelopes import MSG, recorded, recorded_rows


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="zdo-", dir="/tmp") as short:
        yield short


def notice(**changes: Any) -> bytes:
    """The recorded held notice about MSG with *changes*."""
    return json.dumps(recorded_rows("receipts.jsonl")[0] | {"orig_msg_id": MSG} | changes).encode()


def told_by(line: bytes) -> tuple[tuple[str, ...], Notice]:
    """What *line* says, and of which lines."""
    found = parse_notice(line)
    assert found is not None
    return found


def call(ear: Ear, *parts: bytes) -> socket.socket:
    """A caller that said *parts* and is still on the line."""
    conn = socket.socket(socket.AF_UNIX)
    conn.connect(ear.path)
    for part in parts:
        conn.sendall(part)
    return conn


def test_every_recorded_notice_is_recognised() -> None:
    """Held, delivered, denied, expired, each for its own line."""
    rows = recorded_rows("receipts.jsonl")

    found = [told_by(json.dumps(row).encode()) for row in rows]

    assert [((each["orig_msg_id"],), each["status"]) for each in rows] == [
        (about, told.status) for about, told in found
    ]
    assert {"held", "delivered", "denied", "expired"} == {told.status for _, told in found}


def test_a_refusal_is_recognised_by_its_detail() -> None:
    """As recorded: `expired`, `refused`, and the reason in words."""
    told = json.loads(recorded("receipt-refused.json"))

    about, found = told_by(json.dumps(told).encode())

    assert (told["orig_msg_id"],) == about
    assert Notice("expired", "refused", None, told["reason"]) == found


@pytest.mark.parametrize("why", ["rate-limited", "duplicate"])
def test_a_drop_is_recognised_alone_or_in_a_sum(why: str) -> None:
    """The line stands in `orig_msg_id` or among `dropped_msg_ids`."""
    drop = {"status": "dropped", "drop_reason": why}
    for named, ids in (
        ({}, (MSG,)),
        ({"orig_msg_id": "x", "dropped_msg_ids": ["y", MSG, "x", 7, ["z"], "y"]}, ("x", "y", MSG)),
        ({"orig_msg_id": None, "dropped_msg_ids": ["y"]}, ("y",)),
    ):
        about, found = told_by(notice(**drop, **named))
        assert ids == about
        assert ("dropped", why) == (found.status, found.drop_reason)


def test_recorded_drops_name_exactly_the_dropped_lines() -> None:
    """The first alone, with an empty list; the others in the name of the last of them."""
    rows = recorded_rows("receipt-dropped.jsonl")

    found = [told_by(json.dumps(row).encode()) for row in rows]

    assert [(rows[0]["orig_msg_id"],), (rows[1]["orig_msg_id"], rows[1]["dropped_msg_ids"][0])] == [
        about for about, _ in found
    ]
    assert {("dropped", "rate-limited")} == {(told.status, told.drop_reason) for _, told in found}


@pytest.mark.parametrize(
    "line",
    [
        notice(type="user"),
        notice(action="other"),
        notice(status=None),
        notice(status=7),
        b"",
        b"[]",
        b"[" * 100_000,
        b"\xff",
    ],
)
def test_anything_else_is_no_notice(line: bytes) -> None:
    """Malformed or of another kind."""
    assert parse_notice(line) is None


def test_a_notice_about_nobody_is_about_nobody() -> None:
    """Ids of another type are no ids."""
    assert told_by(notice(orig_msg_id=None, dropped_msg_ids=MSG))[0] == ()


def test_an_unknown_status_is_kept() -> None:
    """It is not for this layer to call it harmless; a long text is cut."""
    _, found = told_by(notice(status="quarantined", reason="x" * 9000))

    assert (found.status, len(found.reason or "")) == ("quarantined", 500)


def test_the_reply_socket_is_the_owners_and_goes_at_the_end(folder: str) -> None:
    """Named after the process, 0600, and unlinked."""
    ear = Ear(folder, os.getpid(), [MSG])
    found = os.lstat(ear.path)

    assert ear.path == f"{folder}/{os.getpid()}.sock"
    assert stat.S_ISSOCK(found.st_mode)
    assert found.st_mode & 0o777 == 0o600
    ear.close()
    assert os.listdir(folder) == []


def test_a_socket_left_behind_is_not_removed(folder: str) -> None:
    """Another name is taken instead."""
    first = Ear(folder, 7, [MSG])
    second = Ear(folder, 7, [MSG])

    assert first.path != second.path
    assert len(os.path.basename(second.path)) == len("7-abcdef.sock")
    second.close()
    assert os.listdir(folder) == ["7.sock"]
    first.close()


def test_names_that_are_all_taken_are_an_error(folder: str) -> None:
    """It gives up after a few tries, with the system's own reason."""

    class Unlucky(Ear):
        def _bind(self, stem: str) -> str:
            open(f"{stem}.sock", "w").close()
            os.urandom = lambda _: b"abc"  # type: ignore[assignment]
            open(f"{stem}-616263.sock", "w").close()
            return super()._bind(stem)

    before = os.urandom
    try:
        with pytest.raises(OSError, match="in use"):
            Unlucky(folder, 7, [MSG])
    finally:
        os.urandom = before


def test_a_folder_that_is_not_there_is_an_error(folder: str) -> None:
    """Without an ear there is no visit."""
    with pytest.raises(FileNotFoundError):
        Ear(f"{folder}/none", 7, [MSG])


def test_somebody_elses_socket_on_its_path_is_left(folder: str) -> None:
    """And a path that is gone is no error."""
    ear = Ear(folder, 7, [MSG])
    os.unlink(ear.path)
    Path(ear.path).write_bytes(b"")
    ear.close()
    assert os.listdir(folder) == ["7.sock"]

    ear = Ear(folder, 8, [MSG])
    os.unlink(ear.path)
    ear.close()
    assert os.listdir(folder) == ["7.sock"]


@pytest.mark.parametrize(
    "parts",
    [
        (notice() + b"\n",),
        (notice()[:20], notice()[20:] + b"\n"),
        (b"noise\n" + notice() + b"\n",),
        (notice(orig_msg_id="x") + b"\n" + notice() + b"\n",),
    ],
)
def test_a_caller_is_heard_and_let_go(folder: str, parts: tuple[bytes, ...]) -> None:
    """The target waits for our end; it may keep its own open."""
    ear = Ear(folder, 7, [MSG])
    with call(ear, *parts) as conn:
        ear.hear()
        conn.settimeout(5)
        assert conn.recv(1) == b""
    ear.close()
    assert [each.status for each in ear.notices[MSG]] == ["held"]


def test_a_notice_without_a_newline_counts_at_the_end(folder: str) -> None:
    """Half-closed or hung up: what it said counts."""
    ear = Ear(folder, 7, [MSG])
    conn = call(ear, notice())
    ear.hear()
    assert ear.notices == {MSG: []}
    assert len(ear.waiting()) == 2
    conn.close()
    ear.hear()
    ear.close()
    assert [each.status for each in ear.notices[MSG]] == ["held"]


def test_a_caller_that_hangs_up_hard_leaves_a_doubt(folder: str) -> None:
    """What it had said counts; what else it wanted to say nobody knows."""
    ear = Ear(folder, 7, [MSG])
    conn = call(ear, notice())
    ear.hear()

    class Broken:
        def recv(self, _: int) -> bytes:
            raise ConnectionResetError

        def close(self) -> None:
            conn.close()

    fd = ear.waiting()[1]
    heard = ear._callers[fd][1]
    ear._callers[fd][0].close()
    ear._callers[fd] = (Broken(), heard)  # type: ignore[assignment]
    ear.hear()
    ear.close()
    assert [each.status for each in ear.notices[MSG]] == [UNREADABLE, "held"]
    assert ear.notices[MSG][0].reason == "a notice could not be read: ConnectionResetError"


def test_a_caller_that_cannot_be_let_in_leaves_a_doubt(folder: str) -> None:
    """Without a descriptor for it, a "held" may have been missed; told once, not for ever."""

    class Starved:
        def _accept(self) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    ear = Ear(folder, 7, [MSG])
    listener, ear._listener = ear._listener, Starved()  # type: ignore[assignment]
    for _ in range(40):
        ear.hear()
    ear._listener = listener
    ear.close()

    assert {UNREADABLE} == {each.status for each in ear.notices[MSG]}
    assert len(ear.notices[MSG]) <= 16


def test_a_caller_without_end_is_cut(folder: str) -> None:
    """64 KiB are more than any notice; nothing is kept of the rest."""
    ear = Ear(folder, 7, [MSG])
    with call(ear, b"x" * 100_000):
        ear.hear()
        assert len(ear.waiting()) == 1
    ear.close()


def test_callers_who_say_nothing_are_few(folder: str) -> None:
    """A crowd neither grows without bound nor hides a notice for ever."""
    ear = Ear(folder, 7, [MSG])
    crowd = []
    for _ in range(40):
        crowd.append(call(ear))
        ear.hear()
        if len(ear.waiting()) == 17:
            break
    assert len(ear.waiting()) == 17
    ear.close()
    for conn in crowd:
        conn.close()


def test_notices_are_few(folder: str) -> None:
    """A flood of true notices does not fill the receipt."""
    ear = Ear(folder, 7, [MSG])
    with call(ear, (notice(reason="x") + b"\n") * 40):
        ear.hear()
    ear.close()
    assert len(ear.notices[MSG]) == 16


def test_a_path_that_cannot_be_removed_hides_nothing(folder: str) -> None:
    """Somebody was faster: what was heard is still told."""

    def too_late(path: str) -> None:
        os.unlink(path)
        raise FileNotFoundError(path)

    ear = Ear(folder, 7, [MSG], unlink=too_late)
    call(ear, notice()).close()
    ear.hear()
    ear.close()

    assert [each.status for each in ear.notices[MSG]] == ["held"]
    assert os.listdir(folder) == []


OTHER = "e0000000-0000-4000-8000-000000000002"
THIRD = "e0000000-0000-4000-8000-000000000003"


def statuses(ear: Ear) -> dict[str, list[str]]:
    """What was heard of each line."""
    return {msg_id: [each.status for each in told] for msg_id, told in ear.notices.items()}


def test_each_line_has_its_own_notices(folder: str) -> None:
    """One for a line does not touch another; lines that are written later are heard of too."""
    ear = Ear(folder, 7, [MSG, OTHER])
    call(ear, notice() + b"\n").close()
    call(ear, notice(orig_msg_id=THIRD) + b"\n").close()
    ear.hear()
    ear.expect([THIRD, OTHER])
    call(ear, notice(orig_msg_id=THIRD, status="denied") + b"\n").close()
    call(ear, notice(orig_msg_id=OTHER, dropped_msg_ids=[THIRD, "x"], status="dropped")).close()
    ear.hear()
    ear.close()

    assert {MSG: ["held"], OTHER: ["dropped"], THIRD: ["denied", "dropped"]} == statuses(ear)


def test_a_caller_that_could_not_be_read_concerns_every_line(folder: str) -> None:
    """Nobody knows whose notice it was."""
    ear = Ear(folder, 7, [MSG, OTHER])

    class Starved:
        def _accept(self) -> None:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    listener, ear._listener = ear._listener, Starved()  # type: ignore[assignment]
    ear.hear()
    ear._listener = listener
    ear.close()

    assert {MSG: [UNREADABLE], OTHER: [UNREADABLE]} == statuses(ear)


def test_a_notice_for_every_line_is_heard_at_once(folder: str) -> None:
    """Hundreds of callers at the same time, each with a line of its own, in one look."""
    ids = [f"e0000000-0000-4000-8000-{number:012}" for number in range(200)]
    ear = Ear(folder, 7, ids)
    for msg_id in ids:
        call(ear, notice(orig_msg_id=msg_id) + b"\n").close()
    ear.hear()
    ear.close()

    assert {msg_id: ["held"] for msg_id in ids} == statuses(ear)


def test_a_sum_of_many_drops_is_read_whole(folder: str) -> None:
    """Its length grows with the lines that it may name."""
    ids = [f"e0000000-0000-4000-8000-{number:012}" for number in range(3000)]
    ear = Ear(folder, 7, ids)
    said = notice(orig_msg_id=ids[-1], status="dropped", dropped_msg_ids=ids) + b"\n"
    with call(ear) as conn:
        conn.settimeout(0)
        while said:
            said = said[conn.send(said) :]
            ear.hear()
    ear.close()

    assert {msg_id: ["dropped"] for msg_id in ids} == statuses(ear)


def test_a_crowd_of_strangers_is_left_after_a_while(folder: str) -> None:
    """However many call meanwhile, one look comes to its end."""

    class Crowd(Ear):
        def _let_in(self) -> bool:
            for _ in range(16):
                call(self, b"noise\n").close()
            return super()._let_in()

    ear = Crowd(folder, 7, [MSG, OTHER, THIRD])
    ear.hear()
    ear.close()

    assert {MSG: [], OTHER: [], THIRD: []} == statuses(ear)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ((), False),
        (("held",), True),
        (("held", "held"), True),
        (("held", UNREADABLE), True),
        (("held", "quarantined"), True),
        (("quarantined",), False),
        *((("held", last), False) for last in sorted(SETTLED)),
        *(((last, "held"), False) for last in sorted(SETTLED)),
    ],
)
def test_a_line_is_held_until_its_target_has_settled_it(said: tuple[str, ...], held: bool) -> None:
    """In whatever order its notices came; what nobody understands settles nothing."""
    assert held == is_held(Notice(status) for status in said)


def test_an_ear_awaits_answers_while_any_line_is_held(folder: str) -> None:
    """Lines of which nothing is known, or all, are not waited for."""
    ear = Ear(folder, 7, [MSG, OTHER])
    awaited = [ear.awaits_answers()]
    for msg_id, status in ((OTHER, "dropped"), (MSG, "held"), (MSG, "denied")):
        call(ear, notice(orig_msg_id=msg_id, status=status) + b"\n").close()
        ear.hear()
        awaited.append(ear.awaits_answers())
    ear.close()

    assert [False, False, True, False] == awaited


def test_an_ear_is_closed_as_often_as_one_likes(folder: str) -> None:
    """Also when somebody has the path by then."""
    ear = Ear(folder, 7, [MSG])
    call(ear).close()
    ear.hear()
    ear.close()
    Path(ear.path).touch()
    ear.close()

    assert os.listdir(folder) == ["7.sock"]
