"""A change of the configuration is whole, meant, and nothing else."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from filelock import FileLock

from dispatch import configure
from dispatch.configure import drop_target, set_postbox, set_target
from dispatch.tool_errors import ChangeInvalid, TargetMissing, TargetNeeded, TargetTaken
from registry.errors import ConfigInvalid
from registry.home import find_places
from registry.targets import load_config

T = "388e03f6-0000-4000-8000-000000000001"
P = "61b7959a-122e-410e-945d-f4b9b4f73cb7"
HOSTILE = (
    'a."b',
    "zwei\u00e4",
    "__proto__",
    "a]b",
    "#",
    "x" * 128,
    "\U0001f600",
    "a = 1",
    "'",
    "\\",
)

WRITTEN = f"""\
# who is who
[station]   # this one
name = 'mini'      # a literal

[carrier]
pass_env = [
    "A",   # why A
]

[targets.fable]  # the first
session = "{T}"   # its id
carrier_session = "old"

[targets.old]
name = "o"
"""


@pytest.fixture
def places(tmp_path):
    """Where a home without any file keeps its configuration."""
    return find_places({"HOME": str(tmp_path)})


def write(places, text):
    """The file holds *text*."""
    path = Path(places.config_file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def text_of(places):
    """What the file holds."""
    return Path(places.config_file).read_bytes().decode()


def tree(places):
    """What the file means."""
    return tomllib.loads(text_of(places))


def test_a_file_that_is_not_there_is_made(places):
    """Private, in a private folder, and nothing but a lock beside it."""
    set_postbox(places, P)

    assert {"station": {"carrier_session": P}} == tree(places)
    path = Path(places.config_file)
    modes = [entry.stat().st_mode & 0o777 for entry in (path, path.parent)]
    assert [0o600, 0o700] == modes
    assert {"zdo.toml", "zdo.toml.lock"} == set(os.listdir(path.parent))


def test_what_is_added_stands_behind_what_was_there(places):
    """Byte for byte, whatever it looks like."""
    write(places, WRITTEN)

    set_target(places, "two", ("ticket", "TK-5"), P, must_exist=False)

    added = f'\n[targets.two]\nticket = "TK-5"\ncarrier_session = "{P}"\n'
    assert WRITTEN + added == text_of(places)


def test_a_value_changes_in_its_place(places):
    """Its line, and no other; the comment behind it stays."""
    write(places, WRITTEN)

    set_target(places, "fable", ("session", P), None, must_exist=True)

    assert WRITTEN.replace(T, P) == text_of(places)


def test_another_selector_takes_the_place_of_the_first(places):
    """There is exactly one; the postbox stays, or goes when that is asked for."""
    write(places, WRITTEN)

    set_target(places, "fable", ("name", "f"), None, must_exist=True)
    assert {"name": "f", "carrier_session": "old"} == tree(places)["targets"]["fable"]

    set_target(places, "fable", None, "", must_exist=True)
    assert {"name": "f"} == tree(places)["targets"]["fable"]


def test_a_target_is_removed_with_its_lines(places):
    """And nothing else is."""
    write(places, WRITTEN)

    drop_target(places, "fable")

    gone = WRITTEN[WRITTEN.index("[targets.fable]") : WRITTEN.index("[targets.old]")]
    assert WRITTEN.replace(gone, "") == text_of(places)


def test_a_postbox_goes_to_the_station_or_to_a_target(places):
    """Each has its own key; "" takes it away."""
    write(places, WRITTEN)

    set_postbox(places, P)
    set_postbox(places, T, "old")
    assert (P, T) == (
        tree(places)["station"]["carrier_session"],
        tree(places)["targets"]["old"]["carrier_session"],
    )

    set_postbox(places, "")
    set_postbox(places, "", "old")
    assert tomllib.loads(WRITTEN) == tree(places)


def test_what_stands_already_is_not_written_again(places):
    """The file is not touched, so whoever watches it sees no change."""
    write(places, f'[station]\ncarrier_session = "{P}"\n')
    before = os.stat(places.config_file)

    set_postbox(places, P)

    after = os.stat(places.config_file)
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    "text",
    [
        f'targets = {{fable = {{session = "{T}"}}}}  # in one line\n',
        f'[targets]\nfable = {{session = "{T}"}}  # a line\n\n[carrier]\nmax_turns = 2\n',
        f'targets.fable.session = "{T}"  # dotted\n',
        f'[targets]\nfable.session = "{T}"  # half dotted\n',
        f"[\"targets\".\"fable\"]\n\"session\" = '''{T}'''  # odd quotes\n",
        f'# no end of line\n[targets.fable]\nsession = "{T}"',
        f'[targets.fable]\r\nsession = "{T}"  # by Windows\r\n',
        f'[targets.a]\nname = "a"\n[station]\nname = "x"\n[targets.fable]\nsession = "{T}"\n',
    ],
)
def test_every_spelling_can_be_changed(places, text):
    """Or is refused; what was there before means what it meant."""
    write(places, text)
    before = tomllib.loads(text)

    set_target(places, "two", ("tsid", "w0"), None, must_exist=False)
    set_target(places, "fable", ("session", P), None, must_exist=True)

    after = tree(places)
    assert {"session": P} == after["targets"].pop("fable")
    assert {"tsid": "w0"} == after["targets"].pop("two")
    before["targets"].pop("fable")
    assert before == after
    assert text.count("#") == text_of(places).count("#")
    assert "\r" not in text or text_of(places).count("\n") == text_of(places).count("\r\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_odd_names_are_names(places, name):
    """Whatever may stand in a file as a name can be put there, found, and taken away."""
    write(places, WRITTEN)

    set_target(places, name, ("name", "x"), None, must_exist=False)
    assert "name" == load_config(places, {}).target(name).kind

    drop_target(places, name)
    assert tomllib.loads(WRITTEN) == tree(places)


@pytest.mark.parametrize("name", ["", "-x", "a\nb", "a\0b", "\x1b[2J", " a", "x" * 129])
def test_what_no_target_may_be_called_is_refused(places, name):
    """By the rules of the file itself; it is as it was."""
    write(places, WRITTEN)

    with pytest.raises(ChangeInvalid):
        set_target(places, name, ("name", "x"), None, must_exist=False)

    assert WRITTEN == text_of(places)


@pytest.mark.parametrize(
    ("selector", "postbox", "said"),
    [
        (("session", "nobody"), None, "is not a session UUID"),
        (("ticket", "5"), None, "TK-"),
        (("tsid", "tsid:w0"), None, "without tsid:"),
        (("name", "a\nb"), None, "control characters"),
        (("name", "x"), "nobody", "no UUID and no target"),
        (("name", "x"), "two", "names itself"),
    ],
)
def test_a_value_that_is_none_is_refused(places, selector, postbox, said):
    """With the sentence that a person would read who had written it."""
    write(places, WRITTEN)

    with pytest.raises(ChangeInvalid, match=said):
        set_target(places, "two", selector, postbox, must_exist=False)

    assert WRITTEN == text_of(places)


def test_names_are_taken_missing_or_needed(places):
    """Three refusals, each naming what stands in the way."""
    write(places, WRITTEN)

    with pytest.raises(TargetTaken, match="'fable' in"):
        set_target(places, "fable", ("name", "x"), None, must_exist=False)
    with pytest.raises(TargetMissing, match="'nobody' in"):
        set_target(places, "nobody", ("name", "x"), None, must_exist=True)
    with pytest.raises(TargetMissing):
        set_postbox(places, P, "nobody")
    with pytest.raises(TargetMissing):
        drop_target(places, "nobody")
    with pytest.raises(TargetNeeded, match="'old' is the postbox of 'fable'"):
        drop_target(places, "old")

    assert WRITTEN == text_of(places)


@pytest.mark.parametrize("text", ["[station\n", "[station]\nnosuch = 1\n", "\ufeff[station]\n"])
def test_a_broken_file_is_left_as_it_is(places, text):
    """Half-written by somebody, or of another program: it is for a person to mend."""
    write(places, text)

    with pytest.raises(ConfigInvalid, match=r"zdo\.toml:[12]"):
        set_postbox(places, P)

    assert text == text_of(places)


def test_what_cannot_be_changed_by_itself_is_refused(places, monkeypatch):
    """A way that changes more than it should is not taken."""
    write(places, WRITTEN)
    monkeypatch.setattr(configure, "_by_editing", lambda *_: WRITTEN.replace("mini", "maxi"))

    with pytest.raises(ConfigInvalid, match="change it by hand"):
        drop_target(places, "fable")

    assert WRITTEN == text_of(places)


def test_a_text_that_the_editor_cannot_read_is_no_crash():
    """Then there is one way less."""

    def change(_tree):
        raise KeyError("odd")

    assert configure._by_editing("a = 1\n", {}, {}, change) is None
    assert not configure._means("[", {})


def test_a_linked_file_is_changed_where_it_is_kept(places, tmp_path):
    """The link stays a link, the mode stays, and the lock lies where the file does."""
    kept = tmp_path / "dotfiles"
    kept.mkdir()
    (kept / "zdo.toml").write_text(WRITTEN, encoding="utf-8")
    (kept / "zdo.toml").chmod(0o644)
    Path(places.config_file).parent.mkdir(parents=True)
    Path(places.config_file).symlink_to(kept / "zdo.toml")

    set_postbox(places, P)

    assert Path(places.config_file).is_symlink()
    assert P in (kept / "zdo.toml").read_text(encoding="utf-8")
    assert 0o644 == (kept / "zdo.toml").stat().st_mode & 0o777
    assert {"zdo.toml", "zdo.toml.lock"} == set(os.listdir(kept))


def test_what_others_may_write_is_not_trusted(places):
    """Somebody else may have put a target there."""
    write(places, WRITTEN)
    os.chmod(places.config_file, 0o664)

    with pytest.raises(ConfigInvalid, match="chmod go-w"):
        set_postbox(places, P)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_what_belongs_to_others_is_theirs(places):
    """Nor is it taken over by being replaced."""
    write(places, WRITTEN)
    os.chown(places.config_file, 12345, -1)

    with pytest.raises(ConfigInvalid, match="belongs to user 12345"):
        set_postbox(places, P)


@pytest.mark.parametrize("kind", ["folder", "pipe", "large", "latin"])
def test_what_is_no_plain_text_is_refused(places, kind):
    """And nothing waits for it."""
    path = Path(places.config_file)
    path.parent.mkdir(parents=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path.write_bytes(b"# \xe9\n" if kind == "latin" else b"#" * (1 << 20) + b"\n")

    with pytest.raises(ConfigInvalid):
        set_postbox(places, P)


def test_a_file_in_use_is_waited_for_and_then_left(places, monkeypatch):
    """The sentence says so; nothing is written."""
    write(places, WRITTEN)
    monkeypatch.setattr(configure, "_PATIENCE_S", 0.05)

    with FileLock(places.config_file + ".lock"), pytest.raises(ConfigInvalid, match="another zdo"):
        set_postbox(places, P)

    assert WRITTEN == text_of(places)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    """The reason is the system's own."""
    (tmp_path / ".config").write_text("a file")
    places = find_places({"HOME": str(tmp_path)})

    with pytest.raises(ConfigInvalid, match="cannot be changed: "):
        set_postbox(places, P)
