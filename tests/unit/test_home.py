"""Where things are: environment in, absolute paths out, and a state folder that is ours."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from registry.errors import StateUnsafe
from registry.home import Places, expand, find_places, open_state

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


def places(state: Path) -> Places:
    """Places with the state folder *state*."""
    return find_places({"HOME": "/home/u", "ZDO_STATE_DIR": str(state)})


def mode(path: Path) -> int:
    """The permissions of *path*."""
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("env", "config", "state"),
    [
        ({}, "/home/u/.config/zdo/zdo.toml", "/home/u/.local/state/zdo"),
        (
            {"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"},
            "/c/zdo/zdo.toml",
            "/s/zdo",
        ),
        (
            {"XDG_CONFIG_HOME": "/c", "ZDO_CONFIG": "~/z.toml", "ZDO_STATE_DIR": "~"},
            "/home/u/z.toml",
            "/home/u",
        ),
        ({"HOME": "/"}, "/.config/zdo/zdo.toml", "/.local/state/zdo"),
        (
            {"ZDO_CONFIG": "", "XDG_CONFIG_HOME": "", "ZDO_STATE_DIR": "/a/../b/"},
            "/home/u/.config/zdo/zdo.toml",
            "/b",
        ),
    ],
)
def test_environment_decides_in_its_order(env: dict[str, str], config: str, state: str) -> None:
    """Zdo's own variable, then XDG's, then the home; empty is unset."""
    found = find_places({"HOME": "/home/u", **env})

    assert (config, state) == (found.config_file, found.state)
    assert found.home == env.get("HOME", "/home/u")


def test_the_parts_lie_in_the_state_folder() -> None:
    """One folder is the whole state."""
    found = places(Path("/s"))

    parts = (found.database, found.attempts, found.locks, found.postbox)
    assert parts == ("/s/zdo.db", "/s/attempts", "/s/locks", "/s/postbox")
    more = (found.ballast, found.corrupt, found.relay_lock)
    assert more == ("/s/ballast", "/s/corrupt", "/s/relay.lock")


@pytest.mark.parametrize("env", [{}, {"HOME": ""}])
def test_without_home_the_user_database_says_it(env: dict[str, str]) -> None:
    """A bare cron environment still has a home."""
    assert pwd.getpwuid(os.geteuid()).pw_dir == find_places(env).home


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without an entry")
def test_a_user_without_an_entry_has_the_root() -> None:
    """As in many containers."""
    program = (
        "import os\n"
        "from registry.home import find_places\n"
        "os.seteuid(54321)\n"
        "home = find_places({}).home\n"
        "os.seteuid(0)\n"
        "print(home)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True
    )

    assert done.stdout == b"/\n"


@pytest.mark.parametrize(
    ("path", "absolute"),
    [("~", "/h"), ("~/a", "/h/a"), ("/a/./b", "/a/b"), ("~u", "{cwd}/~u"), ("a/..", "{cwd}")],
)
def test_a_path_becomes_absolute(path: str, absolute: str) -> None:
    """Only a leading tilde of our own is a home."""
    assert absolute.format(cwd=os.getcwd()) == expand(path, "/h")


def test_a_caller_whose_folder_is_gone_has_none(tmp_path: Path) -> None:
    """A relative path then starts at the root, and nothing crashes."""
    gone = tmp_path / "gone"
    gone.mkdir()
    program = (
        f"import os, sys; sys.path[:0] = [{str(ROOT)!r}]\n"
        "from registry.home import *\n"
        "os.rmdir(os.getcwd())\n"
        "found = find_places({'HOME': '/h', 'ZDO_CONFIG': 'z.toml'})\n"
        "print(found.config_file)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=gone, capture_output=True, check=True
    )

    assert done.stdout == b"/z.toml\n"


def test_a_state_folder_is_made_private_with_its_parts(tmp_path: Path) -> None:
    """Whatever the umask; a second call changes nothing."""
    state = tmp_path / "deep" / "state"
    before = os.umask(0)
    try:
        open_state(places(state))
        open_state(places(state))
    finally:
        os.umask(before)

    assert [0o700] * 4 == [mode(state / part) for part in ("", "attempts", "locks", "postbox")]


def test_our_own_open_folder_is_tightened(tmp_path: Path) -> None:
    """It holds nothing but ours, so nobody else counts on it."""
    state = tmp_path / "state"
    open_state(places(state))
    for name in ("zdo.db", "zdo.db-journal", "zdo.db.new", "config.json", "ballast", "relay.lock"):
        (state / name).touch()
    (state / "corrupt").mkdir()
    state.chmod(0o755)

    open_state(places(state))

    assert mode(state) == 0o700


def test_a_shared_folder_is_not_tightened(tmp_path: Path) -> None:
    """Somebody pointed ZDO_STATE_DIR at a folder that others use."""
    state = tmp_path / "shared"
    state.mkdir()
    state.chmod(0o755)
    (state / "paper.txt").touch()

    with pytest.raises(StateUnsafe) as caught:
        open_state(places(state))

    assert caught.value.why == "is open to others and holds 'paper.txt'; chmod 700 it"
    assert mode(state) == 0o755


def linked(path: Path) -> None:
    """A link to a folder."""
    path.with_name("real").mkdir(exist_ok=True)
    path.symlink_to(path.with_name("real"))


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (linked, "is a symlink; point ZDO_STATE_DIR at the folder itself"),
        (Path.touch, "is not a folder"),
    ],
)
@pytest.mark.parametrize("part", ["attempts", "locks", "postbox"])
def test_a_part_that_is_no_folder_of_its_own_is_refused(
    tmp_path: Path, part: str, plant: Callable[[Path], None], why: str
) -> None:
    """A planted link would lead carriers and leases elsewhere."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    plant(state / part)

    with pytest.raises(StateUnsafe) as caught:
        open_state(places(state))

    assert (str(state / part), why) == (caught.value.path, caught.value.why)


def test_a_state_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """The folder itself has to be named."""
    linked(tmp_path / "state")

    with pytest.raises(StateUnsafe, match="is a symlink"):
        open_state(places(tmp_path / "state"))


def test_a_state_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """With the system's own words."""
    (tmp_path / "file").touch()

    with pytest.raises(StateUnsafe, match="Not a directory"):
        open_state(places(tmp_path / "file" / "state"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_foreign_state_folder_is_refused(tmp_path: Path) -> None:
    """Its owner could read every line."""
    state = tmp_path / "state"
    state.mkdir(0o700)
    os.chown(state, 12345, -1)

    with pytest.raises(StateUnsafe, match="belongs to user 12345, not to you"):
        open_state(places(state))
