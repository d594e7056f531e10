"""stdout and stderr: what a terminal cannot spell is written out, what is lost is told once."""

from __future__ import annotations

import contextlib
import os
import sys

from dispatch.verdict import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_LOST = TABLE["journal-unwritable"].exit


def speak(lines: list[str], *, quietly: bool = False) -> int:
    """0 when *lines* are on stdout or nobody reads there any more; else 74, and stderr says why.

    *quietly*: stderr has its one line already.
    """
    try:
        sys.stdout.write("".join(f"{_spelled(line, sys.stdout)}\n" for line in lines))
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        return _lost(error, quietly=quietly)
    return 0


def is_heard() -> bool:
    """Whether stdout is what it was at the start, and was open then.

    In the place of one that was closed, or that nobody reads any more, stands a number.
    """
    return not isinstance(getattr(sys.stdout, "name", None), int)


def hold_interrupts() -> None:
    """From here on Ctrl-C waits for the end of the process: a verdict is said once, and whole."""
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def complain(line: str) -> None:
    """One line on stderr, if there is one that takes it."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{_spelled(line, sys.stderr)}\n")
        sys.stderr.flush()


def _lost(error: Exception, *, quietly: bool) -> int:
    # The buffer keeps what it could not write, and would fail again at every flush.
    sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC), "w")
    if isinstance(error, BrokenPipeError):
        return 0
    why = getattr(error, "strerror", None) or error
    if not quietly:
        complain(
            f"zdo: journal-unwritable: stdout cannot be written ({why});"
            " free the disk; zdo show tells what became of a kiss"
        )
    return _LOST


def _spelled(text: str, stream: TextIO) -> str:
    encoding = stream.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)
