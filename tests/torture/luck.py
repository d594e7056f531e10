"""Chance that can be repeated: a rig says its seed, and another run draws the same lots."""

from __future__ import annotations

import random


def luck(seed: float) -> random.Random:
    """A source of lots for delays, victims and moments; nothing secret hangs on it."""
    return random.Random(seed)  # noqa: S311
