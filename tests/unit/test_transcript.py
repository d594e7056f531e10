"""The target's transcript: what proves a line, what does not, and how little is read."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from carrier.transcript import (
    ENQUEUED,
    LONGEST_LINE,
    NONE,
    SURFACED,
    Follower,
    find_transcript,
    judge_row,
    slug,
)
from tests.fakes.envelopes import P, T, recorded, recorded_rows

IDLE, BUSY, OWN = (
    f"transcript-{name}.jsonl" for name in ("idle-delivery", "busy-delivery", "own-child")
)


def facts_of(name: str) -> tuple[str, str, str]:
    """msg_id, text and session of the recorded delivery *name*."""
    first, last = recorded_rows(name)[0], recorded_rows(name)[-1]
    origin = last.get("attachment", last)["origin"]
    return origin["msg_id"], first["content"], first["sessionId"]


def follow(path: Path, name: str = IDLE, offset: int = 0) -> Follower:
    """A follower of the recorded delivery *name* in *path*."""
    return follow_as(str(path), offset, *facts_of(name))


def follow_as(
    path: str | None, offset: int, msg_id: str, text: str, session_id: str, **more: Any
) -> Follower:
    """A follower of one line."""
    return Follower(path, offset, {msg_id: text}, session_id, **more)


def look(follower: Follower) -> str:
    """The state of the one line after a look."""
    follower.look()
    (state,) = follower.states.values()
    return state


def idle_row(**changes: Any) -> bytes:
    """The recorded row of model input with *changes*."""
    return json.dumps(recorded_rows(IDLE)[-1] | changes).encode()


@pytest.mark.parametrize("name", [IDLE, BUSY, OWN])
def test_recorded_deliveries_are_enqueued_then_surfaced(tmp_path: Path, name: str) -> None:
    """Row by row, as they were recorded: the state rises and never falls."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"")
    follower = follow(path, name)
    seen = [look(follower)]
    for line in recorded(name).splitlines(keepends=True):
        with path.open("ab") as file:
            file.write(line)
        seen.append(look(follower))

    assert [NONE, ENQUEUED] == seen[:2]
    assert seen[-1] == SURFACED
    assert sorted(seen, key=[NONE, ENQUEUED, SURFACED].index) == seen


@pytest.mark.parametrize("name", ["transcript-held.jsonl", "transcript-postbox-hook-blocked.jsonl"])
def test_other_recorded_rows_prove_nothing(tmp_path: Path, name: str) -> None:
    """A held line's text and a postbox's own rows are no proof."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(name))
    text = "ZDO-F2-hook-into-bypass"

    assert look(follow_as(str(path), 0, facts_of(IDLE)[0], text, T)) == NONE


@pytest.mark.parametrize(
    "row",
    [
        idle_row(origin={"kind": "peer", "msg_id": "another"}),
        idle_row(origin={"kind": "human", "msg_id": facts_of(IDLE)[0]}),
        idle_row(origin=facts_of(IDLE)[0]),
        idle_row(origin=None, message=facts_of(IDLE)[1]),
        idle_row(type="assistant"),
        idle_row(type="system"),
        idle_row(type="attachment"),
        idle_row(type="attachment", attachment=facts_of(IDLE)[0]),
        idle_row(type=["user"]),
        idle_row(sessionId=P),
        idle_row(sessionId="not an id"),
        idle_row(sessionId=7),
        idle_row()[:-1],
        b"[" * 100_000 + facts_of(IDLE)[0].encode(),
        b'"%s"' % facts_of(IDLE)[0].encode(),
        b'{"type":"user","n":' + b"9" * 5000 + b"}",
    ],
)
def test_a_row_that_is_not_the_proof_is_none(row: bytes) -> None:
    """Another id, another kind, another type, another session, or not a row at all."""
    msg_id, text, session = facts_of(IDLE)

    assert judge_row(row, session) not in ((SURFACED, msg_id), (ENQUEUED, text))


def test_a_row_without_a_session_id_is_believed() -> None:
    """The file itself is named after the session."""
    row = json.loads(idle_row())
    del row["sessionId"]

    assert judge_row(json.dumps(row).encode(), facts_of(IDLE)[2]) == (SURFACED, facts_of(IDLE)[0])


@pytest.mark.parametrize(
    "change",
    [{"content": "ZDO-G-hookUPS "}, {"content": None}, {"operation": "remove"}, {"sessionId": P}],
)
def test_only_an_enqueue_row_with_the_very_text_counts(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    """A remove row, another text and another session say nothing."""
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(recorded_rows(IDLE)[0] | change) + "\n")

    assert look(follow(path)) == NONE


def test_text_in_the_postboxs_transcript_proves_nothing(tmp_path: Path) -> None:
    """All of a true delivery, but in P's session."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(IDLE))
    msg_id, text, _ = facts_of(IDLE)

    assert look(follow_as(str(path), 0, msg_id, text, P)) == NONE


def test_the_same_text_before_the_write_does_not_count(tmp_path: Path) -> None:
    """An enqueue row has no id; only one after the offset can be ours."""
    path = tmp_path / "t.jsonl"
    enqueue = recorded(IDLE).splitlines(keepends=True)[0]
    path.write_bytes(enqueue)
    follower = follow(path, offset=len(enqueue))

    assert look(follower) == NONE
    path.write_bytes(enqueue * 2)
    assert look(follower) == ENQUEUED


def test_the_rest_of_a_line_begun_before_the_write_is_skipped(tmp_path: Path) -> None:
    """An offset in the middle of a row: its end is not read as a row."""
    path = tmp_path / "t.jsonl"
    row = idle_row()
    path.write_bytes(b"x" * 10 + row + b"\n")
    assert look(follow(path, offset=10)) == NONE

    path.write_bytes(b"x" * 9 + b" " + row + b"\n")
    assert look(follow(path, offset=10)) == NONE

    path.write_bytes(b"x" * 10 + b"\n" + row + b"\n")
    assert look(follow(path, offset=10)) == SURFACED
    assert look(follow(path, offset=11)) == SURFACED


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    """Whole lines only, however they arrive."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"")
    follower = follow(path)
    for byte in idle_row():
        with path.open("ab") as file:
            file.write(bytes([byte]))
        if byte == ord("}"):
            assert look(follower) == NONE
    with path.open("ab") as file:
        file.write(b"\n")

    assert look(follower) == SURFACED


@pytest.mark.parametrize("nuls", [1, 512, 70_000])
def test_a_block_of_nuls_hides_no_row(tmp_path: Path, nuls: int) -> None:
    """A power cut leaves NULs before the next row, or after a half one."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"half":' + b"\0" * nuls + idle_row() + b"\0" * nuls + b"\n")

    assert look(follow(path)) == SURFACED


def test_a_rewritten_transcript_is_read_again_but_old_text_is_not_believed(tmp_path: Path) -> None:
    """Truncated or replaced: the id still proves, the mere text no longer does."""
    path = tmp_path / "t.jsonl"
    enqueue = recorded(IDLE).splitlines(keepends=True)[0]
    path.write_bytes(b"x" * 5000 + b"\n")
    follower = follow(path, offset=5001)
    assert look(follower) == NONE

    path.write_bytes(enqueue)
    assert look(follower) == NONE
    new = tmp_path / "new"
    new.write_bytes(enqueue + b"y" * 9000 + b"\n" + idle_row() + b"\n")
    new.rename(path)
    assert look(follower) == SURFACED


def test_what_was_seen_stays_seen(tmp_path: Path) -> None:
    """The file may go; the state does not fall."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(IDLE))
    follower = follow(path)
    assert look(follower) == SURFACED

    path.unlink()
    assert look(follower) == SURFACED


def test_a_transcript_that_appears_later_is_found(tmp_path: Path) -> None:
    """A fresh session has none until its first line."""
    path = tmp_path / "t.jsonl"
    found: list[str | None] = [None, str(path)]
    path.write_bytes(recorded(IDLE))
    follower = follow_as(None, 0, *facts_of(IDLE), find=lambda: found.pop(0))

    assert look(follower) == NONE
    assert look(follower) == SURFACED
    assert follower.path == str(path)
    assert look(follow_as(None, 0, *facts_of(IDLE))) == NONE


@pytest.mark.parametrize("kind", ["folder", "pipe", "absent"])
def test_what_is_no_plain_file_neither_hangs_nor_raises(tmp_path: Path, kind: str) -> None:
    """A pipe in the transcript's place has nobody writing to it."""
    path = tmp_path / "t.jsonl"
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)

    assert look(follow(path)) == NONE


def test_a_file_that_shrinks_while_it_is_read_ends_the_look(tmp_path: Path) -> None:
    """The size that the opening showed need not be there any more."""
    path = tmp_path / "t.jsonl"

    class Shrunk(Follower):
        def _swallow(self, chunk: bytes) -> None:
            path.write_bytes(b"")
            super()._swallow(chunk)

    msg_id, text, session = facts_of(IDLE)
    shrunk = Shrunk(str(path), 0, {msg_id: text}, session)
    path.write_bytes(b"x" * 600_000)
    assert look(shrunk) == NONE


def test_a_line_too_long_is_passed_over(tmp_path: Path) -> None:
    """Nothing of ours is that long; what follows is read."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"x" * (LONGEST_LINE + 600_000) + b"\n" + idle_row() + b"\n")

    assert look(follow(path)) == SURFACED


def test_a_large_transcript_is_followed_in_little_memory(tmp_path: Path) -> None:
    """100 MB in ordinary rows and one line of 50 MB: a few times the longest line, no more."""
    path = tmp_path / "t.jsonl"
    row = json.dumps({"type": "user", "message": "y" * 2000, "sessionId": T}).encode() + b"\n"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(row * 500)
        file.write(b"z" * 50_000_000 + b"\n")
        for _ in range(50):
            file.write(row * 500)
        file.write(idle_row() + b"\n")
    tracemalloc.start()
    state = look(follow(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert state == SURFACED
    assert peak < 3 * LONGEST_LINE


def test_a_transcript_is_found_by_its_folder_first(tmp_path: Path) -> None:
    """Where the row's folder says, else in any other, the newest one."""
    named = tmp_path / "projects" / slug("/home/u/my work")
    other = tmp_path / "projects" / "-elsewhere"
    older = tmp_path / "projects" / "-before"
    for age, folder in enumerate((named, other, older)):
        folder.mkdir(parents=True)
        (folder / f"{T}.jsonl").write_bytes(b"")
        os.utime(folder / f"{T}.jsonl", (1000 - age, 1000 - age))

    assert find_transcript(str(tmp_path), T, "/home/u/my work") == str(named / f"{T}.jsonl")
    (named / f"{T}.jsonl").unlink()
    assert find_transcript(str(tmp_path), T, "/home/u/my work") == str(other / f"{T}.jsonl")
    assert find_transcript(str(tmp_path), T, None) == str(other / f"{T}.jsonl")


def test_no_transcript_is_none(tmp_path: Path) -> None:
    """No folder, a folder in its place, an id that is a path, a path with NUL."""
    assert find_transcript(str(tmp_path), T, None) is None
    (tmp_path / "projects" / "-x" / f"{T}.jsonl").mkdir(parents=True)
    assert find_transcript(str(tmp_path), T, "\0") is None
    assert find_transcript(str(tmp_path), "../../x", "/") is None


def test_a_folder_is_named_as_claude_code_names_it() -> None:
    """Every UTF-16 unit that is no plain letter or digit is a hyphen."""
    assert slug("/home/u/w_busy.ä🦊") == "-home-u-w-busy----"


A, B, C = (f"e0000000-0000-4000-8000-00000000000{n}" for n in "abc")


def written(path: Path, *rows: dict[str, Any]) -> None:
    """*rows* are added to *path*."""
    with path.open("a") as file:
        file.writelines(json.dumps({"sessionId": T} | row) + "\n" for row in rows)


def enqueued(text: str) -> dict[str, Any]:
    """The row of a line that waits."""
    return {"type": "queue-operation", "operation": "enqueue", "content": text}


def surfaced(msg_id: str) -> dict[str, Any]:
    """The row of a line in the model's input."""
    return {"type": "user", "origin": {"kind": "peer", "msg_id": msg_id}}


def spoken(**changes: Any) -> dict[str, Any]:
    """A row of the model's own with *changes*."""
    return {"type": "assistant", "isSidechain": False, "message": {"model": "m"}} | changes


def test_many_lines_are_followed_in_one_reading(tmp_path: Path) -> None:
    """Each has its own state, and one that is in says nothing of the others."""
    path = tmp_path / "t.jsonl"
    follower = Follower(str(path), 0, {A: "a", B: "b", C: "c"}, T)
    written(path, enqueued("b"), surfaced(A), surfaced("somebody else's"))
    follower.look()
    first = dict(follower.states)
    written(path, surfaced(C), surfaced(B))
    before = follower.all_surfaced
    follower.look()

    assert {A: SURFACED, B: ENQUEUED, C: NONE} == first
    assert (before, follower.all_surfaced) == (False, True)


def test_of_lines_with_the_same_text_one_is_enqueued_for_each_row(tmp_path: Path) -> None:
    """The earlier one first: the later one is what a session drops as a duplicate."""
    path = tmp_path / "t.jsonl"
    follower = Follower(str(path), 0, {A: "same", B: "same", C: "c"}, T)
    written(path, enqueued("same"))
    follower.look()
    first = dict(follower.states)
    written(path, enqueued("same"), enqueued("same"))
    follower.look()

    assert {A: ENQUEUED, B: NONE, C: NONE} == first
    assert {A: ENQUEUED, B: ENQUEUED, C: NONE} == follower.states


@pytest.mark.parametrize(
    ("rows", "turn"),
    [
        ((surfaced(A), spoken()), True),
        ((enqueued("a"), spoken()), True),
        ((surfaced(A), {"type": "user"}, spoken(), {"type": "user"}), True),
        ((spoken(), surfaced(A)), False),
        ((surfaced(A), spoken(), surfaced(B)), False),
        ((surfaced(A), spoken(), surfaced(B), spoken()), True),
        ((surfaced(A), spoken(), enqueued("somebody else's")), True),
        ((surfaced(A), spoken(isSidechain=True)), False),
        ((surfaced(A), spoken(message={"model": "<synthetic>"})), False),
        ((surfaced(A), spoken(isApiErrorMessage=True)), False),
        ((surfaced(A), spoken(message="odd")), True),
        ((surfaced(A), spoken(sessionId=P)), False),
        ((surfaced(A), {"type": "user", "message": "assistant"}), False),
        ((spoken(), spoken(note="enqueue")), False),
        ((spoken(),), False),
        ((), False),
    ],
)
def test_a_turn_after_the_lines_is_seen(
    tmp_path: Path, rows: tuple[dict[str, Any], ...], turn: bool
) -> None:
    """The model itself spoke behind the last row about one of them; all at once or row by row."""
    path, slow = tmp_path / "t.jsonl", tmp_path / "slow.jsonl"
    written(path, *rows)
    at_once = Follower(str(path), 0, {A: "a", B: "b"}, T)
    stepwise = Follower(str(slow), 0, {A: "a", B: "b"}, T)
    at_once.look()
    for row in rows:
        written(slow, row)
        stepwise.look()

    assert (turn, turn) == (at_once.turn_after, stepwise.turn_after)


def test_nothing_more_is_read_when_all_is_known(tmp_path: Path) -> None:
    """Every line in, and a turn behind them."""
    path = tmp_path / "t.jsonl"
    written(path, surfaced(A), spoken())
    follower = Follower(str(path), 0, {A: "a"}, T)
    follower.look()
    path.unlink()
    path.mkdir()
    follower.look()

    assert (True, True) == (follower.all_surfaced, follower.turn_after)


def test_a_look_ends_where_all_is_known(tmp_path: Path) -> None:
    """What follows in a large file is not read."""
    path = tmp_path / "t.jsonl"
    written(path, surfaced(A), spoken())
    with path.open("ab") as file:
        file.write(b"x" * 600_000 + b"\n")
    written(path, surfaced(A))
    follower = Follower(str(path), 0, {A: "a"}, T)
    follower.look()

    assert follower.turn_after
