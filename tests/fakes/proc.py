"""A /proc of files, and a clock that stands: what a kernel would say, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from registry.clock import Clock

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_796_048_000.0


class Fixed(Clock):
    """It is NOW, and the machine was started 5000 s ago."""

    def now(self) -> float:
        """Seconds since 1970."""
        return NOW

    def monotonic(self) -> float:
        """No time passes, so no deadline comes."""
        return 0.0

    def since_boot(self) -> float:
        """Seconds since the machine was started."""
        return 5000.0


class FakeProc:
    """A folder in the place of /proc."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.path = str(folder)
        self._write("self", "stat", b"")

    def add(
        self, pid: int, *, parent: int = 1, ticks: int = 400, state: str = "S",
        environ: bytes = b"", cmdline: bytes = b"claude\0",
    ) -> None:  # fmt: skip
        """Let *pid* run, or change what is said of it."""
        between = b" 0" * 17
        stat = f"{pid} (a) b) {state} {parent}".encode() + between + f" {ticks} 0 0".encode()
        self._write(str(pid), "stat", stat)
        self._write(str(pid), "environ", environ)
        self._write(str(pid), "cmdline", cmdline)

    def file(self, pid: int, name: str) -> Path:
        """The file *name* of *pid*."""
        return self._folder / str(pid) / name

    def _write(self, folder: str, name: str, content: bytes) -> None:
        (self._folder / folder).mkdir(exist_ok=True)
        (self._folder / folder / name).write_bytes(content)
