"""What a door does with a line: the fake one and the real one pass the same tests."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from carrier.calls import auth_line, user_line
from dispatch.rig.door import FakeDoor
from tests.contract.places import Place, place_of
from tests.contract.sessions import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


FAKE = pytest.param("fake")
REAL = pytest.param("real", marks=pytest.mark.contract)


@pytest.fixture(params=[FAKE, REAL])
def door(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    """A door by its setting: accept, hold or refuse."""
    if request.param == "real":
        yield request.getfixturevalue("real")
        return
    with ExitStack() as stack:

        def give(rule: str) -> Place:
            way = "surface" if rule == "accept" else rule
            fake = stack.enter_context(FakeDoor(str(tmp_path), accept=way, limits=True))
            return place_of(tmp_path, fake.pid)

        yield give


def test_an_accepted_line_surfaces_under_its_msg_id(door: Callable[[str], Place]) -> None:
    """Nothing says yes: EOF, no notice, and then the transcript names writer and line."""
    place = door("accept")
    letter = place.letter()

    answer = place.write(letter)

    assert (True, True, ()) == (answer.wrote, answer.eof, answer.notices)
    origin = place.surfaced(letter.msg_id)
    assert ("peer", os.getpid(), f"uds:{answer.reply}", True) == (
        origin["kind"],
        origin["verifiedPeerPid"],
        origin["from"],
        origin["verifiedLocal"],
    )
    assert letter.line in [row.get("content") for row in place.rows()]


def test_a_wrong_token_is_taken_all_the_same(door: Callable[[str], Place]) -> None:
    """The token opens nothing; it only earns `verifiedLocal`."""
    place = door("accept")
    letter = place.letter()

    place.write(letter, token="0" * 32)

    assert "verifiedLocal" not in place.surfaced(letter.msg_id)


def test_a_line_for_another_session_is_dropped_without_a_word(
    door: Callable[[str], Place],
) -> None:
    """EOF and silence look as ever; only the pin kept the line out."""
    place = door("accept")
    stray, right = place.letter(session_id=str(uuid.uuid4())), place.letter()

    answer = place.write(stray)

    assert (True, True, ()) == (answer.wrote, answer.eof, answer.notices)
    place.write(right)
    place.surfaced(right.msg_id)
    assert stray.msg_id not in [peer.get("msg_id") for peer in place.peers()]


@pytest.mark.parametrize("content", ["", ["blocks"], None])
def test_a_line_that_is_no_text_is_dropped_without_a_word(
    door: Callable[[str], Place], content: object
) -> None:
    """An empty, absent or structured content never reaches the model."""
    place = door("accept")
    letter = place.letter()
    frame = json.loads(user_line(letter, "/nowhere")) | {"message": {"content": content}}

    assert place.say(json.dumps(frame).encode() + b"\n") == b""

    right = place.letter()
    place.write(right)
    place.surfaced(right.msg_id)
    assert letter.msg_id not in [peer.get("msg_id") for peer in place.peers()]


@pytest.mark.parametrize("noise", [b"{half\n", b'{"type":"unheard-of"}\n', b"[]\n", b"\n"])
def test_noise_is_dropped_and_the_line_after_it_is_taken(
    door: Callable[[str], Place], noise: bytes
) -> None:
    """One bad frame spoils neither its connection nor its session."""
    place = door("accept")
    letter = place.letter()

    assert place.say(noise + auth_line(place.token) + user_line(letter, "/nowhere")) == b""

    assert place.surfaced(letter.msg_id)["msg_id"] == letter.msg_id


def test_one_msg_id_twice_surfaces_twice(door: Callable[[str], Place]) -> None:
    """The door remembers no msg_id; not writing twice is zdo's own duty."""
    place = door("accept")
    first = place.letter()
    second = place.letter(msg_id=first.msg_id)

    place.write(first)
    place.say(user_line(second, "/nowhere"))

    eventually(
        "both surface",
        lambda: [peer.get("msg_id") for peer in place.peers()].count(first.msg_id) == 2,
    )


def test_the_same_text_again_is_dropped_and_told(door: Callable[[str], Place]) -> None:
    """Within 30 s and from one address; another msg_id does not help."""
    place = door("accept")
    first = place.letter()
    place.write(first)
    place.surfaced(first.msg_id)

    answer = place.write(place.letter(line=first.line))

    told = [(notice.status, notice.drop_reason) for notice in answer.notices]
    assert (answer.wrote, answer.eof, told) == (True, True, [("dropped", "duplicate")])


def test_more_lines_than_an_inbox_takes_are_told_of_one_by_one(
    door: Callable[[str], Place],
) -> None:
    """On one connection the first 30 go in, in their order; the answers name exactly the rest."""
    place = door("accept")
    letters = [place.letter() for _ in range(34)]
    started = time.monotonic()

    answers = place.write_all(letters, address=os.getpid() + (1 << 22))

    took = time.monotonic() - started
    told = {i: [(n.status, n.drop_reason) for n in a.notices] for i, a in answers.items()}
    ids = [letter.msg_id for letter in letters]
    assert {True} == {answer.eof for answer in answers.values()}
    assert [[]] * 30 + [[("dropped", "rate-limited")]] * 4 == [told[each] for each in ids]
    # The second of the drops is told of only in the sum, which is worth its wait.
    assert 4 < took < 8
    place.surfaced(ids[29])
    assert ids[:30] == [p["msg_id"] for p in place.peers() if p["msg_id"] in ids]


def test_a_held_line_is_told_to_the_writer_alone(door: Callable[[str], Place]) -> None:
    """The notice comes to the socket that `from` names; no enqueue row, no input."""
    place = door("hold")
    letter = place.letter()

    answer = place.write(letter)

    assert (True, ["held"]) == (answer.eof, [notice.status for notice in answer.notices])
    row = eventually(
        "the user is told",
        lambda: next((row for row in place.rows() if letter.line in str(row)), None),
    )
    assert ("system", "informational") == (row["type"], row["subtype"])
    assert f"[verified pid {os.getpid()}]" in row["content"]
    assert place.peers() == []


def test_each_of_many_held_lines_is_told_of(door: Callable[[str], Place]) -> None:
    """One notice for each, all of them to the one socket that `from` names."""
    place = door("hold")
    letters = [place.letter() for _ in range(5)]

    answers = place.write_all(letters, address=os.getpid() + (1 << 23))

    assert [["held"]] * 5 == [[n.status for n in answer.notices] for answer in answers.values()]
    assert 1 == len({answer.reply for answer in answers.values()})
    assert place.peers() == []


def test_a_refused_line_is_told_at_once(door: Callable[[str], Place]) -> None:
    """A refusal is an expiry with a detail, and leaves no trace in the transcript."""
    place = door("refuse")
    letter = place.letter()

    answer = place.write(letter)

    told = [(notice.status, notice.status_detail) for notice in answer.notices]
    assert (True, [("expired", "refused")]) == (answer.eof, told)
    assert [row for row in place.rows() if letter.line in str(row)] == []


def test_eof_comes_after_the_half_close_and_not_before(door: Callable[[str], Place]) -> None:
    """A whole line is not answered; the end of our own writing is."""
    place = door("accept")
    letter = place.letter()
    with socket.socket(socket.AF_UNIX) as conn:
        conn.settimeout(0.4)
        conn.connect(place.row.socket)
        conn.sendall(user_line(letter, "/nowhere"))
        with pytest.raises(TimeoutError):
            conn.recv(64)

        conn.settimeout(5)
        conn.shutdown(socket.SHUT_WR)
        assert conn.recv(64) == b""


def test_a_visit_without_a_byte_leaves_no_trace(door: Callable[[str], Place]) -> None:
    """So a row's door may be probed: no status, no row, no input changes."""
    place = door("accept")
    first = place.letter()
    place.write(first)
    place.surfaced(first.msg_id)
    before = place.peers()

    with socket.socket(socket.AF_UNIX) as conn:
        conn.connect(place.row.socket)

    second = place.letter()
    place.write(second)
    place.surfaced(second.msg_id)
    assert [*(peer["msg_id"] for peer in before), second.msg_id] == [
        peer["msg_id"] for peer in place.peers()
    ]
