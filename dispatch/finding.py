"""What a look finds: well, ill, or not known."""

from __future__ import annotations

from registry.record import Record


class Finding(Record):
    """What a look says; *detail* is a clause for a person."""

    ok: bool | None
    detail: str


def well(detail: str) -> Finding:
    """It is as it has to be."""
    return Finding(ok=True, detail=detail)


def ill(detail: str) -> Finding:
    """Somebody has to mend it."""
    return Finding(ok=False, detail=detail)


def unknown(detail: str) -> Finding:
    """Nothing is there to be looked at, or it could not be."""
    return Finding(ok=None, detail=detail)
