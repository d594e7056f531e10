"""Whatever a process was started with: its own pane or none, and never an exception."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from registry import surroundings_ps
from registry.surroundings import see
from tests.fakes.proc import FakeProc, Fixed

NAME = "TERM_SESSION_ID"
# The pieces of which a trap can be made.
pieces = st.sampled_from([NAME, "=", " ", "trap", "A", "\n", "-", "TK-1", "\\", "\t"])
texts = st.lists(pieces, max_size=8).map("".join)
panes = st.none() | st.sampled_from(["w0t1p0:6E", "a", "trap2"])
names = st.sampled_from(["A", "HOME", "X" + NAME, NAME + "_", "npm_config_//x:_y"])
others = st.dictionaries(names, texts, max_size=5)


def variables(before, pane, after):
    """An environment block as a list, the pane's id in its midst."""
    own = [] if pane is None else [f"{NAME}={pane}"]
    named = [[f"{name}={value}" for name, value in each.items()] for each in (before, after)]
    return [*named[0], *own, *named[1]]


def by_proc(proc):
    """What is seen of process 10 in *proc*."""
    return see({10: ""}, linux=True, proc=proc.path, env={}, clock=Fixed())[10]


@settings(max_examples=200)
@given(before=others, pane=panes, after=others, argv=st.lists(texts, max_size=4))
def test_by_proc_the_pane_is_the_one_that_was_given(before, pane, after, argv):
    """No argument and no other variable changes it."""
    with tempfile.TemporaryDirectory() as folder:
        proc = FakeProc(Path(folder))
        block = "".join(each + "\0" for each in variables(before, pane, after))
        cmdline = "".join(each + "\0" for each in ["claude", *argv])
        proc.add(10, environ=block.encode(), cmdline=cmdline.encode())

        seen = by_proc(proc)

    assert (pane, ()) == (seen.tsid, seen.blind)


@settings(max_examples=200)
@given(files=st.tuples(*[st.binary(max_size=60)] * 3))
def test_any_bytes_under_proc_are_an_answer(files):
    """Whatever the three files of a process hold."""
    with tempfile.TemporaryDirectory() as folder:
        proc = FakeProc(Path(folder))
        proc.add(10)
        for name, content in zip(("environ", "cmdline", "stat"), files, strict=True):
            if name != "stat" or content.startswith(b"1"):
                proc.file(10, name).write_bytes(content)

        seen = by_proc(proc)

    assert seen.tsid is None or os.fsencode(NAME + "=" + seen.tsid) in files[0]


@settings(max_examples=1000)
@given(before=others, pane=panes, after=others, argv=st.lists(texts, max_size=4))
def test_by_ps_the_pane_is_never_an_arguments(before, pane, after, argv):
    """It is told only if it was given, or if it stands in another variable's value."""
    arguments = " ".join(["claude", *argv])
    line = " ".join([arguments, *variables(before, pane, after)])
    values = " ".join(variables(before, None, after))

    tsid, fault = surroundings_ps._pane_in(line.encode(), arguments.encode())

    assert tsid in {None, pane} or f" {NAME}={tsid}" in values
    assert tsid is None or fault is None
    if f" {NAME}=" not in values:
        # Nothing else looks like it: what follows decides whether it is told.
        assert tsid == pane or fault is not None


@settings(max_examples=500)
@given(line=st.binary(max_size=200), arguments=st.binary(max_size=20))
def test_any_line_of_ps_is_an_answer(line, arguments):
    """Bytes, blanks, broken numbers: read or passed over."""
    surroundings_ps._pane_in(arguments + line, arguments)
    surroundings_ps._seconds(line)
    lines = surroundings_ps._lines(line + b"\n" + arguments, 3)

    assert all(len(words) == 2 for words in lines.values())
