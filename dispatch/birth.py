"""A new session that nothing but carriers will ever resume, made without a model call.

Its one prompt is blocked by a hook, as every later knock is (CONTRACT g, 4).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

from carrier.argv import BLOCK, build_birth, quiet_env, settings
from carrier.order import Order
from carrier.report import Unreadable, parse_report
from carrier.run import find_binary, run_carrier
from carrier.transcript import find_transcript
from dispatch.tool_errors import ClaudeMissing, PostboxLate, PostboxOdd, PostboxUnborn
from registry.durable import write_whole
from registry.home import open_state
from registry.ids import new_uuid
from registry.locks import take_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from carrier.report import Report
    from carrier.run import Run
    from dispatch.house import House

NAME = "zdo-postbox"
_HOOK_S = 10
_FOLDER = "birth-"
_OLD_S = 3600.0  # no birth takes so long: its maker was killed
_SHOWN = 200


def claude_of(house: House) -> str:
    """The program to carry with, or ClaudeMissing."""
    name, path = house.config().claude_bin, house.env.get("PATH", os.defpath)
    found = find_binary(name, path)
    if found is None:
        raise ClaudeMissing(name, path)
    return found


def make_postbox(house: House, claude: str, *, name: str = NAME) -> str:
    """The id of a new session of *claude*, made in the folder where carriers run.

    PostboxUnborn when it cannot be shown to exist, CarrierSpawn and StateUnsafe.  Killed in
    the middle, a session may exist that no configuration names; `zdo postbox list` shows it.
    """
    open_state(house.places)
    session_id = new_uuid()
    config = house.config()
    _sweep(house)
    folder = tempfile.mkdtemp(prefix=_FOLDER, dir=house.places.attempts)
    try:
        write_whole(f"{folder}/settings.json", settings(BLOCK, _HOOK_S))
        lease = take_lease(house.places.locks, session_id, timeout_s=0, clock=house.clock)
        with contextlib.closing(lease):
            order = Order(
                argv=build_birth(claude, session_id, name, f"{folder}/settings.json"),
                env=quiet_env(house.env, config.pass_env, config.claude_dir),
                cwd=house.places.postbox,
                folders=(folder,),
                lease_fd=lease.fd,
                deadline_s=config.timeout_s,
                wrapper_s=0.0,
            )
            run = run_carrier(order, house.clock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _check(run, parse_report(run.stdout), session_id)
    if find_transcript(config.claude_dir, session_id, None) is None:
        raise PostboxOdd(f"claude left no transcript of it in {config.claude_dir}")
    return session_id


def _check(run: Run, report: Report | Unreadable, session_id: str) -> None:
    if run.interrupted:
        raise KeyboardInterrupt
    if run.spawn_error is not None:
        raise PostboxUnborn(f"claude cannot be started: {run.spawn_error}")
    if run.timed_out:
        raise PostboxLate(f"claude was ended after {run.wall_ms} ms{_said(run)}")
    if isinstance(report, Unreadable):
        if run.exit == 0:
            raise PostboxOdd(f"its output is unreadable ({report.why}){_said(run)}")
        raise PostboxUnborn(f"claude ended with {run.exit}{_said(run)}")
    if report.num_turns or report.is_error:
        raise PostboxOdd(f"the prompt was not blocked: {report.result or report.subtype}"[:_SHOWN])
    if report.session_id != session_id:
        raise PostboxOdd(f"claude made session {report.session_id} instead of {session_id}")


def _said(run: Run) -> str:
    lines = run.stderr.decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()[:_SHOWN]}" if lines else ""


def _sweep(house: House) -> None:
    """What killed makers left is gone; it holds no line."""
    for name in os.listdir(house.places.attempts):
        path = f"{house.places.attempts}/{name}"
        with contextlib.suppress(OSError):
            if name.startswith(_FOLDER) and house.clock.now() - os.stat(path).st_mtime > _OLD_S:
                shutil.rmtree(path, ignore_errors=True)
