"""The stub of the Messages API keeps its own word: what it is asked, what it says, when."""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import pytest

from tests.fakes.messages_api import MessagesApi
from tests.fakes.messages_script import Rule, Step, fail, say, use

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SESSION = "388e03f6-0000-4000-8000-000000000001"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[MessagesApi]:
    """A listening stub."""
    with MessagesApi(tmp_path / "asked.jsonl") as listening:
        yield listening


class Client:
    """One connection to the stub."""

    def __init__(self, api: MessagesApi):
        where = urlsplit(api.url)
        assert where.hostname == "127.0.0.1"
        self.conn = http.client.HTTPConnection(where.hostname, where.port or 0, timeout=5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.conn.close()

    def ask(self, content: object = "hello", **more: Any) -> tuple[int, str]:
        """Status and raw answer of one model turn."""
        body = {"model": "m", "messages": [{"role": "user", "content": content}], **more}
        return self.request("POST", "/v1/messages?beta=true", body)

    def request(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        """Status and raw answer of one request of *SESSION*."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"x-claude-code-session-id": SESSION}
        self.conn.request(method, path, None if body is None else raw, headers)
        answer = self.conn.getresponse()
        return answer.status, answer.read().decode()


def said(answer: tuple[int, str]) -> Any:
    """The content of a turn that was not streamed."""
    status, raw = answer
    assert status == 200
    return json.loads(raw)["content"]


def test_it_says_ok_unless_told_otherwise(api: MessagesApi) -> None:
    """One text block, a finished turn, the caller's model."""
    with Client(api) as client:
        turn = json.loads(client.ask()[1])

    assert [{"type": "text", "text": "ok"}] == turn["content"]
    assert ("end_turn", "m") == (turn["stop_reason"], turn["model"])


def test_the_first_rule_that_fits_decides(api: MessagesApi) -> None:
    """Later scripts go before earlier ones; what fits none gets the default."""
    api.script(Rule(say("old"), says="knock"))
    api.script(Rule(say("new"), says="^knock 7$"))
    with Client(api) as client:
        assert said(client.ask("knock 7"))[0]["text"] == "new"
        assert said(client.ask("knock 8"))[0]["text"] == "old"
        assert said(client.ask("other"))[0]["text"] == "ok"
        api.forget()
        assert said(client.ask("knock 7"))[0]["text"] == "ok"


def test_a_rule_may_wear_out(api: MessagesApi) -> None:
    """*times* counts answers, not looks."""
    api.script(Rule(say("once"), says="x", times=1))
    with Client(api) as client:
        texts = [said(client.ask(text))[0]["text"] for text in ("y", "x", "x")]

    assert ["ok", "once", "ok"] == texts


def test_a_rule_may_be_for_one_session(api: MessagesApi) -> None:
    """The session comes from the header, or from the metadata where there is none."""
    api.script(Rule(say("for another"), session="another"), Rule(say("for us"), session=SESSION))
    with Client(api) as client:
        assert said(client.ask())[0]["text"] == "for us"
        client.conn.request(
            "POST",
            "/v1/messages",
            json.dumps({"metadata": {"user_id": f"user_1_account__session_{SESSION}"}}),
        )
        assert "for us" in client.conn.getresponse().read().decode()


def test_a_tool_is_used_before_its_result_and_not_after(api: MessagesApi) -> None:
    """`after_tool` tells the two turns of one tool call apart."""
    api.script(Rule(use("Bash", {"command": "true"}), after_tool=False))
    result = [
        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]}
    ]
    with Client(api) as client:
        first = json.loads(client.ask("go")[1])
        second = json.loads(client.ask(result)[1])

    assert ("tool_use", {"command": "true"}) == (
        first["stop_reason"],
        first["content"][0]["input"],
    )
    assert first["content"][0]["id"]
    assert second["stop_reason"] == "end_turn"
    assert api.asked()[1].says == "r"


def test_an_answer_may_be_late_an_error_or_none(api: MessagesApi) -> None:
    """What goes wrong with a real API goes wrong here on order."""
    api.script(
        Rule(say("late", delay=0.3), says="wait"),
        Rule(fail(529, "overloaded_error"), says="err"),
        Rule(Step(drop=True), says="drop"),
    )
    with Client(api) as client:
        began = time.monotonic()
        assert said(client.ask("wait"))[0]["text"] == "late"
        assert time.monotonic() - began >= 0.3
        status, raw = client.ask("err")
        assert (529, "overloaded_error") == (status, json.loads(raw)["error"]["type"])
        with pytest.raises(http.client.RemoteDisconnected):
            client.ask("drop")


def test_a_stream_holds_the_same_turn(api: MessagesApi) -> None:
    """The events of a stream, put together, are the blocks that were ordered."""
    api.script(Rule(use("Bash", {"command": "true"}), says="go"))
    with Client(api) as client:
        streamed = [client.ask(text, stream=True)[1] for text in ("go", "hello")]

    events = [
        [json.loads(line[6:]) for line in one.splitlines() if line.startswith("data: ")]
        for one in streamed
    ]
    order = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert [order, order] == [[event["type"] for event in one] for one in events]
    assert json.loads(events[0][2]["delta"]["partial_json"]) == {"command": "true"}
    assert events[1][2]["delta"]["text"] == "ok"
    assert ["tool_use", "end_turn"] == [one[4]["delta"]["stop_reason"] for one in events]


def test_every_request_is_kept_with_its_session(api: MessagesApi, tmp_path: Path) -> None:
    """The log has each body whole; only model turns count as asked."""
    with Client(api) as client:
        client.ask([{"type": "text", "text": "línea"}], system=[{"type": "text", "text": "sys"}])
        counted = client.request("POST", "/v1/messages/count_tokens", {"messages": []})
        others = [
            client.request("GET", "/v1/models")[0],
            client.request("HEAD", "/")[0],
            client.request("POST", "/v1/else", b"no json")[0],
            client.request("POST", "/v1/else", [1])[0],
        ]

    log = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert [404, 200, 404, 404] == others
    assert (200, {"input_tokens": 1}) == (counted[0], json.loads(counted[1]))
    assert (6, "línea") == (len(log), log[0]["body"]["messages"][0]["content"][0]["text"])
    assert ([SESSION], "sys\nlínea") == ([a.session for a in api.asked()], api.asked()[0].input)
    assert api.asked("somebody else") == []


def test_a_body_in_chunks_is_read_whole(api: MessagesApi) -> None:
    """A client that does not know the length beforehand is understood too."""
    body = json.dumps({"messages": [{"role": "user", "content": "in chunks"}]}).encode()
    with Client(api) as client:
        client.conn.request("POST", "/v1/messages", iter([body[:10], body[10:]]))
        client.conn.getresponse().read()
        assert said(client.ask())[0]["text"] == "ok"

    assert api.asked()[0].says == "in chunks"


def test_waiting_ends_with_the_request_or_in_time(api: MessagesApi) -> None:
    """A test waits for a model input, never for a while."""
    with Client(api) as client:
        later = threading.Timer(0.1, client.ask, args=("here it is",))
        later.start()
        assert api.wait_for("it is", within=5, session=SESSION).says == "here it is"
        later.join()
    with pytest.raises(AssertionError, match=r"'never' within 0\.05 s"):
        api.wait_for("never", within=0.05)
    assert len(api.inputs_with("here")) == 1
