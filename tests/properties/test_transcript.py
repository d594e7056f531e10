"""Transcripts: any bytes in any pieces, and only the right row proves."""

import json
import os
import tempfile

from hypothesis import example, given, settings
from hypothesis import strategies as st

from carrier.transcript import ENQUEUED, NONE, SURFACED, Follower, judge_row
from tests.fakes.envelopes import MSG, T, recorded, recorded_rows

TEXT = "one line of text"
SCALE = (NONE, ENQUEUED, SURFACED)
IDLE, BUSY = "transcript-idle-delivery.jsonl", "transcript-busy-delivery.jsonl"


def with_ids(row: dict[str, object], msg_id: str, text: str, session: str = T) -> bytes:
    """A recorded *row* made into one about *text* and *msg_id* in *session*."""
    known = json.dumps(row)
    for old, new in (
        ("ZDO-G-hookUPS", text),
        ("ZDO-BUSY-plain-1", text),
        ("a0000036-0000-4000-8000-000000000036", msg_id),
        ("a000003a-0000-4000-8000-00000000003a", msg_id),
        ("a0000001-0000-4000-8000-000000000001", session),
    ):
        known = known.replace(old, new)
    return known.encode()


OTHER = "e0000000-0000-4000-8000-000000000002"
ENQUEUE, USER = recorded_rows(IDLE)
REMOVE, ATTACHMENT = recorded_rows(BUSY)[1:]
# Each kind of row with the state that it proves.
KINDS = {
    with_ids(USER, MSG, TEXT): SURFACED,
    with_ids(ATTACHMENT, MSG, TEXT): SURFACED,
    with_ids(ENQUEUE, MSG, TEXT): ENQUEUED,
    with_ids(REMOVE, MSG, TEXT): NONE,
    with_ids(USER, OTHER, TEXT): NONE,
    with_ids(USER, MSG, TEXT, OTHER): NONE,
    with_ids(ENQUEUE, MSG, TEXT, OTHER): NONE,
    with_ids(ENQUEUE, MSG, "another"): NONE,
    with_ids(ATTACHMENT, OTHER, TEXT): NONE,
    json.dumps({"type": "user", "message": TEXT, "note": MSG}).encode(): NONE,
    b"": NONE,
    b"{": NONE,
    b"null": NONE,
    b"\xff\xfe": NONE,
    b"\0" * 40: NONE,
}
rows = st.lists(st.sampled_from(sorted(KINDS)), max_size=12)
cuts = st.lists(st.integers(1, 700), max_size=20)


@settings(max_examples=1000, deadline=None)
@given(rows, cuts)
def test_the_state_is_the_highest_that_a_whole_row_proves(
    written: list[bytes], pieces: list[int]
) -> None:
    """However the bytes arrive: never more than was proved, never less, never down."""
    content = b"".join(row + b"\n" for row in written)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.jsonl"
        follower = Follower(path, 0, {MSG: TEXT}, T)
        before, at = NONE, 0
        for piece in [*pieces, len(content)]:
            with open(path, "ab") as file:
                file.write(content[at : at + piece])
            at += piece
            follower.look()
            state = follower.states[MSG]
            whole = content[:at].count(b"\n")
            proved = max((KINDS[row] for row in written[:whole]), key=SCALE.index, default=NONE)
            assert proved == state
            assert SCALE.index(before) <= SCALE.index(state)
            before = state


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=2000), st.integers(0, 2100))
def test_garbage_proves_nothing(content: bytes, offset: int) -> None:
    """Any bytes, looked at from any offset."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.jsonl")
        with open(path, "wb") as file:
            file.write(content)

        follower = Follower(path, offset, {MSG: TEXT, OTHER: TEXT}, T)
        follower.look()

    assert {MSG: NONE, OTHER: NONE} == follower.states


@settings(max_examples=1000, deadline=None)
@given(
    st.sampled_from([IDLE, BUSY]),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 9), st.binary(max_size=5)), max_size=4),
)
def test_mutated_transcripts_neither_raise_nor_prove_without_the_id(
    name: str, changes: list[tuple[int, int, bytes]]
) -> None:
    """A few bytes in and out anywhere: proof only where the id still stands in a peer's row."""
    content = recorded(name)
    for place, out, new in changes:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + out :]
    origin = recorded_rows(name)[-1]
    msg_id = origin.get("attachment", origin)["origin"]["msg_id"]
    session = recorded_rows(name)[0]["sessionId"]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.jsonl"
        with open(path, "wb") as file:
            file.write(content)
        follower = Follower(path, 0, {msg_id: "no such text"}, session)
        follower.look()

    if follower.all_surfaced:
        assert b'"msg_id":"%s"' % msg_id.encode() in content.replace(b" ", b"")
        assert b"peer" in content


@settings(max_examples=1000, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just(MSG),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "origin", "attachment", "sessionId", "operation"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_judging_a_row_is_total(row: object) -> None:
    """Any JSON value with the right names in the wrong places proves nothing."""
    assert judge_row(json.dumps(row).encode(), T) == (NONE, "")


LINES = {f"e0000000-0000-4000-8000-0000000001{n:02}": f"text {n % 3}" for n in range(5)}
steps = st.one_of(
    st.tuples(st.just("surface"), st.sampled_from([*LINES, OTHER])),
    st.tuples(st.just("enqueue"), st.sampled_from(["text 0", "text 1", "text 2", "else"])),
    st.tuples(st.sampled_from(["turn", "noise"]), st.just("")),
)


def row_for(step: tuple[str, str]) -> bytes:
    """The transcript row of one *step*."""
    kind, whom = step
    row: dict[str, object] = {"type": "user", "note": '"msg_id" "assistant"'}
    if kind == "surface":
        row = {"type": "user", "origin": {"kind": "peer", "msg_id": whom}}
    if kind == "enqueue":
        row = {"type": "queue-operation", "operation": "enqueue", "content": whom}
    if kind == "turn":
        row = {"type": "assistant"}
    return json.dumps(row | {"sessionId": T}).encode() + b"\n"


ALL = [("surface", each) for each in LINES]


@settings(max_examples=500, deadline=None)
@given(st.lists(steps, max_size=20), cuts)
@example([*ALL, ("turn", ""), ALL[0]], [])
@example([*ALL, ("turn", ""), ALL[0]], [1, 1, 557, 700])
def test_many_lines_are_as_far_as_their_own_rows_say(
    taken: list[tuple[str, str]], pieces: list[int]
) -> None:
    """A plain model of it: each row raises one line at most, and a turn counts behind the last."""
    states, turn = dict.fromkeys(LINES, NONE), False
    for kind, whom in taken:
        if turn and set(states.values()) == {SURFACED}:
            break  # there is nothing more to learn
        waiting = [i for i, text in LINES.items() if text == whom and states[i] == NONE]
        if kind == "surface" and whom in states:
            states[whom], turn = SURFACED, False
        elif kind == "enqueue" and waiting:
            states[waiting[0]], turn = ENQUEUED, False
        elif kind == "turn":
            turn = any(state != NONE for state in states.values())
    content = b"".join(map(row_for, taken))
    with tempfile.TemporaryDirectory() as folder:
        path, at = f"{folder}/t.jsonl", 0
        follower = Follower(path, 0, LINES, T)
        for piece in [*pieces, len(content)]:
            with open(path, "ab") as file:
                file.write(content[at : at + piece])
            at += piece
            follower.look()

    assert (states, turn) == (follower.states, follower.turn_after)
