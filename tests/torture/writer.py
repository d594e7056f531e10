"""Queues line after line as `zdo kiss --queue` does, all in this one process.

Tells every acknowledgement on a descriptor, with the monotonic time at which it came:
the promise is made when the command has ended.  Ends at the first refusal, because
what a broken disk says afterwards proves nothing.
"""

import os
import sys
import time


def main() -> None:
    """Write until killed, or until the disk is gone."""
    tree, name, fd = sys.argv[1], sys.argv[2], int(sys.argv[3])
    sys.path.insert(0, tree)
    from dispatch import keep
    from dispatch.cli.commands import this_house
    from dispatch.cli.main import run

    # As a relay that stands by: the last to close would write everything home.
    _bystander = keep.open_database(this_house())
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):
        os.dup2(null, standard)
    number, status = 0, 0
    while status == 0:
        text = f"{name}-{number}"
        status = run(["kiss", "--queue", "fable", text])
        if status == 0:
            os.write(fd, f"{time.monotonic()} {text}\n".encode())
        number += 1


if __name__ == "__main__":
    main()
