"""`make mutation`: each fault put into a copy of the tree must turn at least one test red."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutation.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
MOST_AGAIN = 3
COPIED = (
    "registry", "carrier", "dispatch", "tests", "docs", "pyproject.toml", "USAGE.md", "README.md",
)  # fmt: skip
NOT_COPIED = shutil.ignore_patterns("__pycache__", "contract")


def inject(fault: Fault, tree: Path) -> None:
    """Put *fault* into the copy at *tree*; a fault that no longer fits is an error."""
    path = tree / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise SystemExit(f"{fault.name}: {fault.right!r} does not stand once in {fault.file}")
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")


def red_tests(tree: Path, tests: tuple[str, ...]) -> list[str]:
    """The names of the tests that fail in the copy."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", *tests]
    ended = subprocess.run(argv, cwd=tree, capture_output=True, text=True, check=False)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run in the copy:\n{ended.stdout}{ended.stderr}")
    return re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", ended.stdout, re.MULTILINE)


def noticed(fault: Fault) -> bool:
    """Whether a test turns red in a copy of the tree with *fault* in it; says which."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=NOT_COPIED)
            else:
                shutil.copy(source, tree / name)
        inject(fault, tree)
        red = red_tests(tree, fault.tests)
    shown = ", ".join(sorted(set(red))[:4]) + (" …" if len(set(red)) > 4 else "")
    print(
        f"{fault.name:34} {len(red):3} red  {time.monotonic() - began:5.1f} s  {shown}", flush=True
    )
    return bool(red)


def main() -> int:
    """Run every fault, or those whose names are given; 0 when each was noticed."""
    asked = [fault for fault in FAULTS if not sys.argv[1:] or fault.name in sys.argv[1:]]
    chosen = [fault for fault in asked if not fault.needs or shutil.which(fault.needs)]
    for fault in asked:
        if fault not in chosen:
            print(f"{fault.name:34} not tried: there is no {fault.needs} here")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(noticed, chosen))
    # A machine that is starved for a moment may turn a race round (docs/decisions/0012).
    again = [fault for fault, seen in zip(chosen, found, strict=True) if not seen][:MOST_AGAIN]
    late = [fault.name for fault in again if noticed(fault)]
    unnoticed = found.count(False) - len(late)
    for name in late:
        print(f"noticed only at the second look: {name}")
    print(f"{len(found) - unnoticed} passed, {unnoticed} failed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
