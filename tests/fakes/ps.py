"""A `ps` that prints what it is told, and notes how it was called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!/bin/sh
cd {folder} || exit 1
echo "$LC_ALL ${{TZ-none}} $*" >> calls
case $1 in
  -A) exec cat all ;;
  eww) exec cat environment ;;
  *) if mv arguments asked 2>/dev/null; then exec cat asked; else exec cat again; fi ;;
esac
"""


class FakePs:
    """A folder for PATH, in which `ps` shows one process after another."""

    def __init__(self, folder: Path):
        self._folder = folder
        self.env = {"PATH": f"{folder}:/usr/bin:/bin", "TZ": "Asia/Tokyo", "COLUMNS": "40"}
        self.script(_SCRIPT.format(folder=folder))
        for name in ("all", "environment", "arguments", "again", "calls"):
            self.write(name, b"")

    def add(self, pid: int, arguments: str, environment: str, *, age: str = "01:00:00") -> None:
        """Show *pid*; *environment* stands behind the arguments as `ps` prints it."""
        self.write("all", f"  {pid}     1  {age} Ss\n".encode())
        for name in ("arguments", "again"):
            self.write(name, f"  {pid}  {age} {arguments}\n".encode())
        self.write("environment", f"  {pid} {arguments}{environment}\n".encode())

    def script(self, text: str) -> None:
        """Be another program."""
        (self._folder / "ps").write_text(text)
        (self._folder / "ps").chmod(0o700)

    def write(self, name: str, content: bytes) -> None:
        """Print *content* too."""
        with (self._folder / name).open("ab") as file:
            file.write(content)

    def replace(self, name: str, content: bytes) -> None:
        """Print *content* and nothing else."""
        (self._folder / name).write_bytes(content)

    def calls(self) -> list[str]:
        """How it was called: locale, time zone, arguments."""
        return (self._folder / "calls").read_text().splitlines()
