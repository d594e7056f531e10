"""One rig for all tests of a module: its state is as used as a real one's, its claude is fresh."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from dispatch.rig.rig import Rig
from tests.acceptance.saying import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def house() -> Iterator[Rig]:
    """A rig that the tests of one module share."""
    with Rig() as rig:
        yield rig


@pytest.fixture
def rig(house: Rig) -> Iterator[Rig]:
    """The module's rig with a fresh configuration and claude, and no doors."""
    shutil.rmtree(house.bin)
    os.mkdir(house.bin)
    house.configure(CONFIG)
    house.install_claude()
    yield house
    house.close_doors()
    for folder in ("sessions", "projects"):
        path = f"{house.claude_dir}/{folder}"
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)


@pytest.fixture
def own_rig() -> Iterator[Rig]:
    """A rig of the test's own, where it may kill and break what it likes."""
    with Rig() as rig:
        rig.configure(CONFIG)
        yield rig
