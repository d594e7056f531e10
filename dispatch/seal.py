"""A seal is a checksum over what may never change again in a kept line, so that damage shows.

SQLite finds a broken page, not a flipped letter.  A line whose seal or digest does not
fit is not delivered.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SEAL_BYTES = 16


def seal_of(  # noqa: PLR0913 - the columns of a line that never change
    *,
    key: str,
    digest: bytes,
    origin: str,
    station: str,
    target: str,
    sender: str,
    given_key: str,
    idle: int,
) -> bytes:
    """The 16 bytes that only a line with exactly these columns has; its bytes are in *digest*."""
    return _sealed((key, digest, origin, station, target, sender, given_key, idle))


def digest_of(body: object) -> bytes:
    """The digest that the line *body* has in its row; of what is no line it is empty."""
    # OpenSSL comes with it: who only asks what exists need not wait for that.
    import hashlib

    return hashlib.sha256(body).digest() if isinstance(body, bytes) else b""


def _sealed(parts: Iterable[object]) -> bytes:
    # Each with its length in front: no two rows run together into the same bytes.
    raw = [_raw(part) for part in parts]
    return digest_of(b"".join(len(part).to_bytes(8, "big") + part for part in raw))[:SEAL_BYTES]


def _raw(part: object) -> bytes:
    """The bytes of *part*, whatever a damaged row holds in its place."""
    if isinstance(part, str):
        return part.encode(errors="surrogatepass")
    if isinstance(part, bytes):
        return part
    # A flag comes as bool and is read back as a number.
    return repr(int(part) if isinstance(part, int) else part).encode()
