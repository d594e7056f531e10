"""Who is who among real sessions of Claude Code: tickets, panes, and an answer from inside."""

from __future__ import annotations

import json
import shlex
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.installed import zdo_command
from tests.contract.sessions import eventually
from tests.contract.test_real_claude import BYPASS, SURFACED, bash, inbound
from tests.fakes.tickets import Tickets

if TYPE_CHECKING:
    from tests.contract.conftest import Scene
    from tests.contract.sessions import Terminal

pytestmark = pytest.mark.contract

CHILD = "echo $$ > child; until [ -e let-go ]; do sleep 0.1; done"


def seen(scene: Scene, session: Terminal) -> dict[str, Any]:
    """What `zdo sessions` says of *session*."""
    _, out, err = scene.zdo.run("sessions", "--json")
    assert out.strip(), err
    rows: list[dict[str, Any]] = json.loads(out)["sessions"]
    return next(row for row in rows if row["pid"] == session.pid)


def test_a_real_session_is_found_by_its_ticket_and_by_its_pane(scene: Scene) -> None:
    """2.1.332 keeps its arguments and its first environment where the kernel shows them."""
    tickets = Tickets(str(scene.rig.home))
    pane = f"w0t1p0:{uuid.uuid4()}"
    target = scene.target("desk", "--name", "on TK-71", TERM_SESSION_ID=pane)
    for ticket in ("TK-71", "TK-72"):
        tickets.add(ticket, "create", 3600)
    tickets.add("TK-72", "comment", 1800, agent=f"claude@{pane}")

    row = seen(scene, target)
    by_pane = scene.zdo.kiss(f"tsid:{pane}", scene.line)
    scene.delivered("addressed by its pane", by_pane, target, SURFACED)

    assert (pane, "TK-71") == (row["tsid"], row["ticket"]["id"])
    assert "main_process_argument" == row["ticket"]["source"]
    assert "tsid" == by_pane.verdict["target"]["route"]


def test_a_tool_of_a_real_session_speaks_for_it(scene: Scene) -> None:
    """An event that names the Bash child binds the session above it."""
    tickets = Tickets(str(scene.rig.home))
    bash(scene, CHILD, when="start the tool")
    target = scene.target("tool", *BYPASS, *inbound("accept"))
    target.enter("start the tool")
    child = eventually("the tool's pid", lambda: _word(target))
    tickets.add("TK-73", "create", 3600)
    tickets.add("TK-73", "action", correlation_id=f"run-{child}-1")

    kissed = scene.zdo.kiss("TK-73", scene.line)

    (target.cwd / "let-go").touch()
    told = (0, "delivered-start", "enqueued", 0)
    scene.delivered("addressed by the ticket of its tool", kissed, target, told)
    assert "correlation" == kissed.verdict["target"]["route"]


def _word(session: Terminal) -> str | None:
    path = session.cwd / "child"
    return path.read_text().strip() if path.exists() else None


def test_a_session_answers_from_inside(scene: Scene, idle: Terminal) -> None:
    """Its Bash child runs `zdo kiss --reply`; the sender is the id that Claude Code gives it."""
    delivery, answer = str(uuid.uuid4()), f"pong {uuid.uuid4()}"
    asker = scene.rig.session_id(idle)
    words = [*zdo_command(), "kiss", "--json", "--reply", delivery, answer]
    bash(scene, f"{shlex.join(words)} > said 2>&1", when=scene.line)
    target = scene.target("inside", *BYPASS, *inbound("accept"), **scene.zdo.env())

    asked = scene.zdo.kiss("inside", scene.line, "--sign", "--session-id", asker, "--key", delivery)

    scene.delivered("signed", asked, target, SURFACED)
    back = scene.rig.api.wait_for(answer, within=20)
    said = json.loads(eventually("what the answer came to", lambda: _said(target)))
    scene.add("answered from inside", f"{said['exit']} {said['class']}", said["proof"], "0", "-")
    assert (asker, scene.rig.session_id(target)) == (back.session, said["sender"])
    assert (0, "delivered-start", asker) == (
        said["exit"], said["class"], said["target"]["session_id"]
    )  # fmt: skip


def _said(session: Terminal) -> str | None:
    path = session.cwd / "said"
    text = path.read_text() if path.exists() else ""
    return text if text.endswith("}\n") else None
