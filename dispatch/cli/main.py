"""The door of the house: words in, one exit status out, and never a traceback."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_STANDARD = (0, 1, 2)
_INTERRUPTED = b"zdo: interrupted: stopped by Ctrl-C; zdo show tells what became of a kiss\n"


def main() -> NoReturn:
    """Run the command and leave at once: tearing the interpreter down costs as much as a line."""
    try:
        _fill_standard_descriptors()
        # A line is the bytes that the shell gave, whatever the locale makes of them.
        status = run(
            [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]
        )
    except KeyboardInterrupt:
        # So early, or so often, that no command was there to take it.
        os.write(2, _INTERRUPTED)
        status = 130
    os._exit(status)


def run(argv: list[str]) -> int:
    """The exit status of *argv*; every exception becomes a sentence and a class."""
    from dispatch.cli import commands, plain

    command = argv[0] if argv else ""
    as_object = "--json" in argv
    try:
        if (args := plain.parse_kiss(argv)) is not None:
            return commands.kiss(args)
        from dispatch.cli import app

        return app.run(argv)
    except commands.Usage as error:
        return commands.fail(command, "usage", str(error), as_object=as_object)
    except KeyboardInterrupt:
        return commands.fail(command, "interrupted", "stopped by Ctrl-C", as_object=as_object)
    except Exception as error:  # noqa: BLE001 - the last fence before a traceback
        return commands.fail(command, "internal", _where(error), as_object=as_object)


def _where(error: Exception) -> str:
    """The kind and the place of *error*.  Not its text: that might hold the line."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    file = os.path.basename(trace.tb_frame.f_code.co_filename)
    return f"{type(error).__name__} at {file}:{trace.tb_lineno}"


def _fill_standard_descriptors() -> None:
    # With one of them closed, the next file opened would become stdin or stdout of the carrier.
    for fd in _STANDARD:
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python has no object for a stream that was closed when it started.
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
