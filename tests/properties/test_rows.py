"""Whatever bytes stand in a row file, the answer is a Row or a reason, never an exception."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from registry.ids import parse_uuid
from registry.processes import Processes
from registry.rows import REASONS, Row, Skipped, check_row, parse_row

GOLDEN = Path(__file__).parents[1] / "golden" / "claude-code-2.1.332"
RECORDED = [path.read_bytes() for path in sorted(GOLDEN.glob("registry-row-*.json"))]
FIELDS = sorted(json.loads(RECORDED[-1]))

# Half surrogate pairs too: JSON can spell them.
texts = st.text(st.characters(), max_size=40)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3), max_leaves=4)
file_names = st.sampled_from(["4201.json", "4203.json"]) | st.text(max_size=20)


def judge(file_name: str, content: bytes) -> Row | Skipped:
    """The answer to *content*, after what holds for every answer was asserted."""
    found = parse_row(file_name, content)
    if isinstance(found, Skipped):
        assert found.reason in REASONS
        assert found.file == file_name
        return found
    assert found.session_id == parse_uuid(found.session_id)
    assert file_name == f"{found.pid}.json"
    assert found.socket.startswith("/")
    texts = (found.name, found.status, found.cwd, found.socket, found.proc_start, found.version)
    for text in texts:
        # Fit for a terminal, for JSON and for a system call.
        assert text is None or text.encode().decode() == text
    assert check_row(found, Processes()) is not None or os.path.exists(found.socket)
    return found


@settings(max_examples=1000, deadline=None)
@given(file_name=file_names, content=st.binary(max_size=400))
@example(file_name="4201.json", content=b"[" * 200_000)
@example(file_name="4201.json", content=b'{"a":' * 200_000)
@example(file_name="4201.json", content=b'{"pid":' + b"9" * 10_000 + b"}")
@example(file_name="4201.json", content=b'{"pid":1e999,"sessionId":NaN}')
@example(file_name="4201.json", content=b"\xef\xbb\xbf" + RECORDED[1])
@example(file_name="4201.json", content=RECORDED[1].decode().encode("utf-16"))
@example(file_name="4201.json", content=b"\0" * 4096)
def test_any_bytes_have_an_answer(file_name: str, content: bytes) -> None:
    """Noise, depth, giant numbers, other encodings: a reason."""
    assert isinstance(judge(file_name, content), Skipped)


@settings(max_examples=1000, deadline=None)
@given(
    content=st.sampled_from(RECORDED),
    cut=st.integers(0, 800),
    at=st.integers(0, 800),
    noise=st.binary(max_size=6),
)
def test_a_mutated_row_has_an_answer(content: bytes, cut: int, at: int, noise: bytes) -> None:
    """A real row, cut and overwritten anywhere."""
    judge("4201.json", content[:at] + noise + content[at + cut % 7 :])
    judge("4201.json", content[:cut])


@settings(max_examples=1000, deadline=None)
@given(
    content=st.sampled_from(RECORDED),
    changes=st.dictionaries(st.sampled_from([*FIELDS, "parkedJobId"]), values, max_size=4),
)
def test_a_row_with_values_of_any_type_has_an_answer(
    content: bytes, changes: dict[str, Any]
) -> None:
    """Wrong types are absent values or reasons; half surrogate pairs are made printable."""
    row = json.loads(content) | changes

    judge(f"{json.loads(content)['pid']}.json", json.dumps(row).encode())


@settings(max_examples=1000, deadline=None)
@given(
    content=st.sampled_from(RECORDED),
    again=st.lists(st.tuples(st.sampled_from(FIELDS), values), max_size=4),
)
def test_keys_written_twice_have_an_answer(content: bytes, again: list[tuple[str, Any]]) -> None:
    """The last one counts, as it does for the writer."""
    whole = json.loads(content)
    twice = [*whole.items(), *again]
    body = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in twice)
    file_name = f"{whole['pid']}.json"

    found = judge(file_name, f"{{{body}}}".encode())

    assert parse_row(file_name, json.dumps(dict(twice)).encode()) == found
