"""One API, one scratch home and one zdo for the whole contract; a table at its end."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contract.installed import Zdo
from tests.contract.places import Place, place_of
from tests.contract.rig import Rig
from tests.fakes.messages_api import MessagesApi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.contract.installed import Kissed
    from tests.contract.sessions import Session, Terminal
    from tests.fakes.messages_script import Asked

TABLE: pytest.StashKey[list[tuple[str, ...]]] = pytest.StashKey()
HEAD = ("scenario", "verdict", "proof", "carrier requests", "seconds to the model's input")
NOWHERE = 1.0  # seconds after which an idle target would long have asked its model


@dataclass(frozen=True, slots=True)
class Scene:
    """What one test plays with: the rig, the installed zdo, and a line that no other test uses."""

    zdo: Zdo
    line: str
    _table: list[tuple[str, ...]]

    @property
    def rig(self) -> Rig:
        """Where the targets run."""
        return self.zdo.rig

    def target(self, name: str, *args: str, **env: str) -> Terminal:
        """A terminal session of its own, configured as the target *name*."""
        started = self.rig.terminal(name, *args, **env)
        self.zdo.target(name, self.rig.session_id(started))
        return started

    def once(self, session: Session) -> Asked:
        """The first model input that held the line: it stands there once, in *session* alone."""
        session_id = self.rig.session_id(session)
        asked = self.rig.api.wait_for(self.line, within=20)
        assert (session_id, 1) == (asked.session, asked.input.count(self.line))
        everywhere = self.rig.api.inputs_with(self.line)
        assert {session_id} == {other.session for other in everywhere}
        return asked

    def delivered(
        self, scenario: str, kissed: Kissed, session: Session, told: tuple[int, str, str, int]
    ) -> None:
        """*kissed* says *told*, and *session* reads the line; a row of the table either way."""
        asked = None
        try:
            assert kissed.told == told, f"{kissed}"
            asked = self.once(session)
        finally:
            self.note(scenario, kissed, asked)

    def kept_out(self, scenario: str, kissed: Kissed, told: tuple[int, str, str, int]) -> None:
        """*kissed* says *told*, and no model ever reads the line; a row of the table either way."""
        self.note(scenario, kissed)
        assert kissed.told == told, f"{kissed}"
        self.never()

    def never(self) -> None:
        """No model input holds the line, and none will: the target had its time."""
        with pytest.raises(AssertionError, match="no model input"):
            self.rig.api.wait_for(self.line, within=NOWHERE)

    def add(self, *cells: str) -> None:
        """Put one row into the table as it is."""
        self._table.append(cells)

    def note(self, scenario: str, kissed: Kissed, asked: Asked | None = None) -> None:
        """Put *scenario* into the table; *asked* is the model input that held the line."""
        seconds = f"{asked.at - kissed.began:.2f}" if asked else "-"
        status, name, proof, requests = kissed.told
        self._table.append((scenario, f"{status} {name}", str(proof), str(requests), seconds))


def pytest_configure(config: pytest.Config) -> None:
    """A terminal is forked beside the stub's threads; the child only ever becomes `claude`."""
    harmless = "ignore:.*use of forkpty.* may lead to deadlocks:DeprecationWarning"
    config.addinivalue_line("filterwarnings", harmless)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The real binary is started only where `-m` names the contract."""
    if "contract" in config.option.markexpr:
        return
    real = [item for item in items if item.get_closest_marker("contract")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [item for item in items if item not in real]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The table of what was seen on the real binary."""
    rows = config.stash.setdefault(TABLE, [])
    if rows:
        widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
        terminalreporter.section("contract")
        for row in (HEAD, *sorted(rows)):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            terminalreporter.write_line(" | ".join(cells).rstrip())


@pytest.fixture(scope="session")
def root() -> Iterator[Path]:
    """A short scratch folder: a socket's path has 108 bytes at most."""
    made = Path(tempfile.mkdtemp(prefix="zdo-")).resolve()
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def api(root: Path) -> Iterator[MessagesApi]:
    """The stub that every target speaks to."""
    with MessagesApi(root / "asked.jsonl") as listening:
        yield listening


@pytest.fixture(scope="session")
def rig(root: Path, api: MessagesApi) -> Iterator[Rig]:
    """The scratch home; nothing of it runs after the last test."""
    made = Rig(root, api)
    yield made
    made.end()


@pytest.fixture(scope="session")
def zdo(rig: Rig) -> Zdo:
    """The installed zdo, with a postbox made by a blocked first prompt."""
    return Zdo(rig)


@pytest.fixture(scope="session")
def shared(rig: Rig, zdo: Zdo) -> Terminal:
    """One idle target for every test that leaves its target idle; configured as `fable`."""
    started = rig.terminal("fable")
    zdo.target("fable", rig.session_id(started))
    return started


@pytest.fixture(scope="session")
def real(rig: Rig) -> Callable[[str], Place]:
    """Real doors, one session for each setting of crossSessionInbound."""
    places: dict[str, Place] = {}

    def give(rule: str) -> Place:
        if rule not in places:
            setting = json.dumps({"crossSessionInbound": rule})
            started = rig.terminal(f"inbound-{rule}", "--settings", setting)
            places[rule] = place_of(rig.config, started.pid)
        return places[rule]

    return give


@pytest.fixture
def idle(rig: Rig, shared: Terminal) -> Terminal:
    """The shared target, idle again."""
    rig.until(shared, "idle")
    return shared


@pytest.fixture
def scene(zdo: Zdo, shared: Terminal, request: pytest.FixtureRequest) -> Iterator[Scene]:  # noqa: ARG001  the shared target is older than the mark
    """A scene of its own; the targets that the test starts end with it."""
    before = zdo.rig.running()
    yield Scene(zdo, f"kiss {uuid.uuid4()}", request.config.stash.setdefault(TABLE, []))
    zdo.rig.end(keep=before)
    zdo.rig.api.forget()
