"""A fault that must not go unnoticed: one wrong line, and the tests that watch it."""

from __future__ import annotations

from registry.record import Record


class Fault(Record):
    """In *file* the text *right*, which stands there once, becomes *wrong*."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]
    needs: str = ""  # the program without which its tests are skipped
