"""However takers come and go, also by kill -9, two processes never hold one lease."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.clock import Clock
from registry.errors import LeaseBusy
from registry.locks import Lease, still_ours, take_lease

ROOT = Path(__file__).parents[2]
POSTBOX = "61b7959a-122e-410e-945d-f4b9b4f73cb7"

# Takes the lease again and again and leaves a token while it holds it.  A token that it
# finds was left by a holder that was killed, or is that of a second holder.
TAKER = """
import os, sys, time
from registry.clock import Clock
from registry.locks import still_ours, take_lease
folder, postbox, until = sys.argv[1], sys.argv[2], float(sys.argv[3])
token, taken, me = folder + "/holder", 0, str(os.getpid())
while not taken or time.monotonic() < until:
    lease = take_lease(folder, postbox, timeout_s=30, clock=Clock())
    if os.path.exists(token):
        print("found", open(token).read(), flush=True)
    with open(token + me, "w") as mine:
        mine.write(me)
    os.rename(token + me, token)
    time.sleep(0.0005)
    if not still_ours(lease):
        print("lost", me, flush=True)
    os.unlink(token)
    lease.close()
    taken += 1
print("taken", taken, flush=True)
"""


def taker(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that takes and gives back the lease for *seconds*."""
    until = time.monotonic() + seconds
    argv = [sys.executable, "-c", TAKER, str(folder), POSTBOX, str(until)]
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    return subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)


def test_two_processes_never_hold_one_lease(tmp_path: Path) -> None:
    """Four takers, twenty kills: only a killed holder's token is found, and only once."""
    chance = random.Random(7)  # noqa: S311 - any fixed order will do
    takers = [taker(tmp_path, 3) for _ in range(4)]
    killed, said = set[int](), ""
    for _ in range(20):
        time.sleep(chance.uniform(0.02, 0.08))
        victim = takers.pop(chance.randrange(len(takers)))
        victim.kill()
        said += victim.communicate()[0]
        killed.add(victim.pid)
        takers.append(taker(tmp_path, 3))
    for one in takers:
        end = one.communicate(timeout=30)[0]
        assert (0, "taken") == (one.returncode, end.split()[-2])
        said += end

    found = [int(line.split()[1]) for line in said.splitlines() if line.startswith("found ")]
    assert "lost" not in said
    assert killed.issuperset(found)
    assert len(set(found)) == len(found)


steps = st.lists(st.sampled_from(["take", "close", "unlink", "replace"]), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=steps)
def test_at_most_one_lease_is_ours(tmp_path: Path, history: list[str]) -> None:
    """Whatever happens to the file, of all leases taken at most one passes the last look."""
    folder = tmp_path / os.urandom(8).hex()
    folder.mkdir()
    path, leases = folder / f"{POSTBOX}.lock", list[Lease]()
    for step in history:
        if step == "take":
            try:
                leases.append(take_lease(str(folder), POSTBOX, timeout_s=0, clock=Clock()))
            except LeaseBusy:
                assert any(map(still_ours, leases))
        elif step == "close" and leases:
            leases.pop(0).close()
        elif step == "unlink":
            path.unlink(missing_ok=True)
        elif step == "replace":
            path.unlink(missing_ok=True)
            path.touch(0o600)
        assert sum(map(still_ours, leases)) <= 1
    for lease in leases:
        lease.close()
