"""The installed `zdo` and the house it lives in: configuration, state, and shims of `claude`."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.contract.sessions import eventually

if TYPE_CHECKING:
    from tests.contract.rig import Rig
    from tests.contract.sessions import Json

# What a shim does before it becomes the real binary; `$settings` is the carrier's settings file.
WAIT = 'touch "$0.here"; until [ -e "$0.go" ]; do sleep 0.02; done'
NO_HOOK = "echo '{}' >\"$settings\""
NO_PYTHON = 'sed -i "s,python[0-9.]*,no-such-program,g" "$settings"'


def zdo_command() -> list[str]:
    """The console script beside the interpreter that runs the tests, or what it would do."""
    script = Path(sys.executable).parent / "zdo"
    if script.is_file():
        return [str(script)]
    tree = str(Path(__file__).parents[2])
    start = f"import sys; sys.path[0] = {tree!r}; from dispatch.cli.main import main; main()"
    return [sys.executable, "-c", start]


@dataclass(frozen=True, slots=True)
class Kissed:
    """One call of `zdo kiss --json`, and what the API was asked meanwhile."""

    exit: int
    verdict: Json
    stderr: str
    began: float
    requests: int  # model turns that the postbox asked for

    @property
    def delivery(self) -> str:
        """The delivery's id."""
        return str(self.verdict["delivery_id"])

    @property
    def told(self) -> tuple[int, Any, Any, int]:
        """Exit, class, proof and the carrier's requests: what every test asserts."""
        return self.exit, self.verdict["class"], self.verdict["proof"], self.requests


class Shim:
    """A `claude` that does *before* first and then becomes the real one."""

    def __init__(self, path: Path, claude: Path, before: str):
        self.path = path
        find = 'for word; do [ "$was" = --settings ] && settings=$word; was=$word; done'
        path.write_text(f'#!/bin/sh\n{find}\n{before}\nexec {shlex.quote(str(claude))} "$@"\n')
        path.chmod(0o700)

    def arrived(self) -> None:
        """Return once the carrier waits in a shim made of WAIT."""
        eventually("the carrier is in the shim", Path(f"{self.path}.here").exists)

    def let_go(self) -> None:
        """The waiting carrier goes on."""
        Path(f"{self.path}.go").touch()


class Call:
    """A `zdo kiss` under way."""

    def __init__(self, zdo: Zdo, postbox: str, child: subprocess.Popen[str]):
        self._zdo, self._postbox, self._child = zdo, postbox, child
        self._asked_before = zdo.asked_by(postbox)
        self._began = time.time()

    def kill(self) -> None:
        """SIGKILL to the dispatcher, and to it alone."""
        self._child.kill()
        self._child.communicate(timeout=5)

    def result(self) -> Kissed:
        """The verdict; AssertionError when there is none within a minute."""
        out, err = self._child.communicate(timeout=50)
        assert out.strip(), err
        requests = self._zdo.asked_by(self._postbox) - self._asked_before
        return Kissed(self._child.returncode, json.loads(out), err, self._began, requests)


class Zdo:
    """One zdo with a state folder of its own, whose station has the postbox *postbox*.

    Its caller has the API and a key in the environment, as a user of Claude Code has: the
    count of the carrier's requests would show it if either got through.
    """

    def __init__(self, rig: Rig):
        self.rig = rig
        self.state = rig.root / "state"
        self.state.mkdir(mode=0o700)
        self.postbox = rig.postbox(self.postbox_folder)
        self._targets: dict[str, tuple[str, str]] = {}
        self._config = rig.root / "zdo.toml"

    @property
    def postbox_folder(self) -> Path:
        """The one folder that every carrier runs in (INTERFACE 4)."""
        return self.state / "postbox"

    def target(self, name: str, session_id: str, postbox: str = "") -> None:
        """Configure the target *name*, with a postbox of its own where one is given."""
        self._targets[name] = (session_id, postbox or self.postbox)
        # The settle window ends early once the line surfaces; on a loaded machine that is late.
        lines = ["[carrier]", "settle_s = 2.0", "[station]", f'carrier_session = "{self.postbox}"']
        for name_, (session, own) in self._targets.items():
            lines += [f"[targets.{name_}]", f'session = "{session}"', f'carrier_session = "{own}"']
        self._config.write_text("\n".join(lines) + "\n")

    def shim(self, before: str) -> Shim:
        """A shim of the real binary, to be given to `kiss`."""
        count = len(list(self.rig.root.glob("shim*")))
        return Shim(self.rig.root / f"shim{count}", self.rig.claude, before)

    def env(self, shim: Shim | None = None) -> dict[str, str]:
        """The caller's environment."""
        own = {
            "ZDO_CONFIG": str(self._config),
            "ZDO_STATE_DIR": str(self.state),
            "ZDO_CLAUDE_BIN": str(shim.path if shim else self.rig.claude),
        }
        return self.rig.env(**own)

    def call(
        self,
        address: str,
        line: str,
        *options: str,
        cwd: Path | None = None,
        shim: Shim | None = None,
    ) -> Call:
        """Start `zdo kiss` and return at once."""
        argv = [*zdo_command(), "kiss", "--json", *options, "--", address, line]
        child = subprocess.Popen(
            argv,
            cwd=cwd or self.rig.root,
            env=self.env(shim),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return Call(self, self._postbox_of(address), child)

    def kiss(
        self,
        address: str,
        line: str,
        *options: str,
        cwd: Path | None = None,
        shim: Shim | None = None,
    ) -> Kissed:
        """Call `zdo kiss` and wait for its verdict."""
        return self.call(address, line, *options, cwd=cwd, shim=shim).result()

    def verify(self, delivery: str) -> Json:
        """What `zdo verify` says of *delivery* now."""
        argv = [*zdo_command(), "verify", "--json", delivery]
        run = subprocess.run(
            argv, env=self.env(), capture_output=True, text=True, timeout=20, check=False
        )
        assert run.stdout.strip(), run.stderr
        found: Json = json.loads(run.stdout)
        return found

    def run(self, *words: str, within: float = 60) -> tuple[int, str, str]:
        """Exit status, stdout and stderr of any command."""
        ended = subprocess.run(
            [*zdo_command(), *words],
            cwd=self.rig.root,
            env=self.env(),
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def relay(self) -> Json:
        """What one pass of the relay says."""
        _, out, err = self.run("relay", "--json")
        assert out.strip(), err
        found: Json = json.loads(out)
        return found

    def queue(self, address: str, line: str) -> str:
        """The delivery id of *line*, kept for the relay."""
        status, out, err = self.run("kiss", "--json", "--queue", "--", address, line)
        assert status == 0, err
        return str(json.loads(out)["delivery_id"])

    def asked_by(self, postbox: str) -> int:
        """How many model turns *postbox* has asked for so far."""
        return len(self.rig.api.asked(postbox))

    def _postbox_of(self, address: str) -> str:
        return self._targets[address][1] if address in self._targets else self.postbox
