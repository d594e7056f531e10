"""A unit in its place: whole files of the user's own, and what a scheduler says that it has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dispatch.errors import UnitImpossible
from dispatch.units import File, Unit
from dispatch.units.listing import Heard, listing_of
from dispatch.units.place import ABSENT, CURRENT, OTHER, install, look, uninstall
from registry.record import replace


@pytest.fixture
def unit(tmp_path):
    """Two files and a link in a folder that is not there yet."""
    folder = f"{tmp_path}/systemd/user"
    return Unit(
        kind="systemd",
        text="",
        files=(
            File(f"{folder}/a.service", b"# ours\none\n"),
            File(f"{folder}/a.timer", b"# ours\ntwo\n"),
        ),
        hint=b"# ours",
        links=(f"{folder}/timers.target.wants/a.timer",),
        listing=(),
        mark="a.timer",
        begin="",
        end="",
    )


def states(unit):
    """How each file of *unit* stands."""
    return [state for _, state in look(unit)]


def test_what_is_installed_is_there_whole(unit):
    """For nobody else to write; nothing half done is left beside it."""
    assert [ABSENT, ABSENT] == states(unit)
    install(unit)

    folder = Path(unit.files[0].path).parent
    assert ["a.service", "a.timer"] == sorted(os.listdir(folder))
    assert [(file.path, CURRENT) for file in unit.files] == list(look(unit))
    for file in unit.files:
        assert file.content == Path(file.path).read_bytes()
        assert os.stat(file.path).st_mode & 0o777 == 0o600


def test_what_differs_is_never_written_over(unit):
    """It is named before anything is written; taken away first, the new ones fit."""
    last = unit.files[1]
    install(replace(unit, files=(replace(last, content=b"# ours\nedited\n"),)))

    with pytest.raises(UnitImpossible, match=r"a\.timer is there and differs .* --uninstall first"):
        install(unit)

    assert [ABSENT, OTHER] == states(unit)
    uninstall(unit)
    install(unit)
    install(unit)
    assert [CURRENT, CURRENT] == states(unit)


@pytest.mark.parametrize("content", [b"by hand\n", b"# ours of another folder\n", b""])
def test_what_is_not_ours_is_never_taken_away(unit, content):
    """Not zdo's, or another state folder's: it is named, and nothing is removed."""
    install(unit)
    Path(unit.files[0].path).write_bytes(content)

    with pytest.raises(UnitImpossible, match=r"a\.service is none that zdo unit systemd made"):
        uninstall(unit)

    assert [OTHER, CURRENT] == states(unit)


def test_a_link_that_leads_elsewhere_is_left(unit):
    """Another timer of that name was enabled."""
    (link,) = unit.links
    os.makedirs(os.path.dirname(link))
    os.symlink("/nowhere/a.timer", link)

    uninstall(unit)

    assert os.path.islink(link)


def test_what_is_taken_away_is_gone(unit):
    """With the link that the scheduler made; what is not there any more is no error."""
    install(unit)
    (link,) = unit.links
    os.mkdir(os.path.dirname(link))
    os.symlink("../a.timer", link)
    os.unlink(unit.files[0].path)

    uninstall(unit)
    uninstall(unit)

    folder = Path(link).parent.parent
    assert ["timers.target.wants"] == os.listdir(folder)
    assert [] == os.listdir(folder / "timers.target.wants")


def test_a_timer_never_stands_without_its_service(unit):
    """It is written last and removed first: whatever stops the work, it fails at no minute."""
    heard, listening = [], True

    def hear(event, args):
        if listening and event in ("os.rename", "os.remove"):
            heard.append((event, str(args[0]).removesuffix(".new")))

    sys.addaudithook(hear)
    install(unit)
    uninstall(unit)
    listening = False

    service, timer = (file.path for file in unit.files)
    assert [
        ("os.rename", service), ("os.rename", timer), ("os.remove", timer), ("os.remove", service),
    ] == [each for each in heard if each[1] in (service, timer)]  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/null", path)],
    ids=["dir", "fifo", "mask"],
)
def test_what_is_no_file_is_not_replaced(unit, make):
    """A unit that is masked, a pipe, a folder: somebody put it there."""
    path = unit.files[0].path
    os.makedirs(os.path.dirname(path))
    make(path)

    with pytest.raises(UnitImpossible, match="is not a plain file; move it away"):
        install(unit)

    assert [OTHER, ABSENT] == states(unit)
    assert not os.path.isfile(path)


def test_a_link_to_a_file_is_not_replaced(unit, tmp_path):
    """The file may be kept elsewhere, with others like it."""
    path = unit.files[0].path
    os.makedirs(os.path.dirname(path))
    (tmp_path / "kept").write_bytes(b"# ours\none\n")
    os.symlink(tmp_path / "kept", path)

    assert [CURRENT, ABSENT] == states(unit)
    with pytest.raises(UnitImpossible, match="is not a plain file"):
        install(unit)


def test_a_place_that_cannot_be_written_is_named(unit, tmp_path):
    """As a clause for a sentence."""
    (tmp_path / "systemd").touch()

    with pytest.raises(UnitImpossible, match=r"a\.service: Not a directory"):
        install(unit)
    assert [ABSENT, ABSENT] == states(unit)
    uninstall(unit)


def program(folder, script):
    """A program named `list` in *folder*; the environment that finds it."""
    path = folder / "list"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    path.chmod(0o700)
    return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": "/h"}


def test_a_listing_is_what_was_printed(tmp_path):
    """In the caller's environment, with nothing to read."""
    env = program(tmp_path, 'cat; printf "%s %s %s\\377" "$HOME" "$1" "$2"')

    assert Heard("/h --user a b\ufffd") == listing_of(("list", "--user", "a b"), env)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'no crontab for u' >&2; echo and more >&2; echo out; exit 1", "no crontab for u"),
        ("exit 3", "list failed with exit 3"),
        ("exec sleep 30", "list took more than 0.2 s"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_not_known(tmp_path, script, why):
    """Why is said; nobody waits for it."""
    env = program(tmp_path, script)

    assert Heard(None, why) == listing_of(("list",), env, 0.2 if "sleep" in script else 5.0)


def test_a_scheduler_that_is_not_there_is_not_known(tmp_path):
    """As on the other systems."""
    env = {"PATH": str(tmp_path)}

    assert Heard(None, "list: No such file or directory") == listing_of(("list",), env)
