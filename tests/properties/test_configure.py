"""Whatever the file looks like, one change is one change."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.configure import drop_target, set_postbox, set_target
from registry.home import find_places

T = "388e03f6-0000-4000-8000-000000000001"
NAMES = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=9
)
NAMES = NAMES.filter(lambda name: not name.startswith("-"))
REMARKS = st.sampled_from(["", "# why", "   # so", "\t"])


def quoted(text):
    """*text* as a TOML key or value."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def files(draw):
    """The text of a valid file with some targets in one of four spellings, and their names."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    spelling = draw(st.sampled_from(["tables", "inline", "dotted", "one line"]))
    rest = f"# a comment {draw(REMARKS)}\n[station]{draw(REMARKS)}\nname = 'x' {draw(REMARKS)}\n"
    tail = f"\n[carrier] {draw(REMARKS)}\nmax_turns = 2\n"
    if spelling == "tables":
        body = "".join(
            f"\n[targets.{quoted(name)}] {draw(REMARKS)}\nname = {quoted(name)}\n" for name in names
        )
        text = rest + body + tail
    elif spelling == "inline":
        body = "".join(
            f"{quoted(name)} = {{ name = {quoted(name)} }} {draw(REMARKS)}\n" for name in names
        )
        text = rest + "\n[targets]\n" + body + tail
    elif spelling == "dotted":
        body = "".join(f"{quoted(n)}.name = {quoted(n)} {draw(REMARKS)}\n" for n in names)
        text = rest + "[targets]\n" + body + tail
    else:
        entries = ", ".join(f"{quoted(n)} = {{name = {quoted(n)}}}" for n in names)
        text = f"targets = {{ {entries} }} {draw(REMARKS)}\n" + rest + tail
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))), names


def changed(text, change):
    """*text* after *change*, as bytes on disk."""
    with tempfile.TemporaryDirectory() as home:
        places = find_places({"HOME": home})
        path = Path(places.config_file)
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        change(places)
        return path.read_bytes().decode()


@settings(max_examples=150)
@given(files(), st.data())
def test_a_change_changes_one_thing(file, data):
    """All the rest means what it meant, and every line that has nothing to do with it stands."""
    text, names = file
    name = data.draw(st.sampled_from(names))
    meant = tomllib.loads(text)
    what = data.draw(st.sampled_from(["add", "edit", "drop", "station", "postbox"]))
    if what == "add":
        new = name + "+"
        meant["targets"].setdefault(new, {"ticket": "TK-1"})
        if new in names:
            return
        after = changed(
            text, lambda p: set_target(p, new, ("ticket", "TK-1"), None, must_exist=False)
        )
    elif what == "edit":
        meant["targets"][name] = {"session": T}
        after = changed(text, lambda p: set_target(p, name, ("session", T), None, must_exist=True))
    elif what == "drop":
        del meant["targets"][name]
        after = changed(text, lambda p: drop_target(p, name))
    elif what == "station":
        meant["station"]["carrier_session"] = T
        after = changed(text, lambda p: set_postbox(p, T))
    else:
        meant["targets"][name]["carrier_session"] = T
        after = changed(text, lambda p: set_postbox(p, T, name))

    found = tomllib.loads(after)
    if not meant["targets"]:
        found.setdefault("targets", {})
    assert meant == found
    gone = [line for line in text.splitlines() if line.strip() and line not in after.splitlines()]
    assert all(quoted(name) in line or "targets" in line for line in gone), gone


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_lines_end_as_they_did(ends):
    """Also those that are new."""
    text = f'[targets.a]{ends}name = "a"{ends}'

    after = changed(text, lambda p: set_postbox(p, T))

    assert after.count("\n") == after.count(ends)
