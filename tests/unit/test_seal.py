"""The seal over what never changes in a kept line."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
import sys

import pytest

from dispatch.seal import SEAL_BYTES, digest_of, seal_of
from tests.fakes.household import ROOT

LINE = {
    "key": "a0000000-0000-4000-8000-000000000001",
    "digest": digest_of(b"tests are green"),
    "origin": "",
    "station": "",
    "target": "fable",
    "sender": "anonymous",
    "given_key": "nightly",
    "idle": 0,
}


def test_a_seal_is_sixteen_bytes_and_the_same_for_ever():
    """Rows are older than the program that reads them."""
    assert "f53b9a1812a08b75f9c4721638e3c740" == seal_of(**LINE).hex()
    assert (SEAL_BYTES, 16) == (len(seal_of(**LINE)), SEAL_BYTES)


@pytest.mark.parametrize("name", LINE)
def test_every_column_has_its_part_in_it(name):
    """One bit of any of them is another seal."""
    value = LINE[name]
    other = {int: 1, str: f"{value}x", bytes: bytes(32)}[type(value)]

    assert seal_of(**LINE) != seal_of(**LINE | {name: other})


def test_two_columns_never_run_together():
    """Bytes that move from one column into the next are another line."""
    texts = ("origin", "station", "target", "sender", "given_key")
    for one, two in itertools.pairwise(texts):
        left, right = LINE | {one: "ab", two: "c"}, LINE | {one: "a", two: "bc"}
        assert seal_of(**left) != seal_of(**right)


def test_a_flag_is_what_the_column_gives_back():
    """True goes in, 1 comes out."""
    assert seal_of(**LINE | {"idle": True}) == seal_of(**LINE | {"idle": 1})


@pytest.mark.parametrize("value", [None, 1.5, -7, b"fable", "None", "\ud800"])
def test_whatever_a_damaged_row_holds_has_a_seal(value):
    """And it is none that fits."""
    assert seal_of(**LINE | {"sender": value}) != seal_of(**LINE)


def test_a_digest_is_sha256_and_none_of_what_is_no_line():
    """As every receipt and record shows it."""
    assert hashlib.sha256(b"x").digest() == digest_of(b"x")
    assert [b"", b"", b""] == [digest_of(None), digest_of("x"), digest_of(1)]


def test_openssl_is_loaded_only_for_a_seal():
    """Who lists sessions does not pay for it."""
    code = "import sys, dispatch.seal; sys.exit('hashlib' in sys.modules)"
    # -S: what site and its .pth files load is not ours.
    argv = [sys.executable, "-S", "-c", code]

    assert 0 == subprocess.run(argv, cwd=ROOT, check=False).returncode
