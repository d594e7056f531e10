"""The fake session writes what the real one writes: field by field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.door import FakeDoor
from tests.contract.places import Place, place_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from carrier.envelope import Envelope


@pytest.mark.contract
def test_the_fake_writes_what_the_real_one_writes(
    real: Callable[[str], Place], tmp_path: Path
) -> None:
    """Row, key and transcript of the fake have the fields of the real ones, no more, no fewer."""
    shapes = []
    with FakeDoor(str(tmp_path)) as fake:
        for place in (real("accept"), place_of(tmp_path, fake.pid)):
            letter = place.letter()
            place.write(letter)
            place.surfaced(letter.msg_id)
            shapes.append(_shape(place, letter))

    assert shapes[0] == shapes[1]


def _shape(place: Place, letter: Envelope) -> dict[str, list[str]]:
    sessions = place.config / "sessions"
    rows = place.rows()
    user = next(r for r in rows if (r.get("origin") or {}).get("msg_id") == letter.msg_id)
    queued = next(r for r in rows if r.get("content") == letter.line)
    found = {
        "row": json.loads((sessions / f"{place.row.pid}.json").read_bytes()),
        "key": json.loads(next(sessions.glob(f"{place.row.pid}.*.key")).read_bytes()),
        "user": user,
        "origin": user["origin"],
        "enqueue": queued,
    }
    return {name: sorted(value) for name, value in found.items()}
