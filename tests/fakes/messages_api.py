"""The Messages API on a loopback port: it says what it is told and keeps what it is asked.

Scripted while it runs: a rule answers the first request that it fits.  Every request body is
appended to a JSONL log, so "in the model's input" means "in this log".
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from tests.fakes.messages_script import (
    Asked,
    Json,
    Rule,
    Step,
    error_of,
    events_of,
    object_in,
    session_in,
    turn_of,
)

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType


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
        self._object(404, error_of("not_found_error"))

    def do_POST(self) -> None:
        """A model turn, or one of the few calls around it."""
        body = object_in(self._body())
        path = self.path.partition("?")[0]
        session = session_in(body, self.headers.get("x-claude-code-session-id"))
        turn = path == "/v1/messages"
        step = self.server.api.take(Asked(time.time(), self.path, session, body, answered=turn))
        if path == "/v1/messages/count_tokens":
            self._object(200, {"input_tokens": 1})
        elif turn:
            self._answer(step, body)
        else:
            self._object(404, error_of("not_found_error"))

    def _look(self) -> None:
        self.server.api.take(Asked(time.time(), self.path, None, {}, answered=False))

    def _answer(self, step: Step, body: Json) -> None:
        time.sleep(step.delay)
        if step.drop:
            self.close_connection = True
        elif step.status != 200:
            self._object(step.status, error_of(step.error))
        elif body.get("stream"):
            self._stream(step, body)
        else:
            self._object(200, turn_of(step, body))

    def _stream(self, step: Step, body: Json) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):
            for event in events_of(turn_of(step, body)):
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
