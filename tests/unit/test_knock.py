"""One knock: what it is read from, whose it is, and how long it may take."""

import contextlib
import json
import os
import pty
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from carrier import proof
from carrier.door import Door
from carrier.knock import Carried, Machine, carry, find_attempt, hook_fields, miscalled, read_hook
from carrier.proof import Receipt
from registry.clock import Clock
from registry.processes import Processes
from tests.fakes.envelopes import DELIVERY, P, an_envelope, recorded

HOOK = json.loads(recorded("hook-input-userpromptsubmit.json"))
OTHER = "d0000000-0000-4000-8000-000000000002"


def hook_input(**changes: Any) -> bytes:
    """The recorded hook input for P and the knock, with *changes*."""
    known = {"session_id": P, "prompt": f"zdo knock {DELIVERY}"}
    return json.dumps(HOOK | known | changes).encode()


@pytest.mark.parametrize(
    ("given", "delivery_id", "found"),
    [
        (None, DELIVERY, None),
        ("", DELIVERY, None),
        ("/a/b", None, "/a/b"),
        (f"/a/{DELIVERY}.3/", DELIVERY, f"/a/{DELIVERY}.3/"),
        ("/nowhere/x.1", DELIVERY, None),
        ("/", DELIVERY, None),
    ],
)
def test_an_attempt_is_found_or_not(
    given: str | None, delivery_id: str | None, found: str | None
) -> None:
    """Without a folder there is nothing to do."""
    assert find_attempt(given, delivery_id) == found


@contextlib.contextmanager
def pipe_with(content: bytes) -> Iterator[int]:
    """The reading end of a pipe that holds *content* and stays open."""
    reading, writing = os.pipe()
    os.write(writing, content)
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


def test_a_whole_object_on_an_open_pipe_is_enough() -> None:
    """Nobody waits for an end that need not come."""
    started = time.monotonic()
    with pipe_with(hook_input() + b"\n") as fd:
        assert hook_fields(read_hook(fd, Clock()))["session_id"] == P
    assert time.monotonic() - started < 0.9


@pytest.mark.parametrize("content", [b"", b'{"half":{}', b"{}"])
def test_a_silent_pipe_is_left_after_a_second(content: bytes) -> None:
    """What came by then is what there is."""
    started = time.monotonic()
    with pipe_with(content) as fd:
        assert read_hook(fd, Clock()) == content
    assert 0.9 < time.monotonic() - started < 3


def test_a_terminal_a_folder_and_nothing_are_empty(tmp_path: Path) -> None:
    """None of them is waited for."""
    leader, follower = pty.openpty()
    folder = os.open(tmp_path, os.O_RDONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    started = time.monotonic()
    try:
        assert [read_hook(fd, Clock()) for fd in (follower, folder, nothing, 9999)] == [b""] * 4
    finally:
        for fd in (leader, follower, folder, nothing):
            os.close(fd)
    assert time.monotonic() - started < 0.9


def test_an_endless_stdin_is_cut() -> None:
    """1 MiB is more than any hook's input."""
    fd = os.open("/dev/zero", os.O_RDONLY)
    try:
        assert len(read_hook(fd, Clock())) == 1 << 20
    finally:
        os.close(fd)


class Slow(Clock):
    """A clock on which a second passes at every look."""

    def __init__(self) -> None:
        self.at = 0.0

    def monotonic(self) -> float:
        """Later than before."""
        self.at += 1
        return self.at


def test_a_stdin_in_drops_is_read_for_a_second_in_all() -> None:
    """The limit is for the whole of it, not for each part."""
    with pipe_with(b"{") as fd:
        assert read_hook(fd, Slow()) == b""


class NoDoor(Door):
    """A door at which every call is cut short."""

    def speak(self, *_: object) -> Any:
        """Cut in before a byte was written."""
        raise InterruptedError

    def listen(self, *_: object) -> Any:
        """Nothing came."""
        return {}


class Still(Clock):
    """A clock that stands."""

    def monotonic(self) -> float:
        """Always the same."""
        return 100.0


def a_permit(root: Path, **changes: Any) -> str:
    """An attempt's folder with a permit."""
    folder = f"{root}/{DELIVERY}.1"
    os.mkdir(folder, 0o700)
    proof.issue(folder, an_envelope(**({"claude_dir": f"{root}/none"} | changes)))
    return folder


@pytest.mark.parametrize(
    ("wrapper_s", "by"), [(7.0, 106.5), (20.0, 119.5), (0.4, 99.9)], ids=["plain", "long", "short"]
)
def test_the_knock_is_limited_by_the_envelope(tmp_path: Path, wrapper_s: float, by: float) -> None:
    """The alarm and the door's deadline come from `wrapper_s`, less what the receipt needs."""
    limits: list[float] = []
    deadlines: list[float] = []

    def door(deadline: float) -> Door:
        deadlines.append(deadline)
        return NoDoor()

    env = {"ZDO_CARRIER_ATTEMPT": a_permit(tmp_path, wrapper_s=wrapper_s)}
    carry(env, b"", Machine(Still(), Processes(), door, limits.append))

    assert ([wrapper_s], [pytest.approx(by)]) == (limits, deadlines)


def a_machine() -> Machine:
    """One without limits whose door is closed to everybody."""
    return Machine(Still(), Processes(), lambda _: NoDoor(), lambda _: None)


@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_a_knock_tells_what_was_done_and_in_which_folder(tmp_path: Path, ending: str) -> None:
    """However the folder is spelled; here the target does not run."""
    folder = a_permit(tmp_path)

    done = carry({"ZDO_CARRIER_ATTEMPT": folder + ending}, hook_input(), a_machine())

    assert Carried(f"zdo not-written {DELIVERY}", folder) == done
    receipt = proof.read_receipt(folder)
    assert isinstance(receipt, Receipt)
    assert ("target-not-running", None) == (receipt.found, receipt.pid)


@pytest.mark.parametrize(
    ("hook", "shown"), [(b"", "without-permit"), (hook_input(), DELIVERY)], ids=["bare", "knock"]
)
def test_a_knock_without_a_permit_has_no_folder(tmp_path: Path, hook: bytes, shown: str) -> None:
    """Nothing was taken, so nobody may stay for it; not named, or taken before."""
    folder = a_permit(tmp_path)
    assert proof.withdraw(folder)

    for env in ({}, {"ZDO_CARRIER_ATTEMPT": folder}, {"ZDO_CARRIER_ATTEMPT": ""}):
        assert Carried(f"zdo not-written {shown}") == carry(env, hook, a_machine())


@pytest.mark.parametrize(
    ("session", "knocked", "env", "why"),
    [
        (P, DELIVERY, {"ZDO_CARRIER_DOOR_TARGET": "fable"}, None),
        (P.upper(), None, {}, None),
        (None, DELIVERY, {}, None),
        (OTHER, DELIVERY, {}, "another session"),
        (7, None, {}, "another session"),
        (P, OTHER, {}, "another delivery"),
        (P, DELIVERY, {"ZDO_CARRIER_DOOR_TARGET": "else"}, "another target"),
    ],
)
def test_a_run_that_the_envelope_was_not_made_for_is_named(
    session: object, knocked: str | None, env: dict[str, str], why: str | None
) -> None:
    """What the hook does not say is not held against it."""
    found = miscalled(an_envelope(), session, knocked, env)

    assert (why is None) == (found is None)
    assert (why or "") in (found or "")
