"""The configuration: file, environment, defaults, and the snapshot that saves the parsing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from registry.errors import ConfigInvalid
from registry.home import Places, find_places
from registry.targets import DEFAULTS, Config, Target, load_config

ROOT = Path(__file__).parents[2]
POSTBOX = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
FABLE = "388e03f6-0000-4000-8000-000000000001"
WHOLE = f"""
[station]
name = "mini"
carrier_session = "{{{POSTBOX.upper()}}}"
claude_bin = "~/bin/claude"
claude_config_dir = "~/other"

[carrier]
max_turns = 4
max_budget_usd = 1
timeout_s = 3600
settle_s = 0
pass_env = ["RIG", "_X1"]

[tickets]
root = "~/project"
correlation = '^job/([0-9]+)$'

[targets.fable]
session = "urn:uuid:{FABLE.replace("-", "")}"
carrier_session = ""

[targets."my pane"]
tsid = "w0t0p0:ABC"
carrier_session = "fable"

[targets.named]
name = "Fable, the second"
carrier_session = "{POSTBOX.upper()}"

[targets.ticket]
ticket = "tk-11665"
"""


class Home:
    """A home with a configuration file and a state folder."""

    def __init__(self, root: Path):
        self.root = root
        self.file = root / "zdo.toml"
        self.state = root / "state"
        self.state.mkdir(0o700)
        self.snapshot = self.state / "config.json"

    @property
    def places(self) -> Places:
        """Where this home keeps things."""
        env = {"HOME": "/home/u", "ZDO_CONFIG": str(self.file), "ZDO_STATE_DIR": str(self.state)}
        return find_places(env)

    def load(self, text: str | None = None, /, version: str = "1", **env: str) -> Config:
        """The configuration, after *text* was written if there is one."""
        if text is not None:
            self.file.write_text(text)
        return load_config(self.places, env, version=version)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """An empty home."""
    return Home(tmp_path)


def test_without_a_file_everything_is_default(home: Home) -> None:
    """All of the file is optional, the file too; nothing is written for that."""
    expected = Config(
        station=os.uname().nodename,
        carrier_session=POSTBOX,
        claude_bin="claude",
        claude_dir="/home/u/.claude",
        max_turns=1,
        max_budget_usd=0.05,
        timeout_s=60.0,
        settle_s=0.25,
        pass_env=(),
        tickets_root="",
        tickets_correlation="",
        targets=(),
    )

    assert expected == home.load()
    assert expected == home.load("")
    assert {home.snapshot} == {path for path in home.state.iterdir() if path.suffix != ".lock"}


def test_a_path_through_a_file_is_no_file(home: Home) -> None:
    """`~/.config` may be a plain file on an odd machine."""
    home.file.write_text("")
    home.file = home.file / "zdo.toml"

    assert home.load().carrier_session == POSTBOX


def test_every_key_arrives(home: Home) -> None:
    """Ids and tickets in one spelling, paths absolute, numbers as numbers."""
    config = home.load(WHOLE)

    assert config == Config(
        station="mini",
        carrier_session=POSTBOX,
        claude_bin="/home/u/bin/claude",
        claude_dir="/home/u/other",
        max_turns=4,
        max_budget_usd=1.0,
        timeout_s=3600.0,
        settle_s=0.0,
        pass_env=("RIG", "_X1"),
        tickets_root="/home/u/project",
        tickets_correlation="^job/([0-9]+)$",
        targets=(
            Target("fable", "session", FABLE, ""),
            Target("my pane", "tsid", "w0t0p0:ABC", "fable"),
            Target("named", "name", "Fable, the second", POSTBOX),
            Target("ticket", "ticket", "TK-11665", None),
        ),
    )
    assert config == home.load()


def test_a_target_is_found_by_its_exact_id(home: Home) -> None:
    """No case folding, no prefix."""
    config = home.load(WHOLE)

    assert config.target("fable") == Target("fable", "session", FABLE, "")
    assert [config.target(name) for name in ("Fable", "fabl", "", " fable")] == [None] * 4


def test_an_empty_postbox_is_none_on_purpose(home: Home) -> None:
    """The built-in one comes back only when the key is absent."""
    assert home.load('[station]\ncarrier_session = ""').carrier_session == ""


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, ("/home/u/bin/claude", "/home/u/other")),
        ({"ZDO_CLAUDE_BIN": "", "CLAUDE_CONFIG_DIR": ""}, ("/home/u/bin/claude", "/home/u/other")),
        ({"ZDO_CLAUDE_BIN": "claude2"}, ("claude2", "/home/u/other")),
        ({"ZDO_CLAUDE_BIN": "/opt/claude"}, ("/opt/claude", "/home/u/other")),
        ({"CLAUDE_CONFIG_DIR": "/cfg/"}, ("/home/u/bin/claude", "/cfg")),
    ],
)
def test_the_environment_wins_over_the_file(
    home: Home, env: dict[str, str], found: tuple[str, str]
) -> None:
    """Also over a snapshot, which holds only what the file says."""
    first, second = home.load(WHOLE, **env), home.load(**env)

    assert found == (first.claude_bin, first.claude_dir)
    assert first == second
    assert home.load().claude_dir == "/home/u/other"


def test_a_change_of_the_file_is_always_seen(home: Home) -> None:
    """Same length, same modification time: the text itself is compared."""
    home.load("[carrier]\nmax_turns = 1\n")
    before = home.file.stat()

    home.file.write_text("[carrier]\nmax_turns = 2\n")
    os.utime(home.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = home.file.stat()

    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    assert home.load().max_turns == 2


def test_a_replaced_file_is_seen(home: Home) -> None:
    """A rename over the old file, and its end, are changes too."""
    home.load("[carrier]\nmax_turns = 2\n")
    new = home.root / "new"
    new.write_text("[carrier]\nmax_turns = 3\n")
    os.rename(new, home.file)
    renamed = home.load().max_turns
    home.file.unlink()

    assert renamed == 3
    assert home.load().max_turns == 1


def test_a_snapshot_of_another_version_is_not_taken(home: Home) -> None:
    """A new zdo checks the file by its own rules."""
    home.load("[carrier]\nmax_turns = 2\n")
    spoil(home, max_turns=3)

    assert home.load(version="1").max_turns == 3
    assert home.load(version="2").max_turns == 2


def spoil(home: Home, **values: Any) -> None:
    """Change *values* in the snapshot, and nothing else of it."""
    found = json.loads(home.snapshot.read_bytes())
    found["values"] |= values
    home.snapshot.write_text(json.dumps(found))


def test_a_snapshot_is_used_and_private(home: Home) -> None:
    """What it holds is what comes out; only its owner may read it."""
    home.load("[carrier]\nmax_turns = 2\n")
    spoil(home, max_turns=3, settle_s=7.0)
    config = home.load()

    assert (config.max_turns, config.settle_s) == (3, 7.0)
    assert home.snapshot.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "values",
    [
        {"max_turns": True},
        {"max_turns": "3"},
        {"max_budget_usd": 1},
        {"claude_dir": None},
        {"pass_env": "RIG"},
        {"pass_env": [1]},
        {"targets": [["a", "name", "b"]]},
        {"targets": [["a", "name", "b", 5]]},
        {"targets": [["a", 5, "b", None]]},
        {"targets": ["abcd"]},
        {"more": 1},
    ],
)
def test_a_snapshot_with_odd_values_is_ignored(home: Home, values: dict[str, Any]) -> None:
    """No field of a configuration has a type that it should not have."""
    expected = home.load(WHOLE)
    spoil(home, **values)

    assert expected == home.load()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"origin":1}', b"\xff", b"[" * 100_000, b'{"values":{}}'],
)
def test_a_torn_or_foreign_snapshot_is_ignored_and_replaced(home: Home, content: bytes) -> None:
    """Whatever stands there, the file decides, and the next snapshot is whole again."""
    expected = home.load(WHOLE)
    whole = home.snapshot.read_bytes()
    home.snapshot.write_bytes(content)

    assert expected == home.load()
    assert whole == home.snapshot.read_bytes()


def test_every_prefix_of_a_snapshot_is_ignored(home: Home) -> None:
    """A torn snapshot is never half believed."""
    home.load("[carrier]\nmax_turns = 2\n")
    spoil(home, max_turns=3)
    whole = home.snapshot.read_bytes()

    for length in range(0, len(whole), 7):
        home.snapshot.write_bytes(whole[:length])
        assert home.load().max_turns == 2


@pytest.mark.parametrize("plant", [os.mkfifo, Path.mkdir])
def test_what_is_no_file_is_no_snapshot(home: Home, plant: Any) -> None:
    """Nothing hangs, and what stands there costs only time."""
    plant(home.snapshot)

    assert home.load("[carrier]\nmax_turns = 2\n").max_turns == 2


def test_a_state_folder_is_never_made_for_a_snapshot(home: Home) -> None:
    """Reading a configuration leaves no trace on a machine without zdo."""
    home.state.rmdir()

    assert home.load("[carrier]\nmax_turns = 2\n").max_turns == 2
    assert not home.state.exists()


def test_a_folder_that_others_may_write_is_not_trusted(home: Home) -> None:
    """Neither read nor written: somebody else could have put the snapshot there."""
    home.load("[carrier]\nmax_turns = 2\n")
    spoil(home, max_turns=3)
    home.state.chmod(0o722)
    before = home.snapshot.read_bytes()

    assert home.load().max_turns == 2
    assert before == home.snapshot.read_bytes()


LOADER = """
import sys
root, file, state, version = sys.argv[1:]
sys.path.insert(0, root)
from registry.home import find_places
from registry.targets import load_config
env = {"HOME": "/home/u", "ZDO_CONFIG": file, "ZDO_STATE_DIR": state}
config = load_config(find_places(env), env, version=version)
costly = ("pydantic", "tomllib", "registry.schema", "dataclasses", "typing", "pathlib", "uuid")
print(config.station, *(name for name in costly if name in sys.modules))
"""


def test_a_snapshot_hit_loads_neither_pydantic_nor_toml(home: Home) -> None:
    """The path of a kiss pays for the configuration once, not every time."""
    home.load(WHOLE)

    def run(flags: str, version: str) -> str:
        argv = [sys.executable, flags, "-c", LOADER, str(ROOT), str(home.file), str(home.state)]
        return subprocess.run([*argv, version], capture_output=True, check=True, text=True).stdout

    assert run("-IS", "1") == "mini\n"
    assert "mini pydantic tomllib registry.schema" in run("-I", "2")


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b"\n\na = \xff", 3, "is not UTF-8 text"),
        (b"#" * ((1 << 20) + 1), None, f"is larger than {1 << 20} bytes"),
    ],
)
def test_a_file_that_is_no_text_is_refused(
    home: Home, content: bytes, line: int | None, why: str
) -> None:
    """With its path, and the line where there is one."""
    home.file.write_bytes(content)

    with pytest.raises(ConfigInvalid) as caught:
        home.load()

    found = caught.value
    assert (str(home.file), line, None, why) == (found.path, found.line, found.key, found.why)


@pytest.mark.parametrize(
    ("plant", "why"),
    [(os.mkfifo, "is not a plain file"), (Path.mkdir, "is not a plain file")],
)
def test_a_path_that_is_no_file_is_refused(home: Home, plant: Any, why: str) -> None:
    """A pipe in place of the configuration is refused at once."""
    plant(home.file)

    with pytest.raises(ConfigInvalid) as caught:
        home.load()

    assert f"{home.file}: {why}" == str(caught.value)


def test_a_file_that_cannot_be_opened_is_refused(home: Home) -> None:
    """Another fault than absence is not taken for absence."""
    home.file.symlink_to(home.file)

    with pytest.raises(ConfigInvalid, match="Too many levels of symbolic links"):
        home.load()


def test_a_refused_file_leaves_no_snapshot(home: Home) -> None:
    """Only checked values are kept."""
    with pytest.raises(ConfigInvalid):
        home.load("[carrier]\nmax_turns = 9\n")

    assert list(home.state.iterdir()) == []


def test_the_defaults_have_the_types_that_a_snapshot_needs() -> None:
    """A default of another type would make every snapshot unfit."""
    kinds = {"station": str, "max_turns": int, "timeout_s": float, "pass_env": list}

    assert kinds == {name: type(DEFAULTS[name]) for name in kinds}
