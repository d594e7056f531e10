"""The Messages API on a loopback port: it says what it is told and keeps what it is asked.

Scripted while it runs: a rule answers the first request that it fits.  Every request body is
appended to a JSONL log, so "in the model's input" means "in this log".
"""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

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


class MessagesApi:
    """A context manager: listens on a free loopback port between enter and exit."""

    def __init__(self, log: Path, *, default: Step | None = None):
        self._log = log
        self._default = default or Step()
        self._rules: list[Rule] = []
        self._asked: list[Asked] = []
        self._change = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.api = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *rules: Rule) -> None:
        """Put *rules* before those that stand; the first that fits decides."""
        with self._change:
            self._rules[:0] = rules

    def forget(self) -> None:
        """Drop all rules; what was asked stays."""
        with self._change:
            self._rules.clear()

    def asked(self, session: str | None = None) -> list[Asked]:
        """The model turns asked for so far, of *session* or of all."""
        with self._change:
            turns = [asked for asked in self._asked if asked.answered]
        return [asked for asked in turns if session in (None, asked.session)]

    def inputs_with(self, text: str, session: str | None = None) -> list[Asked]:
        """The model turns whose input holds *text*, oldest first."""
        return [asked for asked in self.asked(session) if text in asked.input]

    def wait_for(self, text: str, *, within: float, session: str | None = None) -> Asked:
        """The first model turn whose input holds *text*; AssertionError after *within* seconds."""
        with self._change:
            arrived = self._change.wait_for(
                lambda: bool(self.inputs_with(text, session)), timeout=within
            )
        assert arrived, f"no model input held {text!r} within {within} s"
        return self.inputs_with(text, session)[0]

    def take(self, asked: Asked) -> Step:
        """Keep *asked*, and choose what it gets."""
        with self._change:
            self._asked.append(asked)
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(asdict(asked), ensure_ascii=False) + "\n")
            self._change.notify_all()
            return self._choose(asked) if asked.answered else Step()

    def _choose(self, asked: Asked) -> Step:
        for at, rule in enumerate(self._rules):
            if rule.fits(asked):
                if rule.times is not None:
                    self._rules[at] = replace(rule, times=rule.times - 1)
                return rule.step
        return self._default


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: MessagesApi


class _Exchange(BaseHTTPRequestHandler):
    """One connection of a client; HTTP/1.1, so that a client may keep it open."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class names it
        """Nothing on stderr: the log is the JSONL file."""

    def do_HEAD(self) -> None:
        """A client looks whether the host is there."""
        self._look()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """No catalogue here."""
        self._look()
        self._object(404, _error("not_found_error"))

    def do_POST(self) -> None:
        """A model turn, or one of the few calls around it."""
        body = _object(self._body())
        path = self.path.partition("?")[0]
        session = _session(body, self.headers.get("x-claude-code-session-id"))
        turn = path == "/v1/messages"
        step = self.server.api.take(Asked(time.time(), self.path, session, body, answered=turn))
        if path == "/v1/messages/count_tokens":
            self._object(200, {"input_tokens": 1})
        elif turn:
            self._answer(step, body)
        else:
            self._object(404, _error("not_found_error"))

    def _look(self) -> None:
        self.server.api.take(Asked(time.time(), self.path, None, {}, answered=False))

    def _answer(self, step: Step, body: Json) -> None:
        time.sleep(step.delay)
        if step.drop:
            self.close_connection = True
        elif step.status != 200:
            self._object(step.status, _error(step.error))
        elif body.get("stream"):
            self._stream(step, body)
        else:
            self._object(200, _turn(step, body))

    def _stream(self, step: Step, body: Json) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            for event in _events(_turn(step, body)):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def _object(self, status: int, content: Json) -> None:
        raw = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(raw)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


def _turn(step: Step, body: Json) -> Json:
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


def _events(turn: Json) -> list[Json]:
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


def _error(kind: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": "said by the stub"}}


def _object(raw: bytes) -> Json:
    try:
        value = json.loads(raw)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _session(body: Json, header: str | None) -> str | None:
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
