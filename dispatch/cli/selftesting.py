"""`zdo selftest`: a live check for after an upgrade of Claude Code."""

from __future__ import annotations

import json
import signal

from dispatch.birth import claude_of
from dispatch.claude_version import ask
from dispatch.cli.answering import head
from dispatch.cli.commands import this_house
from dispatch.cli.speech import complain, speak
from dispatch.render import clean, failure_line
from dispatch.selftest import Step, trial
from dispatch.tool_errors import ClaudeMissing
from dispatch.verdict import TABLE
from registry.record import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from dispatch.house import House
    from dispatch.selftest import Stage


def selftest(session_id: str | None, *, with_rig: bool, as_object: bool) -> int:
    """`zdo selftest`: 0 when a line went out and its proof came back, else 78 with the step.

    Where there is no `claude` the rig is tried, and the status is 69: Claude Code was not.
    """
    house = this_house(session_id)
    ended: list[int] = []
    _heed(ended)
    began = house.clock.monotonic()
    steps: list[Step] = []

    lost: list[int] = []

    def told(step: Step) -> None:
        steps.append(step)
        if not as_object:
            # What cannot be said is said once.
            lost.append(speak([clean(_line(step))], quietly=any(lost)))

    stage, version, missing = _stage(house, with_rig=with_rig)
    is_well = trial(stage, house, told)
    if ended:
        raise KeyboardInterrupt  # also when the kiss took it, and made a verdict of it
    seconds = house.clock.monotonic() - began
    name, reason, advice = _verdict(steps, missing)
    status = 0 if name is None else TABLE[name].exit
    if name is not None:
        complain(failure_line(name, reason, advice))
    if not as_object:
        what = stage.kind if version is None else f"{stage.kind} {version}"
        lines = [clean(f"selftest: {what} ok in {seconds:.1f} s")] if is_well else []
        lost.append(speak(lines, quietly=any(lost) or status != 0))
        return status or max(lost)
    whole = head("selftest", house.speaker, {"class": name, "exit": status}) | {
        "stage": stage.kind,
        "version": version,
        "seconds": round(seconds, 3),
        "steps": [fields(step) | {"seconds": round(step.seconds, 3)} for step in steps],
        "reason": reason,
        "advice": advice,
    }
    unsaid = speak([json.dumps(whole)], quietly=status != 0)
    return status or unsaid


def _stage(house: House, *, with_rig: bool) -> tuple[Stage, str | None, ClaudeMissing | None]:
    """The stage, the version of what is tried, and why that is not Claude Code, if it is not."""
    missing = None
    if not with_rig:
        try:
            claude = claude_of(house)
        except ClaudeMissing as error:
            missing = error
        else:
            from dispatch.throwaway import Throwaway

            version = ask(claude, house.env, house.config().claude_dir).version
            return Throwaway(claude, house.env, house.clock, house.processes), version, None
    from dispatch.rig.stage import RigStage

    return RigStage(), None, missing


def _verdict(
    steps: list[Step], missing: ClaudeMissing | None
) -> tuple[str | None, str | None, str | None]:
    """Class, reason and advice of a trial; all None when Claude Code, or what was asked, works."""
    failed = next((step for step in steps if not step.ok), None)
    if failed is not None:
        return "unhealthy", f"{failed.name}: {failed.detail}", "see zdo doctor"
    if missing is not None:
        reason = f"Claude Code was not tried, only the rig: {missing}"
        return "carrier-spawn", reason, TABLE["carrier-spawn"].advice
    return None, None, None


def _line(step: Step) -> str:
    return f"{'ok' if step.ok else 'FAIL':4}  {step.name:8} {step.seconds:6.2f} s  {step.detail}"


def _heed(ended: list[int]) -> None:
    """Ctrl-C and SIGTERM end the trial, which tidies up, and stand in *ended*."""

    def end(number: int, _frame: FrameType | None) -> None:
        ended.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
