"""Receipts and notices: total on any bytes, exact on their own."""

import json
import os
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st

from carrier.notices import parse_notice
from carrier.proof import (
    Notice,
    Receipt,
    TornReceipt,
    leave_receipt,
    parse_receipt,
    read_receipt,
    read_round,
    write_round,
)
from registry.ids import parse_uuid
from tests.fakes.envelopes import MSG, a_receipt, recorded_rows

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
maybe = st.none() | texts
notices = st.builds(Notice, texts, maybe, maybe, maybe)
RECORDED = [json.dumps(row).encode() for row in recorded_rows("receipts.jsonl")]


def content_of(receipt: Receipt) -> bytes:
    """The bytes that *receipt* leaves."""
    with tempfile.TemporaryDirectory() as folder:
        leave_receipt(folder, receipt)
        assert receipt == read_receipt(folder)
        with open(os.path.join(folder, "receipt.json"), "rb") as file:
            return file.read()


WHOLE = content_of(a_receipt(notices=(Notice("held", None, None, "because"),)))
mutations = st.tuples(st.integers(0, 2000), st.integers(0, 8), st.binary(max_size=6))


def mutated(content: bytes, change: tuple[int, int, bytes]) -> bytes:
    """*content* with a few bytes taken out and others put in."""
    at, out, new = change
    at %= len(content) + 1
    return content[:at] + new + content[at + out :]


@settings(max_examples=200, deadline=None)
@given(
    wrote=st.booleans(), eof=st.booleans(), told=st.lists(notices, max_size=3), detail=maybe,
    offset=st.integers(0, 1 << 60), pid=st.none() | st.integers(1, 1 << 22),
)  # fmt: skip
def test_a_receipt_survives_the_round_trip(
    *, wrote: bool, eof: bool, told: list[Notice], detail: str | None, offset: int, pid: int | None
) -> None:
    """What the wrapper leaves is what the dispatcher reads."""
    found = None if wrote else "door-mismatch"
    fields = {"detail": detail, "offset": offset, "pid": pid, "notices": tuple(told)}

    content_of(a_receipt(wrote=wrote, eof=eof and wrote, found=found, **fields))


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_a_torn_receipt(content: bytes) -> None:
    """No bytes by chance are a receipt, and none are an error."""
    assert isinstance(parse_receipt(content), TornReceipt)


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, len(WHOLE) - 1))
def test_a_cut_receipt_is_torn(end: int) -> None:
    """Half a receipt is none."""
    assert isinstance(parse_receipt(WHOLE[:end]), TornReceipt)


@settings(max_examples=1000, deadline=None)
@given(mutations)
def test_a_mutated_receipt_never_contradicts_itself(change: tuple[int, int, bytes]) -> None:
    """It is a receipt that makes sense, or it is torn."""
    found = parse_receipt(mutated(WHOLE, change))

    if isinstance(found, Receipt):
        assert found.wrote is (found.found is None)
        assert found.wrote or not found.eof
    else:
        assert isinstance(found, TornReceipt)


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=200) | st.tuples(st.sampled_from(RECORDED), mutations))
def test_a_notice_is_only_taken_for_its_own_line(noise: bytes | tuple[bytes, object]) -> None:
    """Garbage, mutated and foreign notices say nothing of a line."""
    content = noise if isinstance(noise, bytes) else mutated(noise[0], noise[1])  # type: ignore[arg-type]
    found = parse_notice(content)

    assert found is None or MSG not in found[0]


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(recorded_rows("receipts.jsonl")), mutations)
def test_a_mutated_notice_is_a_notice_or_nothing(
    row: dict[str, str], change: tuple[int, int, bytes]
) -> None:
    """Reading is total."""
    found = parse_notice(mutated(json.dumps(row).encode(), change))

    assert found is None or isinstance(found[1].status, str)


numbers = st.integers(0, 10**18 - 1)
names = st.builds(lambda given, number: f"{given}.{number}", st.uuids(), numbers)
LEAD = "00000000-0000-4000-8000-000000000000.1"


def round_in(content: bytes) -> tuple[str, ...]:
    """The round that *content* is read as."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/{LEAD}")
        with open(f"{folder}/{LEAD}/round", "wb") as file:
            file.write(content)
        return read_round(f"{folder}/{LEAD}")


@settings(max_examples=200, deadline=None)
@given(st.lists(names, max_size=20, unique=True))
def test_a_round_survives_the_round_trip(given_names: list[str]) -> None:
    """What the dispatcher meant is what the wrapper visits, in that order."""
    with tempfile.TemporaryDirectory() as folder:
        write_round(folder, given_names)

        assert tuple(given_names) == read_round(folder)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=300))
def test_garbage_is_no_round(content: bytes) -> None:
    """No bytes by chance name a folder."""
    assert round_in(content) == ()


@settings(max_examples=500, deadline=None)
@given(st.lists(names, min_size=1, max_size=5, unique=True), mutations)
def test_a_mutated_round_names_attempts_or_nothing(
    given_names: list[str], change: tuple[int, int, bytes]
) -> None:
    """Whatever is read, it is a sibling's name, each once."""
    found = round_in(mutated("".join(f"{name}\n" for name in given_names).encode(), change))

    assert len(set(found)) == len(found)
    for name in found:
        delivery, number = name.split(".")
        assert parse_uuid(delivery) == delivery
        assert number.isdigit()
        assert name != LEAD


@settings(max_examples=200, deadline=None)
@given(st.lists(names, min_size=1, max_size=5, unique=True), st.data())
def test_a_cut_round_loses_whole_lines_only(given_names: list[str], data: st.DataObject) -> None:
    """No number is read as another because its end is missing."""
    whole = "".join(f"{name}\n" for name in given_names)
    cut = data.draw(st.integers(0, len(whole)))

    assert round_in(whole[:cut].encode()) in {
        (),
        tuple(given_names[: whole[:cut].count("\n")]),
    }
