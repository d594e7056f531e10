"""What `claude` printed, in every shape that was recorded or reported (INTERFACE 7 a)."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest

from carrier.report import FAULTS, LONGEST, RESULT_CHARS, Report, Unreadable, parse_report
from dispatch.rig.claude import golden
from dispatch.rig.outcomes import OUTCOMES, shape
from registry.record import replace

RECORDED = (
    "api-error-401", "api-error-529", "connection-refused", "error-max-budget",
    "error-max-turns", "hook-blocked", "permission-denied", "sigint-during-hook",
    "slash-clear", "success",
)  # fmt: skip
READABLE = (
    "plain", "pretty", "banner", "bom", "crlf", "log-lines", "trailing", "array", "stream",
    "not-utf8", "same-line",
)  # fmt: skip
BLOCKED = golden("result-hook-blocked")


def read(value):
    """The report of *value* printed as Claude Code prints it."""
    return parse_report(json.dumps(value).encode() + b"\n")


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_result_is_read_field_by_field(name):
    """Keys that are absent become None, wherever the others stand."""
    recorded = golden(f"result-{name}")

    assert Report(
        session_id=recorded["session_id"],
        is_error=recorded["is_error"],
        subtype=recorded["subtype"],
        num_turns=recorded["num_turns"],
        cost_usd=recorded["total_cost_usd"],
        result=recorded.get("result"),
        api_error_status=recorded.get("api_error_status"),
    ) == read(recorded)


@pytest.mark.parametrize("name", READABLE)
def test_one_result_is_read_in_every_shape(name):
    """Alone, amid noise, or inside an array."""
    assert read(BLOCKED) == parse_report(shape(name, BLOCKED))


@pytest.mark.parametrize(
    ("name", "why"),
    [("half", "half"), ("halves", "half"), ("twice", "several"), ("usage-limit", "none")],
)
def test_none_several_or_half_a_result_is_unreadable(name, why):
    """And says which."""
    assert parse_report(shape(name, BLOCKED)) == Unreadable(why)


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (b"", "empty"),
        (b" \n\r\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"done", "none"),
        (b"[]", "none"),
        (b'{"type":"system"}', "none"),
        (b'{"type":"sys', "half"),
        (b'{"type":"result"}', "no-session-id"),
        (b'{"type":"result","session_id":null}', "no-session-id"),
        (b'{"type":"result","session_id":""}', "no-session-id"),
        (b'{"type":"result","session_id":7}', "no-session-id"),
        (b'{"type":"result","type":"result","session_id":"x"}', "duplicate-keys"),
        (b'{"type":"result","session_id":"a","session_id":"b"}', "duplicate-keys"),
        (b'{"type":"result","session_id":"x"}{"type":"result","session_id":"x"}', "several"),
        (b'{"type":"other","inner":{"type":"result","session_id":"x"}}', "half"),
        (b'{"type":"other","inner":{"type":"result","session_id":"x"},', "half"),
        (b'{"type":"result","x":' + b"[" * 200_000, "too-deep"),
        (b'{"type":"result","x":"' + b"x" * LONGEST + b'"}', "too-large"),
        (b'"type":"result"' + b"{" * 3000, "too-large"),
        (b'{"type":"result",\n"x":' + b"[1],\n" * (LONGEST // 4), "too-large"),
    ],
)
def test_what_is_not_one_whole_result_has_a_named_fault(printed, why):
    """Never a guess, never an error."""
    assert why in FAULTS
    assert parse_report(printed) == Unreadable(why)


def test_a_broken_object_before_the_result_does_not_hide_it():
    """Reading goes on behind the place where it broke."""
    noise = b'debug {"a": [1, 2}, {"b": {"c": nope}} {{{ "}"\n'

    assert read(BLOCKED) == parse_report(noise + shape("plain", BLOCKED))


def test_a_result_quoted_in_another_text_is_not_a_result():
    """The model may well talk about JSON."""
    talk = {"type": "assistant", "text": json.dumps({"type": "result", "session_id": "evil"})}
    printed = json.dumps(talk).encode() + b"\n" + shape("plain", BLOCKED)

    assert read(BLOCKED) == parse_report(printed)


def test_an_object_with_a_result_inside_counts_once():
    """Only outermost objects, or those in the array, are results."""
    wrapped = BLOCKED | {"inner": {"type": "result", "session_id": "evil"}}

    assert read(BLOCKED) == read(wrapped)


def test_a_session_id_comes_out_canonical_where_it_is_one():
    """Another text stays what it is: certainly not the postbox."""
    canonical = BLOCKED["session_id"]

    assert canonical == read(BLOCKED | {"session_id": canonical.upper()}).session_id
    assert read(BLOCKED | {"session_id": "other"}).session_id == "other"
    assert len(read(BLOCKED | {"session_id": "x" * 999}).session_id) == 200


@pytest.mark.parametrize(
    ("field", "name", "values"),
    [
        ("is_error", "is_error", [None, 0, 1, "true", []]),
        ("subtype", "subtype", [None, 7, {}]),
        ("num_turns", "num_turns", [None, True, "1", 1.5, 10**30]),
        ("cost_usd", "total_cost_usd", [None, True, "0", [], 1e300]),
        ("result", "result", [None, 7, ["text"]]),
        ("api_error_status", "api_error_status", [None, False, "529"]),
    ],
)
def test_a_field_of_another_type_is_not_known(field, name, values):
    """Null in the verdict, never guessed."""
    for value in values:
        assert read(BLOCKED) == replace(
            read(BLOCKED | {name: value}), **{field: getattr(read(BLOCKED), field)}
        )
        assert getattr(read(BLOCKED | {name: value}), field) is None


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 9000])
def test_numbers_that_are_none_are_not_known(number):
    """And huge ones neither crash nor take long."""
    printed = b'{"type":"result","session_id":"x","num_turns":%b,"total_cost_usd":%b}'

    report = parse_report(printed % (number, number))

    assert (None, None) == (report.num_turns, report.cost_usd)


def test_a_long_result_is_cut_and_lone_surrogates_are_replaced():
    """So that it can be shown and stored anywhere."""
    printed = b'{"type":"result","session_id":"x","result":"\\ud800%b"}' % (b"r" * 5000)

    report = parse_report(printed)

    assert "?" + "r" * (RESULT_CHARS - 1) == report.result


def test_an_outcome_of_the_contract_is_read_or_empty():
    """Every row of CONTRACT b that prints a result is a Report, whatever its status."""
    for recorded, _, _, changes in OUTCOMES.values():
        if recorded is not None:
            assert isinstance(read(golden(f"result-{recorded}") | changes), Report)


def _fill(unit, head=b"", tail=b"", size=4 << 20):
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


HOSTILE = {
    "noise": _fill(b"x"),
    "newlines": _fill(b"\n", tail=b'{"type":"result"}'),
    "braces": _fill(b"{", tail=b'"type":"result"'),
    "empty objects": _fill(b"{}", tail=b'"type":"result"'),
    "lines of objects": _fill(b"{}\n", tail=b'{"type":"result","session_id":"x"}'),
    "markers": _fill(b'{"type":"result"'),
    "marked lines": _fill(b'{"type":"result"\n'),
    "bare markers": _fill(b'"type":"result"\n'),
    "dense": _fill(b"[],", b'{"type":"result","x":[', b"0]}"),
    "dense within the limit": _fill(b"[],", b'{"type":"result","x":[', b"0]}", LONGEST),
    "dense objects": _fill(b"{},", b'{"type":"result","x":[', b"0]}", LONGEST),
    "dense lines": _fill(_fill(b"{},", b'{"type":"other","x":[', b'"type":"result"]}\n', LONGEST)),
    "deep": _fill(b'{"a":', tail=b'"type":"result"'),
    "deep lists": _fill(b"[", b'{"type":"result","x":', size=LONGEST),
    "blanks": _fill(b" ", b'{"type"', b':"result"}'),
    "open texts": _fill(b'{"type":"result","x":"\\"'),
    "digits": _fill(b"9", b'{"type":"result","x":', b"}", LONGEST),
    "not utf-8": _fill(b"\xff", tail=b'\n{"type":"result","session_id":"x"}'),
    "wide": _fill("😀".encode(), tail=b'\n{"type":"result","session_id":"x"}'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_4_mib_hold_reading_is_quick_and_small(name):
    """A value in bounded time and memory; the bounds here leave room for a slow machine."""
    began = time.process_time()
    found = parse_report(HOSTILE[name])
    took = time.process_time() - began

    assert isinstance(found, Report | Unreadable)
    assert took < 2.0
    tracemalloc.start()
    parse_report(HOSTILE[name])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
