"""Envelopes: a round trip for every text, and no torn one passes."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrier.envelope import Envelope, from_bytes, to_bytes
from carrier.errors import EnvelopeTorn
from tests.fakes.envelopes import an_envelope

lines = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)
seconds = st.floats(0, 60) | st.integers(0, 60)
WHOLE = to_bytes(an_envelope(line="a\u2028b\n\té🦊"))


@settings(max_examples=1000, deadline=None)
@given(
    line=lines,
    sender=st.text(max_size=50),
    attempt=st.integers(1, 1 << 40),
    settle_s=seconds,
)
def test_an_envelope_survives_the_round_trip(
    line: str, sender: str, attempt: int, settle_s: float
) -> None:
    """What the dispatcher put in, the wrapper takes out, field by field."""
    sender = sender.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    envelope = an_envelope(line=line, sender=sender, attempt=attempt, settle_s=settle_s)

    assert envelope == from_bytes(to_bytes(envelope))


@settings(max_examples=1000, deadline=None)
@given(end=st.integers(0, len(WHOLE) - 1), tail=st.sampled_from([b"", b"\0", b"\0" * 512, b"}"]))
def test_a_cut_envelope_is_torn(end: int, tail: bytes) -> None:
    """However much of it reached the disk, half an envelope is none."""
    content = WHOLE[:end] + tail
    if content == WHOLE:
        return

    with pytest.raises(EnvelopeTorn):
        from_bytes(content)


@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=200) | st.tuples(st.integers(0, len(WHOLE)), st.binary(max_size=4)))
def test_reading_is_total(noise: bytes | tuple[int, bytes]) -> None:
    """Garbage and mutations give an envelope or EnvelopeTorn, nothing else."""
    if isinstance(noise, tuple):
        at, new = noise
        noise = WHOLE[:at] + new + WHOLE[at + len(new) :]

    with contextlib.suppress(EnvelopeTorn):
        assert isinstance(from_bytes(noise), Envelope)
