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


def follow(path: Path, name: str = IDLE, offset: int = 0, **more: Any) -> Follower:
    """A follower of the recorded delivery *name* in *path*."""
    return Follower(str(path), offset, *facts_of(name), **more)


def idle_row(**changes: Any) -> bytes:
    """The recorded row of model input with *changes*."""
    return json.dumps(recorded_rows(IDLE)[-1] | changes).encode()


@pytest.mark.parametrize("name", [IDLE, BUSY, OWN])
def test_recorded_deliveries_are_enqueued_then_surfaced(tmp_path: Path, name: str) -> None:
    """Row by row, as they were recorded: the state rises and never falls."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"")
    follower = follow(path, name)
    seen = [follower.look()]
    for line in recorded(name).splitlines(keepends=True):
        with path.open("ab") as file:
            file.write(line)
        seen.append(follower.look())

    assert [NONE, ENQUEUED] == seen[:2]
    assert seen[-1] == SURFACED
    assert sorted(seen, key=[NONE, ENQUEUED, SURFACED].index) == seen


@pytest.mark.parametrize("name", ["transcript-held.jsonl", "transcript-postbox-hook-blocked.jsonl"])
def test_other_recorded_rows_prove_nothing(tmp_path: Path, name: str) -> None:
    """A held line's text and a postbox's own rows are no proof."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(name))
    text = "ZDO-F2-hook-into-bypass"

    assert Follower(str(path), 0, facts_of(IDLE)[0], text, T).look() == NONE


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
    assert judge_row(row, *facts_of(IDLE)) == NONE


def test_a_row_without_a_session_id_is_believed() -> None:
    """The file itself is named after the session."""
    row = json.loads(idle_row())
    del row["sessionId"]

    assert judge_row(json.dumps(row).encode(), *facts_of(IDLE)) == SURFACED


@pytest.mark.parametrize(
    "change",
    [{"content": "ZDO-G-hookUPS "}, {"content": None}, {"operation": "remove"}, {"sessionId": P}],
)
def test_only_an_enqueue_row_with_the_very_text_counts(change: dict[str, Any]) -> None:
    """A remove row, another text and another session say nothing."""
    row = recorded_rows(IDLE)[0] | change

    assert judge_row(json.dumps(row).encode(), *facts_of(IDLE)) == NONE


def test_text_in_the_postboxs_transcript_proves_nothing(tmp_path: Path) -> None:
    """All of a true delivery, but in P's session."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(IDLE))
    msg_id, text, _ = facts_of(IDLE)

    assert Follower(str(path), 0, msg_id, text, P).look() == NONE


def test_the_same_text_before_the_write_does_not_count(tmp_path: Path) -> None:
    """An enqueue row has no id; only one after the offset can be ours."""
    path = tmp_path / "t.jsonl"
    enqueue = recorded(IDLE).splitlines(keepends=True)[0]
    path.write_bytes(enqueue)
    follower = follow(path, offset=len(enqueue))

    assert follower.look() == NONE
    path.write_bytes(enqueue * 2)
    assert follower.look() == ENQUEUED


def test_the_rest_of_a_line_begun_before_the_write_is_skipped(tmp_path: Path) -> None:
    """An offset in the middle of a row: its end is not read as a row."""
    path = tmp_path / "t.jsonl"
    row = idle_row()
    path.write_bytes(b"x" * 10 + row + b"\n")
    assert follow(path, offset=10).look() == NONE

    path.write_bytes(b"x" * 9 + b" " + row + b"\n")
    assert follow(path, offset=10).look() == NONE

    path.write_bytes(b"x" * 10 + b"\n" + row + b"\n")
    assert follow(path, offset=10).look() == SURFACED
    assert follow(path, offset=11).look() == SURFACED


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    """Whole lines only, however they arrive."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"")
    follower = follow(path)
    for byte in idle_row():
        with path.open("ab") as file:
            file.write(bytes([byte]))
        if byte == ord("}"):
            assert follower.look() == NONE
    with path.open("ab") as file:
        file.write(b"\n")

    assert follower.look() == SURFACED


@pytest.mark.parametrize("nuls", [1, 512, 70_000])
def test_a_block_of_nuls_hides_no_row(tmp_path: Path, nuls: int) -> None:
    """A power cut leaves NULs before the next row, or after a half one."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"half":' + b"\0" * nuls + idle_row() + b"\0" * nuls + b"\n")

    assert follow(path).look() == SURFACED


def test_a_rewritten_transcript_is_read_again_but_old_text_is_not_believed(tmp_path: Path) -> None:
    """Truncated or replaced: the id still proves, the mere text no longer does."""
    path = tmp_path / "t.jsonl"
    enqueue = recorded(IDLE).splitlines(keepends=True)[0]
    path.write_bytes(b"x" * 5000 + b"\n")
    follower = follow(path, offset=5001)
    assert follower.look() == NONE

    path.write_bytes(enqueue)
    assert follower.look() == NONE
    new = tmp_path / "new"
    new.write_bytes(enqueue + b"y" * 9000 + b"\n" + idle_row() + b"\n")
    new.rename(path)
    assert follower.look() == SURFACED


def test_what_was_seen_stays_seen(tmp_path: Path) -> None:
    """The file may go; the state does not fall."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(recorded(IDLE))
    follower = follow(path)
    assert follower.look() == SURFACED

    path.unlink()
    assert follower.look() == SURFACED


def test_a_transcript_that_appears_later_is_found(tmp_path: Path) -> None:
    """A fresh session has none until its first line."""
    path = tmp_path / "t.jsonl"
    found: list[str | None] = [None, str(path)]
    path.write_bytes(recorded(IDLE))
    follower = Follower(None, 0, *facts_of(IDLE), find=lambda: found.pop(0))

    assert follower.look() == NONE
    assert follower.look() == SURFACED
    assert follower.path == str(path)
    assert Follower(None, 0, *facts_of(IDLE)).look() == NONE


@pytest.mark.parametrize("kind", ["folder", "pipe", "absent"])
def test_what_is_no_plain_file_neither_hangs_nor_raises(tmp_path: Path, kind: str) -> None:
    """A pipe in the transcript's place has nobody writing to it."""
    path = tmp_path / "t.jsonl"
    if kind == "folder":
        path.mkdir()
    if kind == "pipe":
        os.mkfifo(path)

    assert follow(path).look() == NONE


def test_a_file_that_shrinks_while_it_is_read_ends_the_look(tmp_path: Path) -> None:
    """The size that the opening showed need not be there any more."""
    path = tmp_path / "t.jsonl"

    class Shrunk(Follower):
        def _swallow(self, chunk: bytes) -> None:
            path.write_bytes(b"")
            super()._swallow(chunk)

    shrunk = Shrunk(str(path), 0, *facts_of(IDLE))
    path.write_bytes(b"x" * 600_000)
    assert shrunk.look() == NONE


def test_a_line_too_long_is_passed_over(tmp_path: Path) -> None:
    """Nothing of ours is that long; what follows is read."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"x" * (LONGEST_LINE + 600_000) + b"\n" + idle_row() + b"\n")

    assert follow(path).look() == SURFACED


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
    state = follow(path).look()
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
