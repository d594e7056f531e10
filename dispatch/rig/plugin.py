"""A pytest plugin: `zdo_rig`, a whole zdo for tests of scripts that call it.

It comes with the distribution; pytest finds it by its entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dispatch.rig.rig import Rig


@pytest.fixture
def zdo_rig() -> Iterator[Rig]:
    """A zdo with a home, a state folder and a `claude` of its own; gone after the test.

    `zdo_rig.env` is the whole environment for the program under test: `zdo` and `claude`
    are on its PATH, and nothing of the caller's is in it.  `zdo_rig.door(name="api")`
    starts a running session, `zdo_rig.lines()` is what sessions were told,
    `zdo_rig.zdo("kiss", …)` runs the command itself.  See `dispatch.rig.rig.Rig`.
    """
    # Whoever has zdo installed pays for a rig only when a test asks for one.
    from dispatch.rig.rig import Rig

    with Rig() as rig:
        yield rig
