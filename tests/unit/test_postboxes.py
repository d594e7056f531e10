"""What is known of a postbox, and what a birth comes to when claude does something odd."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from carrier.report import Unreadable
from carrier.run import Run
from dispatch import birth, postboxes, selftest
from dispatch.cli import main, postboxing, selftesting
from dispatch.postboxes import cleanup_days, has_model_turn
from dispatch.result import CarrierFacts, Result
from dispatch.throwaway import sweep
from dispatch.tool_errors import PostboxUnborn, TrialFailed
from dispatch.verdict import TABLE
from registry.processes import Processes
from tests.fakes.envelopes import P
from tests.fakes.household import Household


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in."""
    household = Household(tmp_path)
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


def run(**changes):
    """A run of claude that ended well and said nothing, with *changes*."""
    plain = {"exit": 0, "timed_out": False, "spawn_error": None, "wall_ms": 1}
    return Run(**({"stdout": b"", "stderr": b""} | plain | changes))


def test_a_birth_that_ctrl_c_ended_is_none():
    """It is not said to have failed."""
    with pytest.raises(KeyboardInterrupt):
        birth._check(run(interrupted=True), Unreadable("empty"), P)


def test_a_keeper_that_could_not_be_had_is_said():
    """As the system says it."""
    with pytest.raises(PostboxUnborn, match="cannot be started: no process"):
        birth._check(run(spawn_error="no process"), Unreadable("empty"), P)


def test_a_model_turn_is_found_across_parts(tmp_path, monkeypatch):
    """Wherever the reading stops in between; what cannot be read may have one."""
    monkeypatch.setattr(postboxes, "_PART", 7)
    path = tmp_path / "t.jsonl"
    path.write_text('{"type":"user"}\n' * 3, encoding="utf-8")
    assert not has_model_turn(str(path))
    for lead in range(8):
        path.write_text("x" * lead + '{"type":"assistant"}\n', encoding="utf-8")
        assert has_model_turn(str(path))
    assert has_model_turn(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        (None, 30.0),
        ("{}", 30.0),
        ('{"cleanupPeriodDays": 3.5}', 3.5),
        ('{"cleanupPeriodDays": "x"}', None),
    ],
)
def test_the_days_are_those_of_the_settings(tmp_path, text, days):
    """Thirty where nothing is said."""
    if text is not None:
        (tmp_path / "settings.json").write_text(text, encoding="utf-8")

    assert days == cleanup_days(str(tmp_path))


def test_a_transcript_that_goes_meanwhile_is_missing(home, monkeypatch):
    """Found, and then not there any more."""
    monkeypatch.setattr(postboxes, "find_transcript", lambda *_: "/nowhere/at/all.jsonl")

    (found,) = postboxes.postboxes(home.house())

    assert ("missing", None) == (found.state, found.transcript)


def test_nobodys_postboxes_are_none_without_a_folder(home):
    """No project folder, no session."""
    assert () == postboxes.unused(home.house(), ())


def test_what_the_system_refuses_is_a_sentence(home, capsys):
    """With the path and its reason."""
    home.postbox()

    def ask(_house):
        os.unlink("/nowhere/at/all")

    assert 73 == postboxing._answer("postbox", None, ask, as_object=False)
    assert "zdo: spool-unwritable: /nowhere/at/all: No such file" in capsys.readouterr().err


def test_what_is_driven_is_not_touched(home):
    """Nor is what does not exist."""
    (missing,) = postboxes.postboxes(home.house())
    postboxing._touch(missing, home.house())
    assert missing.transcript is None


# -- trials


def kissed(**changes):
    """A kiss that came to its best end, with *changes*."""
    plain = {"command": "kiss", "verdict": TABLE["surfaced"], "proof": "surfaced"}
    return Result(**(plain | changes))


class OneSession:
    """A stage that needs no program."""

    kind, claude = "a test", "/nowhere"

    def __init__(self, env):
        self.env, self.closed = env, False

    def start(self):
        """Say who runs."""
        return P

    def end(self):
        """Nothing runs."""

    def close(self):
        """Nothing is left."""
        self.closed = True

    def left(self):
        """Say so."""
        return [] if self.closed else ["everything"]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"proof": "enqueued"}, "its proof is only enqueued"),
        ({"carrier": CarrierFacts(session_id=P, num_turns=1)}, "1 turns of a model"),
        ({"verdict": TABLE["carrier-exit"], "reason": "why"}, "carrier-exit: why"),
        ({"verdict": TABLE["door-held"]}, "door-held: approve it"),
    ],
)
def test_a_line_needs_the_strongest_proof(home, monkeypatch, result, said):
    """Less is a failure of the trial, and so is any turn of a model."""
    monkeypatch.setattr(selftest, "make_postbox", lambda *_: P)
    monkeypatch.setattr(selftest, "kiss", lambda *_: kissed(**result))
    steps = []

    assert not selftest.trial(OneSession(home.env), home.house(), steps.append)

    failed = next(step for step in steps if not step.ok)
    assert ("line", True) == (failed.name, said in failed.detail)
    assert "traces" == steps[-1].name
    assert issubclass(TrialFailed, Exception)


def test_what_is_left_is_told(home, monkeypatch):
    """A folder that will not go is a failed trial."""
    monkeypatch.setattr(OneSession, "close", lambda _self: None)
    steps = []

    assert not selftest.trial(OneSession(home.env), home.house(), steps.append)

    assert "left behind: everything" == steps[-1].detail


def test_ctrl_c_ends_a_trial_also_when_the_kiss_took_it(home, monkeypatch, capsys):
    """130, whatever the step said."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def trial(*_):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt:
            return False
        return True

    monkeypatch.setattr(selftesting, "trial", trial)
    try:
        assert 130 == main.run(["selftest", "--rig"])
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    assert "zdo: interrupted: " in capsys.readouterr().err
    assert home.root


def test_only_folders_of_dead_owners_are_swept(monkeypatch, tmp_path):
    """And only such as zdo makes."""
    monkeypatch.setattr("dispatch.throwaway._ROOT", str(tmp_path))
    names = ("zdo-selftest-4194305-x", f"zdo-selftest-{os.getpid()}-x", "zdo-selftest-x", "other-1")
    dead, alive, odd, other = (tmp_path / name for name in names)
    for path in (dead, alive, odd, other):
        path.mkdir()
        Path(path, "file").touch()

    sweep(Processes())

    assert [False, True, True, True] == [path.exists() for path in (dead, alive, odd, other)]
