"""What a carrier run of 2.1.332 does with its hook: the facts that the wrapper is built on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carrier.argv import build_argv, build_env, settings
from tests.contract.sessions import Json, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.installed import Zdo

pytestmark = pytest.mark.contract

PROBE = Path(__file__).with_name("hook.py")
BLOCKED = (0, 0, False)
TO_THE_MODEL = (1, 1, True)


@dataclass(frozen=True, slots=True)
class Run:
    """One carrier run with a hook of our own; *lease* was passed to it."""

    postbox: str
    child: subprocess.Popen[str]
    log: Path
    lease: int

    def noted(self) -> list[Json]:
        """What the hook has written down so far."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def at_work(self) -> Json:
        """The hook's first note: it has started."""
        return eventually("the hook starts", self.noted)[0]

    def result(self) -> tuple[int, Json]:
        """Exit status and result object; empty where nothing was printed."""
        out, _ = self.child.communicate(timeout=30)
        return self.child.returncode, json.loads(out or "{}")

    def outcome(self) -> tuple[int, object, object]:
        """Exit status, turns, error: what tells a blocked prompt from one that went on."""
        status, result = self.result()
        return status, result.get("num_turns"), result.get("is_error")


@pytest.fixture
def carry(zdo: Zdo, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start a carrier as zdo does, on a postbox of its own and with *command* for its hook."""
    postbox = zdo.rig.postbox(zdo.postbox_folder)
    runs: list[Run] = []

    def start(command: str = "", *, timeout_s: int = 60, cwd: Path | None = None) -> Run:
        log, file = tmp_path / f"log{len(runs)}", tmp_path / f"settings{len(runs)}"
        lease = os.open(tmp_path / "lease", os.O_CREAT | os.O_RDWR)
        file.write_bytes(settings(command.format(log=log), timeout_s))
        claude, delivery = str(zdo.rig.claude), str(uuid.uuid4())
        env = build_env(
            zdo.rig.env(),
            pass_env=(),
            claude_dir=str(zdo.rig.config),
            target_id="t",
            postbox=postbox,
            attempt_dir=str(tmp_path),
            wrapper="true",
            sender="anonymous",
        )
        child = subprocess.Popen(
            build_argv(claude, postbox, str(file), delivery, 1, 0.05),
            env=env,
            cwd=cwd or zdo.postbox_folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
            pass_fds=[lease],
        )
        runs.append(Run(postbox, child, log, lease))
        return runs[-1]

    yield start
    for run in runs:
        run.child.kill()
        run.child.communicate()
        os.close(run.lease)


def probe(mode: str, after: str = "") -> str:
    """The hook's command: the probe in *mode*, its log still to be filled in."""
    return f"'{sys.executable}' -IS '{PROBE}' '{{log}}' {mode} {after}"


def test_a_blocked_prompt_is_a_clean_end_without_a_model(
    carry: Callable[..., Run], zdo: Zdo
) -> None:
    """Same session, no turn, the decision's reason in the result; nothing stays registered."""
    run = carry(probe("block"))

    status, result = run.result()

    assert (status, result["num_turns"], result["is_error"]) == BLOCKED
    assert (result["session_id"], result["subtype"]) == (run.postbox, "success")
    assert "a probe" in result["result"]
    assert run.child.pid not in zdo.rig.rows()


def test_the_hook_is_out_of_reach_of_the_carriers_group(carry: Callable[..., Run]) -> None:
    """Its shell leads a session of its own, and no descriptor comes through, the lease neither."""
    run = carry(probe("block"))

    run.result()

    hook = run.at_work()
    assert hook["parent"] == hook["session"] != run.child.pid
    assert hook["descriptors"] == [0, 1, 2]
    assert hook["given"]["prompt"].startswith("zdo knock ")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (probe("fail"), TO_THE_MODEL),
        (probe("die"), TO_THE_MODEL),
        ("/no/such/program", TO_THE_MODEL),
        (probe("silent"), TO_THE_MODEL),
        (probe("fail", "|| exit 2"), BLOCKED),
        (probe("die", "|| exit 2"), BLOCKED),
        ("/no/such/program || exit 2", BLOCKED),
        (probe("silent", "|| exit 2"), TO_THE_MODEL),
    ],
)
def test_a_hook_fails_open_unless_its_shell_says_two(
    carry: Callable[..., Run], command: str, expected: tuple[int, int, bool]
) -> None:
    """Any death becomes a block; a clean exit without a decision does not."""
    assert carry(command).outcome() == expected


def test_the_hooks_timeout_is_in_seconds_and_fails_open(carry: Callable[..., Run]) -> None:
    """So the wrapper's own time must be shorter."""
    run = carry(probe("stay 10"), timeout_s=1)

    assert run.outcome() == TO_THE_MODEL
    first, *_, last = run.noted()
    assert 1.0 < last["at"] - first["at"] < 5.0


def test_a_stopped_carrier_gives_its_hook_a_second_and_no_more_than_two(
    carry: Callable[..., Run],
) -> None:
    """SIGTERM is passed on at once; a hook that ignores it is killed about 1.5 s later."""
    run = carry(probe("stay 10"))
    run.at_work()
    began = time.time()
    os.killpg(run.child.pid, signal.SIGTERM)

    assert run.result() == (143, {})
    told = next(note for note in run.noted() if "signal" in note)
    assert told["at"] - began < 0.5
    assert 1.0 < run.noted()[-1]["at"] - began < 2.0


def test_a_killed_carrier_leaves_its_hook_at_work(carry: Callable[..., Run], zdo: Zdo) -> None:
    """Nobody tells it: it finishes by itself, long after the carrier is gone."""
    run = carry(probe("stay 1"))
    hook = run.at_work()
    os.killpg(run.child.pid, signal.SIGKILL)

    assert run.result() == (-9, {})
    ended = time.time()
    assert run.child.pid in zdo.rig.rows()
    eventually("the hook ends", lambda: not Path(f"/proc/{hook['pid']}/cwd").exists())
    assert run.noted()[-1]["at"] > ended + 0.3
    assert not any("signal" in note for note in run.noted())


def test_a_postbox_without_a_model_turn_is_found_from_its_own_folder_only(
    carry: Callable[..., Run], zdo: Zdo
) -> None:
    """The carrier fails at once and names the session."""
    run = carry(probe("block"), cwd=zdo.rig.root)

    out, err = run.child.communicate(timeout=30)

    assert (run.child.returncode, out) == (1, "")
    assert f"No conversation found with session ID: {run.postbox}" in err
