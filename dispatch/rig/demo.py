"""`make demo`: three kisses in the embedded rig, told for a person."""

from __future__ import annotations

import json
import sys
import time

from dispatch.rig.rig import P, Rig, Said
from dispatch.rig.script import T

WIDTH = 100


def main() -> int:
    """Run the three kisses; 0 when each came to what it should."""
    began = time.monotonic()
    print(f"target   T  {T}   a running session, here a fake with a real socket")
    print(f"postbox  P  {P}   a session of its own that carries the line\n")
    with Rig() as rig:
        door = rig.door(status="idle")
        right = [
            kiss(rig, "1. The target is idle", "fable", "tests are green", ("delivered-start", 0)),
        ]
        door.change(status="busy", accept="busy", surface_after=0.05)
        right += [
            kiss(
                rig, "2. The target is busy", "fable", "the schema changed", ("delivered-start", 0)
            ),
            kiss(
                rig,
                "3. Target and postbox are one session",
                "itself",
                "hi",
                ("carrier-misbound", 2),
            ),
        ]
        print(f"What the door read: {door.lines()}")
        print(f"Carrier runs: {len(rig.runs())}, each resumed P, none resumed T.")
    print(f"{time.monotonic() - began:.1f} s")
    return 0 if all(right) else 1


def kiss(rig: Rig, title: str, address: str, line: str, expected: tuple[str, int]) -> bool:
    """One kiss, with everything that a person may want to see of it."""
    print(f"{title}\n{'-' * len(title)}")
    print(f"$ zdo kiss {address} {line!r}")
    runs = len(rig.runs())
    said = rig.zdo("kiss", "--json", address, line)
    print(said.err, end="")
    for run in rig.runs()[runs:]:
        print(wrapped("argv", run["argv"]))
    tell(said)
    return (said.json["class"], said.exit) == expected


def tell(said: Said) -> None:
    """Both ids, the receipt and the verdict of one kiss."""
    found = said.json
    print(
        f"target   {found['target']['session_id']} ({found['target']['status'] or 'not running'})"
    )
    print(f"carrier  {found['carrier']['session_id']}, answered as", end=" ")
    print(found["carrier"]["result_session_id"] or "nobody: nothing was started")
    print(f"receipt  {json.dumps(found['receipt']) if found['receipt']['msg_id'] else 'none'}")
    print(f"verdict  {found['class']}, proof {found['proof']}, exit {said.exit}\n")


def wrapped(title: str, words: list[str]) -> str:
    """*words* as a shell would need them, broken at WIDTH."""
    lines, now = [], f"{title:9}"
    for word in words:
        shown = word if word and " " not in word else f'"{word}"'
        if len(now) + len(shown) >= WIDTH:
            lines.append(now)
            now = " " * 9
        now += shown + " "
    return "\n".join([*lines, now]).rstrip()


if __name__ == "__main__":
    sys.exit(main())
