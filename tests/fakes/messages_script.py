"""What a stubbed model is asked and what it says: steps, rules, and the Messages API's shapes."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 5}


@dataclass(frozen=True, slots=True)
class Step:
    """What one request gets: blocks, or an error *status*, after *delay* seconds."""

    blocks: tuple[Json, ...] = ({"type": "text", "text": "ok"},)
    delay: float = 0.0
    status: int = 200
    error: str = "api_error"
    drop: bool = False  # close the connection without a word

    @property
    def stop_reason(self) -> str:
        """Why the model stopped: `tool_use` as soon as one block is one."""
        uses = any(block["type"] == "tool_use" for block in self.blocks)
        return "tool_use" if uses else "end_turn"


def say(text: str, *, delay: float = 0.0) -> Step:
    """The model says *text* and ends its turn."""
    return Step(blocks=({"type": "text", "text": text},), delay=delay)


def use(tool: str, arguments: Json, *, delay: float = 0.0) -> Step:
    """The model calls *tool* once."""
    return Step(blocks=({"type": "tool_use", "name": tool, "input": arguments},), delay=delay)


def fail(status: int, error: str = "api_error") -> Step:
    """The API answers with *status* and an error body."""
    return Step(status=status, error=error)


@dataclass(frozen=True, slots=True)
class Rule:
    """When *step* is said: every condition given must hold, at most *times* times."""

    step: Step
    says: str = ""  # a regular expression on the text of the last user turn
    session: str = ""
    after_tool: bool | None = None  # the last user turn is (not) the result of a tool
    times: int | None = None

    def fits(self, asked: Asked) -> bool:
        """Whether *asked* meets every condition of this rule."""
        return (
            self.times != 0
            and self.session in ("", asked.session)
            and self.after_tool in (None, asked.after_tool)
            and re.search(self.says, asked.says) is not None
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a model turn, as it arrived."""

    at: float
    path: str
    session: str | None
    body: Json
    answered: bool = True  # False: not a model turn (a look, a count)

    @property
    def input(self) -> str:
        """All the text that the model would read, system blocks included."""
        return "\n".join([_text(self.body.get("system")), *map(_text_of_turn, self._turns())])

    @property
    def says(self) -> str:
        """The text of the last user turn."""
        return _text_of_turn(self._last_user())

    @property
    def after_tool(self) -> bool:
        """Whether the last user turn carries a tool's result."""
        content = self._last_user().get("content")
        return isinstance(content, list) and any(b.get("type") == "tool_result" for b in content)

    def _turns(self) -> list[Json]:
        return list(self.body.get("messages") or [])

    def _last_user(self) -> Json:
        users = [turn for turn in self._turns() if turn.get("role") == "user"]
        return users[-1] if users else {}


def turn_of(step: Step, body: Json) -> Json:
    """The assistant turn that *step* orders, in answer to *body*."""
    unique = time.monotonic_ns()
    blocks = [
        {**block, "id": f"toolu_{unique}_{at}"} if block["type"] == "tool_use" else block
        for at, block in enumerate(step.blocks)
    ]
    return {
        "id": f"msg_{unique}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "stub"),
        "content": blocks,
        "stop_reason": step.stop_reason,
        "stop_sequence": None,
        "usage": {**USAGE, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
    }


def events_of(turn: Json) -> list[Json]:
    """*turn* as the events of a stream."""
    events: list[Json] = [
        {"type": "message_start", "message": {**turn, "content": [], "stop_reason": None}}
    ]
    for at, block in enumerate(turn["content"]):
        empty, delta = _opened(block)
        events += [
            {"type": "content_block_start", "index": at, "content_block": empty},
            {"type": "content_block_delta", "index": at, "delta": delta},
            {"type": "content_block_stop", "index": at},
        ]
    ending = {"stop_reason": turn["stop_reason"], "stop_sequence": None}
    used = {"output_tokens": USAGE["output_tokens"]}
    return [
        *events,
        {"type": "message_delta", "delta": ending, "usage": used},
        {"type": "message_stop"},
    ]


def _opened(block: Json) -> tuple[Json, Json]:
    if block["type"] == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return {**block, "input": {}}, delta
    return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}


def error_of(kind: str) -> Json:
    """The body of an error answer."""
    return {"type": "error", "error": {"type": kind, "message": "said by the stub"}}


def object_in(raw: bytes) -> Json:
    """The JSON object in *raw*; empty when there is none."""
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def session_in(body: Json, header: str | None) -> str | None:
    """Who asks: the session in the *header*, else the one in the metadata of *body*."""
    if header:
        return header
    user = str((body.get("metadata") or {}).get("user_id") or "")
    found = re.search(r"session_(?:id\W+)?([0-9a-f-]{36})", user)
    return found[1] if found else None


def _text_of_turn(turn: Json) -> str:
    return _text(turn.get("content"))


def _text(content: object) -> str:
    """All text in *content*: a string, or blocks that may hold results of tools."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [b.get("text") or _text(b.get("content")) for b in content if isinstance(b, dict)]
    return "\n".join(part for part in parts if part)
