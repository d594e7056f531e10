"""What a look finds: well, ill, or not known."""

from __future__ import annotations

from registry.record import Record


class Finding(Record):
    """What a look says; *detail* is a clause for a person."""

    ok: bool | None
    detail: str
    fix: str | None = None  # a command, or the setting to change; None: what is usual for the look


def well(detail: str) -> Finding:
    """It is as it has to be."""
    return Finding(ok=True, detail=detail)


def ill(detail: str, fix: str | None = None) -> Finding:
    """Somebody has to mend it, by *fix* where that is another one than usual."""
    return Finding(ok=False, detail=detail, fix=fix)


def unknown(detail: str) -> Finding:
    """Nothing is there to be looked at, or it could not be."""
    return Finding(ok=None, detail=detail)
