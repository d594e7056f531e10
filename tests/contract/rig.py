"""Real Claude Code sessions on a scratch home: targets on a terminal, headless ones, postboxes.

Everything runs with a built environment, a key that is none, and a Messages API on loopback.
"""

from __future__ import annotations

import importlib.util
import json
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.contract.sessions import PATIENCE, Headless, Json, Terminal, eventually

if TYPE_CHECKING:
    from tests.contract.sessions import Session
    from tests.fakes.messages_api import MessagesApi

KEY = "sk-ant-api03-this-is-not-a-key"
BLOCKED = {"decision": "block", "reason": "a postbox is made"}


def real_claude() -> Path:
    """The binary that the installed claude-agent-sdk carries."""
    found = importlib.util.find_spec("claude_agent_sdk")
    assert found is not None, "pip install 'zdo[contract]': claude-agent-sdk carries the binary"
    assert found.origin is not None
    binary = Path(found.origin).parent / "_bundled" / "claude"
    assert binary.is_file(), f"no binary in {binary.parent}"
    return binary


class Rig:
    """One scratch home under *root*, whose sessions speak to *api*."""

    def __init__(self, root: Path, api: MessagesApi):
        self.root, self.api = root, api
        self.home = root / "home"
        self.config = self.home / ".claude"
        self.work = root / "work"
        self.runtime, self.scratch = root / "run", root / "tmp"
        self.claude = real_claude()
        self._running: list[Session] = []
        for folder in (self.config, self.work, self.runtime, self.scratch):
            folder.mkdir(parents=True, mode=0o700)
        self._seed()

    def _seed(self) -> None:
        """No question at the first start: onboarded, key approved, every folder here trusted."""
        known = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "bypassPermissionsModeAccepted": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {
                str(self.root): {
                    "hasTrustDialogAccepted": True,
                    "hasCompletedProjectOnboarding": True,
                }
            },
        }
        (self.home / ".claude.json").write_text(json.dumps(known))

    def env(self, **more: str) -> dict[str, str]:
        """The environment of a target: built, never inherited."""
        return {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.runtime),
            "TMPDIR": str(self.scratch),
            "ANTHROPIC_BASE_URL": self.api.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",  # without it root may not bypass permissions
            **more,
        }

    def folder(self, name: str) -> Path:
        """A trusted working folder."""
        made = self.work / name
        made.mkdir(exist_ok=True)
        return made

    def terminal(self, name: str, *args: str, cwd: Path | None = None, **env: str) -> Terminal:
        """An interactive session called *name*, idle when this returns; *env* comes on top."""
        argv = [str(self.claude), "--name", name, *args]
        started = Terminal(argv, cwd=cwd or self.folder(name), env=self.env(**env))
        self._running.append(started)
        self.until(started, "idle")
        return started

    def headless(self, name: str, prompt: str, *args: str) -> Headless:
        """A `claude -p` that was just given *prompt*."""
        argv = [str(self.claude), "-p", "--output-format", "json", *args, "--", prompt]
        started = Headless(argv, cwd=self.folder(name), env=self.env())
        self._running.append(started)
        return started

    def running(self) -> int:
        """How many sessions the rig has started and not ended."""
        return len(self._running)

    def end(self, keep: int = 0) -> None:
        """All but the first *keep* sessions that the rig started are gone."""
        while len(self._running) > keep:
            self._running.pop().end()

    def rows(self) -> dict[int, Json]:
        """The registered rows by pid; one that is being rewritten right now is left out."""
        found = {}
        for path in (self.config / "sessions").glob("*.json"):
            with suppress(OSError, ValueError):
                found[int(path.stem)] = json.loads(path.read_bytes())
        return found

    def ears(self) -> set[str]:
        """The sockets beside the doors that no session registered: somebody awaits a notice."""
        rows = {path.stem for path in (self.config / "sessions").glob("*.json")}
        return {path.stem for path in self.runtime.glob("cc-socks/*.sock")} - rows

    def row(self, session: Session) -> Json:
        """The row of *session*, once there is one."""
        return eventually(f"a row of {session.pid}", lambda: self.rows().get(session.pid))

    def session_id(self, session: Session) -> str:
        """The id under which *session* is registered now."""
        return str(self.row(session)["sessionId"])

    def until(self, session: Session, status: str, within: float = PATIENCE) -> Json:
        """The row of *session*, once its status is *status*."""
        return eventually(
            f"{session.pid} is {status}",
            lambda: (
                row if (row := self.rows().get(session.pid, {})).get("status") == status else None
            ),
            within,
        )

    def surfaced(self, session_id: str) -> list[str]:
        """The `origin.msg_id` of every peer line in the model input of *session_id*."""
        return [str(p["msg_id"]) for p in peers_in(transcript_in(self.config, session_id))]

    def postbox(self, folder: Path, *, model_turn: bool = False) -> str:
        """A new session fit to be resumed, made by a blocked prompt or by one with a model turn."""
        made = str(uuid.uuid4())
        hook = {"type": "command", "command": f"echo '{json.dumps(BLOCKED)}'"}
        settings = {"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}}
        how = [] if model_turn else ["--settings", json.dumps(settings)]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        argv = [str(self.claude), "-p", "--session-id", made, "--output-format", "json"]
        argv += ["--tools=", "--strict-mcp-config", "--setting-sources=", *how, "--", "a postbox"]
        run = Headless(argv, cwd=folder, env=self.env(CLAUDE_CODE_MAX_RETRIES="0"))
        result = run.result()
        assert (made, int(model_turn)) == (result["session_id"], result["num_turns"]), result
        return made


def transcript_in(config: Path, session_id: str) -> list[Json]:
    """The whole rows of the transcript of *session_id*; empty where there is none."""
    found = (config / "projects").glob(f"*/{session_id}.jsonl")
    whole = [line for path in found for line in path.read_bytes().split(b"\n")[:-1]]
    return [json.loads(line) for line in whole]


def peers_in(transcript: list[Json]) -> list[Json]:
    """The origin of every line of another session that reached the model's input."""
    held = [row.get("origin") or (row.get("attachment") or {}).get("origin") for row in transcript]
    return [origin for origin in held if origin and origin.get("kind") == "peer"]
