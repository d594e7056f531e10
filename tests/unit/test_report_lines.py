"""A report in lines: on a terminal of any width, and in a pipe."""

from __future__ import annotations

import contextlib
import os
import pty
import termios

import pytest

from dispatch.cli.report_lines import MOST, Paper, bar, lines, paper_of
from dispatch.cli.reporting import width_of_stdout
from dispatch.report.page import Period
from tests.fakes.courses import an_entry, counted, delivered, held
from tests.fakes.household import BEGAN, key_of
from tests.unit.test_report_page import HOSTILE, everything

WEEK = Period(BEGAN - 604_800, BEGAN)


PIPE = Paper()


def said(*entries, paper=PIPE, period=WEEK):
    """The lines of a report on *entries*."""
    return lines(counted(*entries), period, paper)


def test_a_pipe_gets_no_bars():
    """Names and numbers alone."""
    assert Paper() == paper_of(None, "utf-8")
    found = said(*everything())

    assert "9 deliveries" == found[0]
    assert "surfaced  1  11.1 %" in found
    assert not any("█" in each for each in found)


@pytest.mark.parametrize("width", [1, 40, 57, 80, 160, 400])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "no-such"])
def test_a_terminal_of_any_width(width, encoding):
    """Bars end before the margin; only commands and ids, which are there to be copied, may not."""
    found = said(*everything(), *delivered(10, target="x" * 300), paper=paper_of(width, encoding))

    assert encoding == "utf-8" or "".join(found).replace("…", "").isascii()
    assert any(("█" if encoding == "utf-8" else "#") in each for each in found)
    for each in found:
        assert len(each) <= max(width, 60) or "zdo " in each or "-4000-8000-" in each, each


def test_bars_are_in_proportion():
    """In eighths of a column; what is there is seen."""
    blocks = " ▏▎▍▌▋▊▉█"
    assert ["", "▏", "████▌", "█████████"] == [bar(part, 9, blocks) for part in (0, 0.0001, 0.5, 1)]
    assert ["", "#", "#####"] == [bar(part, 10, " #") for part in (0, 0.01, 0.5)]


def test_of_nothing_it_says_how_to_look_further():
    """Two lines, and a command."""
    found = said(period=Period(None, BEGAN, "api"))

    assert "0 deliveries to api" == found[0]
    assert "look further back: zdo report --since all" == found[-1]


def test_each_doubt_has_its_command():
    """And a held line says whether it still is."""
    found = said(*everything())

    assert f"    do not repeat; look: zdo verify {key_of(5)}" in found
    assert any("still held" in each and key_of(4) in each for each in found)
    assert any("expired after 1.6 min" in each for each in found)
    assert "HELD 2: 1 dead, 1 held" in found


def test_what_did_not_happen_has_no_lines():
    """But that nothing surfaced is said."""
    found = "\n".join(said(an_entry("refused", "usage", reason="x")))

    assert "nothing surfaced" in found
    assert not any(word in found for word in ("DOUBT", "HELD", "NOT DELIVERED", "RETRIES"))


def test_retries_and_later_looks():
    """Counted where there were some."""
    found = said(
        an_entry("queued", "queued"), an_entry("claimed", None, 1), an_entry("claimed", None, 2),
        an_entry("verified", "surfaced", 5, proof="surfaced"),
        an_entry("queued", "queued", number=2), an_entry("dropped", "interrupted", 3, number=2),
    )  # fmt: skip

    assert "RETRIES 1 of 1 lines, at most 2 tries" in found
    assert "only a later look found 1" in found
    assert "1 interrupted, 1 by hand" in found


def test_long_lists_are_counted_beyond_some():
    """The last days, the newest lines, the greatest targets."""
    many = [each for n in range(30) for each in held(n, n * 86_400.0)]
    more = [each for n in range(30, 60) for each in delivered(n, target=f"t{n}")]
    found = said(*many, *more)

    assert "DAY (UTC, the last 14 of 30)" in found
    assert f"and {30 - MOST} more: zdo report --json" in found
    assert f"and {31 - 3 * MOST} more: zdo report --json" in found


def test_nothing_acts_on_a_terminal():
    """Control characters from outside are written out, in every line."""
    asked = Period(None, BEGAN, HOSTILE)
    odd = an_entry("judged", HOSTILE, number=20)  # of a damaged database, or a later zdo
    assert all(each.isprintable() for each in said(*everything(HOSTILE), odd, period=asked))


@pytest.mark.parametrize(("columns", "width"), [(57, 57), (0, 80)])
def test_a_terminal_is_asked_for_its_width(columns, width):
    """One without a size is of the usual one; a pipe has none."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with os.fdopen(theirs, "w") as terminal, contextlib.redirect_stdout(terminal):
        assert width == width_of_stdout()
    os.close(ours)
    with open(os.devnull, "w", encoding="utf-8") as pipe, contextlib.redirect_stdout(pipe):
        assert width_of_stdout() is None
