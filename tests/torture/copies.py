"""A tree of our packages with one thing wrong in it: what a rig must be able to notice."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from registry.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("registry", "carrier", "dispatch")


class Break(Record):
    """In *file* the text *right*, which stands there once, becomes *wrong*."""

    file: str
    right: str
    wrong: str


@contextlib.contextmanager
def broken(*breaks: Break) -> Iterator[str]:
    """The path of a copy with *breaks* in it; one that no longer fits is an error."""
    with tempfile.TemporaryDirectory(prefix="zdo-broken-", dir="/tmp") as folder:
        for name in PACKAGES:
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, Path(folder, name), ignore=skipped)
        for each in breaks:
            path = Path(folder, each.file)
            text = path.read_text(encoding="utf-8")
            if text.count(each.right) != 1:
                raise AssertionError(f"{each.right!r} does not stand once in {each.file}")
            path.write_text(text.replace(each.right, each.wrong), encoding="utf-8")
        yield folder
