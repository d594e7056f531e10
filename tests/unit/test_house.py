"""The ports: values in, nothing read."""

from __future__ import annotations

import pytest

from dispatch.house import House
from registry.clock import Clock
from registry.home import find_places
from registry.ids import draw
from registry.processes import Processes
from tests.fakes.tickets import Tickets


def test_a_house_is_a_value():
    """Two houses with the same ports are one; nothing was read to make it."""
    clock, processes, env = Clock(), Processes(), {"HOME": "/home/u"}

    def make():
        return House(env, find_places(env), clock, processes, draw, "/usr/bin/python3", "/opt/zdo")

    assert make() == make()
    assert make().places.home == "/home/u"


def test_a_house_reads_its_configuration_when_it_is_asked(tmp_path):
    """Each time as it stands now: a person may have changed it."""
    env = {"HOME": str(tmp_path), "ZDO_CONFIG": f"{tmp_path}/zdo.toml"}
    house = House(env, find_places(env), Clock(), Processes(), draw, "python3", "/opt/zdo")
    assert () == house.config().targets

    (tmp_path / "zdo.toml").write_text('[targets.fable]\nname = "fable"\n', encoding="utf-8")

    assert ["fable"] == [target.id for target in house.config().targets]


def a_household(tmp_path, text):
    """A house under *tmp_path* with the configuration *text*."""
    env = {"HOME": str(tmp_path), "ZDO_CONFIG": f"{tmp_path}/zdo.toml"}
    (tmp_path / "zdo.toml").write_text(text, encoding="utf-8")
    return House(env, find_places(env), Clock(), Processes(), draw, "python3", "/opt/zdo")


def test_a_scene_looks_at_tickets_once_and_only_when_it_is_asked(tmp_path):
    """What comes later is for the next scene."""
    house = a_household(tmp_path, "")
    scene = house.scene(house.config())
    tickets = Tickets(str(tmp_path))
    tickets.add("TK-1", "create")

    assert scene.look() is scene.look()
    assert scene.look().reading.ledger.has_create("TK-1")


@pytest.mark.parametrize(
    ("target", "is_ready"),
    [('ticket = "TK-1"', True), ('tsid = "w0t0p0"', True), ('name = "fable"', False)],
)
def test_a_queues_scene_has_looked_before_anybody_waits(tmp_path, target, is_ready):
    """Where a configured target needs it; else nobody pays for it."""
    house = a_household(tmp_path, f"[targets.x]\n{target}\n")
    scene = house.queue_scene(house.config())
    Tickets(str(tmp_path)).add("TK-1", "create")

    assert is_ready is not scene.look().reading.ledger.has_create("TK-1")
