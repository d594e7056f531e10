"""The envelope: whole or torn."""

import json
from typing import Any

import pytest

from carrier.envelope import LINE_LIMIT, Envelope, from_bytes, to_bytes
from carrier.errors import EnvelopeTorn
from registry.record import fields
from tests.fakes.envelopes import an_envelope


def altered(**changes: Any) -> bytes:
    """An envelope's bytes with *changes* that the record itself would not stop."""
    return json.dumps(fields(an_envelope()) | changes).encode()


@pytest.mark.parametrize(
    "line", ["a", "Ünïcode 🦊", "two\nlines\tand a tab", "\u2028\u2029", '"\\', "x" * LINE_LIMIT]
)
def test_a_line_survives(line: str) -> None:
    """Every character comes back as it went, up to the longest line."""
    assert line == from_bytes(to_bytes(an_envelope(line=line))).line


def test_an_envelope_is_ascii_on_disk() -> None:
    """No code page can change it."""
    assert to_bytes(an_envelope(line="é", sender="\udcff")).isascii()


def test_a_name_that_was_never_utf8_survives() -> None:
    """A sender from the environment may hold surrogates; only the line may not."""
    assert from_bytes(to_bytes(an_envelope(sender="\udcff"))).sender == "\udcff"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "no whole JSON object"),
        (b"\xff", "no whole JSON object"),
        (b"[" * 100_000, "no whole JSON object"),
        (b"\0" * 4096, "no whole JSON object"),
        (b"[]", "no JSON object"),
        (b"{}", "fields missing"),
        (altered(more=1), "fields missing or unknown"),
        (to_bytes(an_envelope())[:-1] + b',"v":1}', "no whole JSON object"),
        (altered(v=2), "a version"),
        (altered(v=True), "v is no int"),
        (altered(attempt=1.0), "attempt is no int"),
        (altered(attempt=1 << 63), "attempt is no int"),
        (altered(pid="4201"), "pid is no int"),
        (altered(line=None), "line is no str"),
        (altered(settle_s=float("nan")), "settle_s is no float"),
        (altered(settle_s=float("inf")), "settle_s is no float"),
        (altered(settle_s=-1), "settle_s is no float"),
        (altered(settle_s=True), "settle_s is no float"),
        (altered(wrapper_s=1e9), "wrapper_s is no float"),
        (altered(session_id="388E03F6-0000-4000-8000-000000000001"), "session_id is not"),
        (altered(delivery_id="../x"), "delivery_id is not"),
        (altered(msg_id=""), "msg_id is not"),
        (altered(postbox="61b7959a122e410e945df4b9b4f73cb7"), "postbox is not"),
        (altered(line=""), "the line has 0 bytes"),
        (altered(line="é" * (LINE_LIMIT // 2) + "x"), "the line has 65537 bytes"),
    ],
)
def test_anything_else_is_torn(content: bytes, why: str) -> None:
    """Missing, added, doubled, of another type or out of bounds: never a guess."""
    with pytest.raises(EnvelopeTorn, match=why):
        from_bytes(content)


def test_a_torn_envelope_does_not_repeat_the_line() -> None:
    """The line is data: neither the error nor its chain holds it."""
    with pytest.raises(EnvelopeTorn) as caught:
        from_bytes(altered(line="canary\ud800"))

    assert "canary" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_whole_seconds_are_seconds() -> None:
    """`2` in a configuration is a duration as well as `2.0`."""
    assert isinstance(from_bytes(altered(settle_s=2)), Envelope)
