"""The ports: values in, nothing read."""

from __future__ import annotations

from dispatch.house import House
from registry.clock import Clock
from registry.home import find_places
from registry.ids import draw
from registry.processes import Processes


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
