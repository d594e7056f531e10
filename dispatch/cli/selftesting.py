"""`zdo selftest`: a live check for after an upgrade of Claude Code."""

from __future__ import annotations

import json
import signal

from dispatch.birth import claude_of
from dispatch.claude_version import ask
from dispatch.cli.answering import head
from dispatch.cli.commands import this_house
from dispatch.cli.speech import complain, speak
from dispatch.errors import ClaudeMissing
from dispatch.render import clean, failure_line
from dispatch.selftest import Step, trial
from dispatch.verdict import TABLE
from registry.errors import RegistryError
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from dispatch.house import House
    from dispatch.selftest import Stage


def selftest(session_id: str | None, *, with_rig: bool, as_object: bool) -> int:
    """`zdo selftest`: 0 when a line went out and its proof came back, else 78 with the step."""
    house = this_house(session_id)
    signal.signal(signal.SIGTERM, _interrupt)
    began = house.clock.monotonic()
    stage, version, why = _stage(house, with_rig=with_rig)
    steps: list[Step] = []

    def told(step: Step) -> None:
        steps.append(step)
        if not as_object:
            speak([clean(_line(step))])

    if not as_object and why:
        speak([f"selftest: {why}"])
    is_well = trial(stage, house, told)
    seconds = house.clock.monotonic() - began
    what = stage.kind if version is None else f"{stage.kind} {version}"
    verdict = None if is_well else TABLE["unhealthy"]
    if verdict is not None:
        failed = next(step for step in steps if not step.ok)
        complain(failure_line(verdict.name, f"{failed.name}: {failed.detail}", "see zdo doctor"))
    status = {"class": verdict and verdict.name, "exit": verdict.exit if verdict else 0}
    if as_object:
        whole = head("selftest", house.speaker, status) | {
            "stage": stage.kind,
            "version": version,
            "why": why,
            "seconds": round(seconds, 3),
            "steps": [fields(step) | {"seconds": round(step.seconds, 3)} for step in steps],
        }
        lost = speak([json.dumps(whole)])
    else:
        lost = speak([f"selftest: {what} ok in {seconds:.1f} s"]) if is_well else 0
    return (verdict.exit if verdict else 0) or lost


def _stage(house: House, *, with_rig: bool) -> tuple[Stage, str | None, str | None]:
    """The stage, the version of what is tried, and why it is the rig, if it is."""
    why = "as asked, with the rig in the place of Claude Code"
    if not with_rig:
        try:
            claude = claude_of(house)
        except (ClaudeMissing, RegistryError) as error:
            why = f"{error}; this is the rig, and says nothing of Claude Code"
        else:
            from dispatch.throwaway import Throwaway

            version = ask(claude, house.env, house.config().claude_dir).version
            return Throwaway(claude, house.env, house.clock, house.processes), version, None
    from dispatch.rig.stage import RigStage

    return RigStage(), None, why


def _line(step: Step) -> str:
    return f"{'ok' if step.ok else 'FAIL':4}  {step.name:8} {step.seconds:6.2f} s  {step.detail}"


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
