"""The ports: values in, nothing read."""

from __future__ import annotations

from dispatch.house import House
from registry.clock import Clock
from registry.home import find_places
from registry.processes import Processes


def test_a_house_is_a_value():
    """Two houses with the same ports are one; nothing was read to make it."""
    clock, processes, env = Clock(), Processes(), {"HOME": "/home/u"}

    def make():
        return House(env, find_places(env), clock, processes, "/usr/bin/python3", "/opt/zdo")

    assert make() == make()
    assert make().places.home == "/home/u"
