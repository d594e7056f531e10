"""A hook that writes down how it was started, then does as it is told: a probe, not a wrapper."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

log, mode, *seconds = sys.argv[1:]


def note(**told: object) -> None:
    """One line of the log, on disk at once."""
    with open(log, "a", encoding="utf-8") as file:
        file.write(json.dumps({"at": time.time(), **told}) + "\n")


# Before the listing opens a descriptor of its own.
descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]
note(
    pid=os.getpid(),
    parent=os.getppid(),
    session=os.getsid(0),
    descriptors=descriptors,
    given=json.loads(sys.stdin.readline()),
)
if mode == "stay":
    signal.signal(signal.SIGTERM, lambda *_: note(signal="TERM"))
    end = time.monotonic() + float(seconds[0])
    while time.monotonic() < end:
        time.sleep(0.02)
        note(alive=True)
if mode == "die":
    os.kill(os.getpid(), signal.SIGKILL)
if mode == "block":
    print(json.dumps({"decision": "block", "reason": "a probe"}))
sys.exit(mode == "fail")
