"""What a scheduler says that it has: its own listing, asked once and never waited for.  An edge."""

from __future__ import annotations

from registry.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE_S = 5.0


class Heard(Record):
    """What was printed; None, and *why*, where there was no answer."""

    text: str | None
    why: str | None = None


def listing_of(
    argv: tuple[str, ...], env: Mapping[str, str], patience_s: float = _PATIENCE_S
) -> Heard:
    """What *argv* prints in *env*; it only lists, and is gone when this returns."""
    import subprocess

    try:
        ended = subprocess.run(  # noqa: S603 - a fixed argv
            argv, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=patience_s, check=False,
        )  # fmt: skip
    except OSError as error:
        return Heard(None, f"{argv[0]}: {error.strerror or error}")
    except subprocess.TimeoutExpired:
        return Heard(None, f"{argv[0]} took more than {patience_s:g} s")
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        return Heard(None, said[0] if said else f"{argv[0]} failed with exit {ended.returncode}")
    return Heard(ended.stdout.decode(errors="replace"))
