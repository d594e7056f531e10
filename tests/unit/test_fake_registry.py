"""The fake registry writes what the real one writes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from dispatch.rig.damage import DAMAGES
from dispatch.rig.registry import FakeRegistry
from registry.rows import REASONS

GOLDEN = Path(__file__).parents[1] / "golden" / "claude-code-2.1.332"


@pytest.mark.parametrize(
    ("recorded", "fields"),
    [
        ("registry-row-interactive-idle.json", {}),
        ("registry-row-headless-busy.json", {"entrypoint": "sdk-cli", "status": "busy"}),
        (
            "registry-row-interactive-waiting.json",
            {"status": "waiting", "waitingFor": "permission prompt"},
        ),
    ],
)
def test_a_row_has_the_recorded_shape(
    tmp_path: Path, recorded: str, fields: dict[str, str]
) -> None:
    """Names, their order and the type of every value are those of Claude Code."""
    real = json.loads((GOLDEN / recorded).read_bytes())
    with FakeRegistry(str(tmp_path)) as registry:
        made = json.loads(Path(registry.add(**fields).file).read_bytes())

    assert [(name, type(value)) for name, value in real.items()] == [
        (name, type(value)) for name, value in made.items()
    ]
    for fixed in ("peerProtocol", "peerFeatures", "kind", "version", "entrypoint", "status"):
        assert real[fixed] == made[fixed]


def test_a_key_has_the_recorded_shape_name_and_mode(tmp_path: Path) -> None:
    """The key file is named after the socket's path, and only its owner may read it."""
    real = json.loads((GOLDEN / "registry-key-file.json").read_bytes())
    # The recording's digest is that of its row's socket, .../4201.sock.
    digest = "9ab1035d5b992d6c9a482eec1db262f96eff9a6aee9db180bee2470d107754e9"
    assert f"4201.{digest}.key" in (GOLDEN / "registry-key-file-name.txt").read_text()

    with FakeRegistry(str(tmp_path)) as registry:
        file = Path(registry.write_key(4201, "/tmp/cc-socks/4201.sock", "0" * 32))
        made = json.loads(file.read_bytes())

    assert file.name == f"4201.{digest}.key"
    assert list(real) == list(made)
    assert len(real["peerToken"]) == len(made["peerToken"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_every_reason_on_disk_has_its_damage() -> None:
    """What the registry can say of a row, the fake can make; the owner is the kernel's word."""
    assert set(REASONS) - {"foreign-owner"} == set(DAMAGES)


def test_nothing_of_it_outlives_the_test(tmp_path: Path) -> None:
    """Processes and sockets are gone when the registry is closed."""
    with FakeRegistry(str(tmp_path)) as registry:
        session = registry.add()
        assert os.path.exists(session.socket)

    assert not os.path.exists(session.socket)
    with pytest.raises(ProcessLookupError):
        os.kill(session.pid, 0)
