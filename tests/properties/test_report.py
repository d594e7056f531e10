"""Reading claude's output is total: whatever the bytes, a Report or a named fault."""

from __future__ import annotations

import json
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from carrier.report import FAULTS, Report, parse_report
from dispatch.rig.claude import golden
from dispatch.rig.outcomes import shape
from tests.unit.test_report import READABLE, RECORDED

ALL = [json.dumps(golden(f"result-{name}")).encode() for name in RECORDED]
SHAPED = [shape(name, golden("result-hook-blocked")) for name in READABLE]

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(sorted(golden("result-success")))
NOISE = st.lists(
    st.sampled_from([b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r", b"\0", b"\xff",
                     b'"type"', b'"result"', b'"type":"result"', b'"session_id":"x"', b"1e999",
                     b"9" * 5000, b"[" * 3000, b'{"a":' * 3000, b"\\ud800", b"\xef\xbb\xbf", b" "]),
    max_size=30,
).map(b"".join)  # fmt: skip


def is_sound(printed):
    """A value, in time, with every field of its type."""
    began = time.process_time()
    found = parse_report(printed)
    took = time.process_time() - began
    # The figure of the design is 0.1 s; coverage and a loaded machine take their share.
    assert took < 0.3
    if not isinstance(found, Report):
        assert found.why in FAULTS
        return found
    assert isinstance(found.session_id, str)
    assert found.num_turns is None or type(found.num_turns) is int
    assert found.cost_usd is None or abs(found.cost_usd) < float("inf")
    for text in (found.session_id, found.subtype or "", found.result or ""):
        text.encode()
    return found


@settings(max_examples=1000)
@given(printed=st.binary(max_size=2000) | NOISE)
def test_any_bytes_are_a_report_or_a_named_fault(printed):
    """Random bytes and random pieces of JSON."""
    is_sound(printed)


@settings(max_examples=1000)
@given(recorded=st.sampled_from(ALL + SHAPED), data=st.data())
@example(recorded=ALL[0], data=None)
def test_a_mutated_recording_is_a_report_or_a_named_fault(recorded, data):
    """Cut, overwritten, repeated and with pieces put in."""
    printed = recorded
    for _ in range(0 if data is None else data.draw(st.integers(1, 4))):
        at, to = sorted(data.draw(st.tuples(*[st.integers(0, len(printed))] * 2)))
        piece = data.draw(NOISE | st.binary(max_size=20) | st.just(printed[at:to]))
        printed = printed[:at] + piece + printed[to:]
    is_sound(printed)


@settings(max_examples=300)
@given(
    changes=st.dictionaries(FIELDS, JUNK, max_size=6),
    more=st.dictionaries(st.text(max_size=8), JUNK),
)
def test_junk_in_any_field_is_a_report_or_a_named_fault(changes, more):
    """Types that nobody expects, nested as they like."""
    result = more | golden("result-success") | changes

    is_sound(json.dumps(result).encode())


@settings(max_examples=300)
@given(printed=st.sampled_from(ALL), before=st.text(), after=st.text())
def test_noise_on_other_lines_changes_nothing(printed, before, after):
    """As long as it holds no result of its own."""
    lines = [text.replace("{", "(").encode("utf-8", "replace") for text in (before, after)]

    assert parse_report(printed) == parse_report(b"\n".join([lines[0], printed, lines[1]]))


@settings(max_examples=300)
@given(data=st.data(), recorded=st.sampled_from(ALL))
def test_a_cut_result_is_never_a_report(data, recorded):
    """Not one byte may be missing."""
    cut = data.draw(st.integers(0, len(recorded) - 1))

    assert not isinstance(parse_report(recorded[:cut]), Report)
