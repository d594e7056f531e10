"""Every console block of USAGE.md, run as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch.rig.rig import ROOT, Rig
from tests.fakes.tickets import Tickets

PANE = "w0t1p0:5F0C8B7E"
MARK = "--- end of one command ---"
BLOCKS = re.findall(
    r"^```console\n(.*?)^```$",
    (ROOT / "USAGE.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def commands_of(block: str) -> list[tuple[str, str]]:
    """The commands of *block*, each with the output that the page promises."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, output = found[-1]
            found[-1] = (command, f"{output}{line}\n")
    return found


def pattern_of(promised: str) -> str:
    """A pattern for *promised*, where an ellipsis stands for anything."""
    return ".*".join(map(re.escape, promised.split("…")))


@pytest.mark.parametrize("block", BLOCKS, ids=[b.splitlines()[0][2:42] for b in BLOCKS])
def test_a_console_block_does_what_the_page_says(block):
    """What USAGE.md shows is what its reader gets, word for word but for ids and times."""
    commands = commands_of(block)
    # The status of a command survives the mark, so that `echo $?` tells it.
    script = "".join(f"{command}\n__s=$?; echo '{MARK}'; (exit $__s)\n" for command, _ in commands)
    with Rig() as rig:
        rig.door(status="idle", env={"TERM_SESSION_ID": PANE})
        tickets = Tickets(rig.home)
        tickets.add("TK-11665", "create", 60)
        tickets.add("TK-11665", "assign", agent=f"claude@{PANE}")
        (Path(rig.bin) / "python3").symlink_to(sys.executable)
        ran = subprocess.run(
            ["/bin/sh", "-c", script],
            env=rig.env,
            cwd=rig.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
    outputs = ran.stdout.split(f"{MARK}\n")[:-1]

    assert len(outputs) == len(commands), ran.stdout
    for (command, promised), output in zip(commands, outputs, strict=True):
        assert re.fullmatch(pattern_of(promised), output, re.DOTALL), (
            f"$ {command}\n{output}\ninstead of\n{promised}"
        )


def test_the_page_has_blocks_to_run():
    """A changed fence would make this whole module pass by running nothing."""
    assert len(BLOCKS) >= 14
