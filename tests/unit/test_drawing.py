"""The view on a terminal: what fits, what is cut, and that commands never are."""

from __future__ import annotations

import io
import os
import signal
import threading

import pytest
from rich.console import Console

from dispatch.cli import watching
from dispatch.cli.drawing import drawn
from dispatch.watching import DOUBT, Latest, Need, Queue, View
from tests.fakes.household import Household

KEY = "00000000-0000-4000-8000-00000000000a"


def a_view(**changes):
    """An empty house, with *changes*."""
    plain = {
        "at": 0.0, "sessions": (), "skipped": 0, "needs": (), "more_needs": False, "queues": (),
        "waiting": 0, "latest": (), "relay_ago_s": None, "troubles": (),
    }  # fmt: skip
    return View(**(plain | changes))


def lines(view, width=80, height=None):
    """What a terminal of that size shows."""
    page = io.StringIO()
    Console(file=page, width=width, color_system=None).print(drawn(view, height=height))
    return [line.rstrip() for line in page.getvalue().splitlines()]


def test_commands_are_whole_on_eighty_columns():
    """They are there to be copied."""
    do = (f"zdo verify {KEY}", f"zdo spool requeue {KEY} --i-have-looked")
    need = Need(DOUBT, KEY, "x" * 200, "unknown", 5.0, do)

    shown = lines(a_view(needs=(need,)))

    assert all(f"      {command}" in shown for command in do)
    assert all(len(line) <= 80 for line in shown)


@pytest.mark.parametrize(("height", "expected"), [(20, 6), (10, 4), (None, 50)])
def test_a_low_terminal_shows_the_first_few(height, expected):
    """And says how many more there are."""
    queues = tuple(Queue(f"t{n}", 1, 5.0) for n in range(50))

    shown = lines(a_view(queues=queues, waiting=50, relay_ago_s=1.0), height=height)

    assert expected == sum(line.startswith("t") for line in shown)
    assert (f"and {50 - expected} more targets" in shown) == (expected < 50)


def test_a_class_of_a_later_zdo_is_shown_as_it_is():
    """With the mark of what is not known to be well."""
    latest = (Latest(KEY, 5.0, "brand-new", None),)

    assert any("brand-new" in line and "5s ago" in line for line in lines(a_view(latest=latest)))


class Terminal(io.StringIO):
    """A stdout that says that it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_is_drawn_until_a_signal_ends_it(tmp_path, monkeypatch, number):
    """Again and again, and 0 at the end."""
    home = Household(tmp_path)
    before = {each: signal.getsignal(each) for each in watching.ENDS}
    drawings = []

    def look(house):
        drawings.append(house)
        return a_view()

    monkeypatch.setattr(watching, "look", look)
    monkeypatch.setattr("sys.stdout", Terminal())
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
    timer.start()
    try:
        assert 0 == watching.watch(None, interval=0.2, once=False, as_object=False)
    finally:
        timer.join()
        home.registry.close()
        for each, action in before.items():
            signal.signal(each, action)
    assert len(drawings) > 1
