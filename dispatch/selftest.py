"""Does it still work?  One line goes out and its proof comes back, and no model is called.

A session that is thrown away is the target, in folders of its own; nothing of the user's
is touched.  What plays the session is a stage: the real Claude Code, or the rig.
"""

from __future__ import annotations

import contextlib

from dispatch import configure
from dispatch.birth import make_postbox
from dispatch.errand import Order
from dispatch.kiss import kiss
from dispatch.tool_errors import TrialFailed
from registry.home import find_places
from registry.ids import new_uuid
from registry.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Protocol

    from dispatch.house import House
    from dispatch.result import Result

    class Stage(Protocol):
        """Where a trial takes place."""

        kind: str
        claude: str
        env: Mapping[str, str]

        def start(self) -> str:
            """The id of a running session, idle."""

        def end(self) -> None:
            """It is gone, and took everything with it; TrialFailed."""

        def close(self) -> None:
            """Nothing is left, however far it came."""

        def left(self) -> list[str]:
            """What is left all the same."""


WAIT_S = 20.0  # for what takes a second


class Step(Record):
    """One thing that was tried, in order."""

    name: str
    ok: bool
    seconds: float
    detail: str


def trial(stage: Stage, house: House, told: Callable[[Step], None]) -> bool:
    """Whether every step came to what it should; *told* hears of each as it ends.

    The first that does not is the last but for the tidying up.  Interrupted or failed,
    nothing is left; killed, the session ends by itself and the next trial tidies up.
    """
    own = replace(house, env=stage.env, places=find_places(stage.env), speaker="selftest")
    steps: list[bool] = []

    def tell(step: Step) -> None:
        steps.append(step.ok)
        told(step)

    with contextlib.ExitStack() as stack:
        stack.callback(lambda: _tidy(stage, house, tell))
        for name, act in _acts(stage, own):
            if not _tried(name, act, house, tell):
                break
    return all(steps)


def _acts(stage: Stage, house: House) -> Iterator[tuple[str, Callable[[], str]]]:
    nonce = new_uuid()
    known: dict[str, str] = {}

    def target() -> str:
        known["target"] = stage.start()
        return f"session {known['target']}, idle, no account and no model"

    def postbox() -> str:
        known["postbox"] = make_postbox(house, stage.claude)
        configure.set_postbox(house.places, known["postbox"])
        return f"session {known['postbox']}, made by a blocked prompt"

    def line() -> str:
        result = kiss(_order(known["target"], nonce), house)
        _expect(result, ("delivered-start", "surfaced"))
        if result.proof != "surfaced":
            raise TrialFailed(f"its proof is only {result.proof}")
        turns = result.carrier.num_turns
        if turns:
            raise TrialFailed(f"the carrier had {turns} turns of a model")
        return f"{result.verdict.name}: its transcript has it; turns of a model: {turns}"

    def guard() -> str:
        _expect(kiss(_order(known["postbox"], nonce), house), ("carrier-misbound",))
        return "a line to the postbox itself is refused, exit 2"

    def end() -> str:
        stage.end()
        return "it took its row and its socket with it"

    yield from (("target", target), ("postbox", postbox), ("line", line))
    yield from (("guard", guard), ("end", end))


def _order(address: str, line: str) -> Order:
    return Order(
        address=address,
        take_line=f"zdo selftest {line}".encode,
        sender="selftest",
        until_surfaced=True,
        wait_s=WAIT_S,
        lock_timeout_s=5.0,
    )


def _expect(result: Result, names: tuple[str, ...]) -> None:
    if result.verdict.name not in names:
        raise TrialFailed(f"{result.verdict.name}: {result.reason or result.verdict.advice}")


def _tidy(stage: Stage, house: House, told: Callable[[Step], None]) -> None:
    def act() -> str:
        stage.close()
        if left := stage.left():
            raise TrialFailed(f"left behind: {', '.join(left)}")
        return "no file, no process, no socket"

    _tried("traces", act, house, told)


def _tried(name: str, act: Callable[[], str], house: House, told: Callable[[Step], None]) -> bool:
    began = house.clock.monotonic()
    try:
        ok, detail = True, act()
    except Exception as error:  # noqa: BLE001 - a trial tells what it met, whatever it is
        ok, detail = False, str(error) or type(error).__name__
    told(Step(name, ok, house.clock.monotonic() - began, detail))
    return ok
