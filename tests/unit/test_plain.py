"""The plain parser of `zdo kiss`: right or silent."""

from __future__ import annotations

import pytest

from dispatch.cli.options import KissArgs
from dispatch.cli.plain import parse_kiss


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kiss t x", KissArgs("t", "x")),
        ("kiss t -", KissArgs("t", "-")),
        ("kiss t -- --help", KissArgs("t", "--help")),
        ("kiss -- t -x", KissArgs("t", "-x")),
        ("kiss --json t x", KissArgs("t", "x", json=True)),
        ("kiss t x --json --if-idle", KissArgs("t", "x", json=True, if_idle=True)),
        ("kiss t --file p", KissArgs("t", file="p")),
        ("kiss t x --queue", KissArgs("t", "x", queue=True)),
        ("kiss --or-queue t x", KissArgs("t", "x", or_queue=True)),
        ("kiss t x --key=a=b", KissArgs("t", "x", key="a=b")),
        ("kiss t x --wait 1.5", KissArgs("t", "x", wait=1.5)),
        ("kiss t x --lock-timeout=0", KissArgs("t", "x", lock_timeout=0.0)),
        ("kiss t x --key a --key b", KissArgs("t", "x", key="b")),
        ("kiss --reply d x --sign", KissArgs("x", reply="d", sign=True)),
        ("kiss", KissArgs()),
    ],
)
def test_a_plain_kiss_is_read(words, expected):
    """What it reads is what was typed."""
    assert expected == parse_kiss(words.split())


@pytest.mark.parametrize(
    "words",
    [
        "",
        "show x",
        "kiss t x y",
        "kiss --help",
        "kiss t x -h",
        "kiss t x --jso",
        "kiss t x --json=1",
        "kiss t x --queue=1",
        "kiss t x --or",
        "kiss t x --key",
        "kiss t x --key --json",
        "kiss t x --wait soon",
        "kiss t x --wait 1e3",
        "kiss t x --wait -1",
        "kiss t x --wait=1.2.3",
        "kiss t x --wait ²",
        "--json kiss t x",
    ],
)
def test_anything_else_is_for_typer(words):
    """It never guesses: help, complaints and odd spellings are worded in one place."""
    assert parse_kiss(words.split()) is None
