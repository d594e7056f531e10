"""What a refusal can say: all that was found before it."""

from __future__ import annotations

from dispatch.result import CarrierFacts, Result
from dispatch.telling import Telling
from dispatch.verdict import TABLE


def test_a_telling_keeps_what_was_added():
    """Each fact stays; nothing has started or ended of itself."""
    telling = Telling(Result(command="kiss", verdict=TABLE["unknown"]))

    telling.add(carrier=CarrierFacts(session_id="p"))
    told = telling.add(reason="why")

    assert told is telling.result
    assert (told.carrier.session_id, told.reason) == ("p", "why")
    assert not telling.started
    assert not telling.concluded
    assert telling.line == b""
