"""`python -m tests.gate COMMAND…`: a test that fails in the crowd is judged alone, and named.

COMMAND runs pytest, all of its tests side by side on every core.  Some of them measure
seconds, and a machine that is starved for a moment fails one of several thousand.  So a
few failures are run again, each by itself; more than a few are a failure at once.  What
passed only alone is told at the end (docs/decisions/0012).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 5
CACHE = Path(".pytest_cache/v/cache/lastfailed")


def failed_of(cache: Path) -> list[str]:
    """The tests that failed in the run before, by their ids; none where nothing was kept."""
    try:
        kept = json.loads(cache.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return sorted(kept)


def passes_alone(command: list[str], test: str) -> bool:
    """Whether *test* passes when nothing else runs; *command* is cut before its options."""
    upto = command.index("pytest") + 1
    argv = [*command[:upto], "-q", "-p", "no:cacheprovider", test]
    return subprocess.run(argv, check=False).returncode == 0


def main(command: list[str], cache: Path = CACHE) -> int:
    """The status of *command*; 0 too when all that failed, at most MOST, passes alone."""
    status = subprocess.run([*command, "--cache-clear"], check=False).returncode
    failed = failed_of(cache) if status == 1 else []
    if not 0 < len(failed) <= MOST or "pytest" not in command:
        return status
    print(f"failed beside others, and run alone now: {', '.join(failed)}", flush=True)
    still = [test for test in failed if not passes_alone(command, test)]
    for test in failed:
        print(f"{'FAILED ALONE TOO' if test in still else 'passed only alone'}: {test}")
    return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
