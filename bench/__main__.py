"""`make bench`: what zdo adds to its carrier, as ratios with their spread.

Every figure is a median of per-round ratios; the variants of a round run in a
random order, so that a drift of the machine meets all of them.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dispatch.rig.rig import Rig
from tests.acceptance.wheel import build_wheel

ROUNDS = 24
WARM_UP = 2
HERE = Path(__file__).parent
PASS = "python -c pass"


class Sample:
    """One run of one command: its seconds, in all and without those of the wrapper."""

    def __init__(self, seconds: float, wrapper: float):
        self.seconds, self.own = seconds, seconds - wrapper


class Bench:
    """An installed zdo, two C carriers, a fake door that surfaces at once."""

    def __init__(self, rig: Rig, folder: Path):
        self.rig, self.folder = rig, folder
        self.python = install(folder)
        self.fakes = {ms: compile_c(folder, "fake.c", delay_ms=ms) for ms in (0, 300)}
        self.rss = compile_c(folder, "rss.c")
        self.door = rig.door()
        self.words = {
            PASS: [self.python, "-c", "pass"],
            "floor": [self.python, str(HERE / "floor.py")],
            "floor 300": [self.python, str(HERE / "floor.py")],
            "kiss": [str(Path(self.python).parent / "zdo"), "kiss", "fable", "tests are green"],
        }
        self.words["kiss 300"] = self.words["kiss"]
        self.words["kiss --json, Typer"] = [*self.words["kiss"], "--lock-timeout", "1e1", "--json"]

    def env(self, name: str) -> dict[str, str]:
        """The environment of one variant: the carrier is part of it."""
        fake = self.fakes[300 if name.endswith("300") else 0]
        return self.rig.env | {
            "ZDO_CLAUDE_BIN": fake,
            "FAKE": fake,
            "OUT": str(self.folder / "out"),
        }

    def run(self, name: str) -> Sample:
        """Start one variant and wait for it."""
        words, env = self.words[name], self.env(name)
        log = Path(env["FAKE"] + ".log")
        log.unlink(missing_ok=True)
        null = os.open(os.devnull, os.O_RDWR)
        began = time.perf_counter()
        pid = os.posix_spawn(
            words[0], words, env, file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1)]
        )
        _, status = os.waitpid(pid, 0)
        seconds = time.perf_counter() - began
        os.close(null)
        if status:
            raise SystemExit(f"{name} ended with {status}")
        wrapper = int(log.read_text().split()[1]) / 1e9 if log.exists() else 0.0
        return Sample(seconds, wrapper)

    def peak_mib(self, name: str) -> float:
        """Peak memory of one variant, the largest of its processes."""
        said = subprocess.run(
            [self.rss, *self.words[name]], env=self.env(name), check=True, capture_output=True
        )
        # Kilobytes on Linux, bytes on macOS.
        return int(said.stdout) / (1024 if sys.platform == "linux" else 1024**2)

    def to_frame(self) -> float:
        """Seconds from the wrapper's start to the frame at the door, of the last kiss."""
        started = int(Path(self.fakes[0] + ".log").read_text().split()[0]) / 1e9
        return float(self.door.calls()[-1]["at"]) - started


def install(folder: Path) -> str:
    """The interpreter of a fresh environment with the built wheel, byte-compiled."""
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    wheel = build_wheel(folder)
    pip = [python, "-m", "pip", "install", "-q", "--no-warn-script-location"]
    subprocess.run([*pip, "-c", "constraints.txt", wheel], check=True)
    subprocess.run([python, "-m", "compileall", "-q", folder / "venv" / "lib"], check=False)
    return str(python)


def compile_c(folder: Path, source: str, *, delay_ms: int = 0) -> str:
    """The program made of *source*; a carrier waits *delay_ms*."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("bench needs a C compiler: install one that is called cc")
    path = str(folder / f"{source}-{delay_ms}")
    flags = ["-O2", "-w", "-D_GNU_SOURCE", f"-DDELAY_MS={delay_ms}", "-o", path]
    subprocess.run([compiler, *flags, str(HERE / source)], check=True)
    return path


def ratio(rows: list[dict[str, Sample]], over: str, value) -> str:
    """Median and quartiles of *value* of each round, divided by that round's *over*."""
    found = [value(row) / row[over].seconds for row in rows]
    low, middle, high = statistics.quantiles(found, n=4)
    return f"{middle:6.2f}   ({low:.2f} to {high:.2f})"


def system_calls(bench: Bench) -> str:
    """How many system calls one kiss makes, its carrier and wrapper included."""
    strace = shutil.which("strace")
    if strace is None:
        return "not measured: strace is not installed"
    counts = bench.folder / "counts"
    argv = [strace, "-f", "-c", "-o", str(counts), *bench.words["kiss"]]
    subprocess.run(argv, env=bench.env("kiss"), check=True, stdout=subprocess.DEVNULL)
    return counts.read_text().split()[-3]


def take(bench: Bench) -> tuple[list[dict[str, Sample]], list[float]]:
    """ROUNDS rounds, each with every variant once; and the wrapper's way to the frame / pass."""
    rows, frames = [], []
    for number in range(ROUNDS + WARM_UP):
        row = {}
        for name in random.sample(list(bench.words), len(bench.words)):
            row[name] = bench.run(name)
            if name == "kiss":
                reached = bench.to_frame()
        if number >= WARM_UP:
            rows.append(row)
            frames.append(reached / row[PASS].seconds)
    return rows, frames


def main() -> None:
    """Print the table."""
    with Rig() as rig, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        bench = Bench(rig, Path(folder))
        rows, frames = take(bench)
        print(f"{ROUNDS} interleaved rounds, medians (quartiles); {os.uname().sysname}", end=" ")
        print(f"{os.uname().machine}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
        peaks = {name: bench.peak_mib(name) for name in bench.words}
        for name in bench.words:
            middle = statistics.median(row[name].seconds for row in rows) * 1e3
            print(f"  {name:22}{middle:8.1f} ms   peak {peaks[name]:5.1f} MiB")
        added = ratio(rows, PASS, lambda row: row["kiss 300"].own - row["floor 300"].seconds)
        plain = ratio(rows, "floor", lambda row: row["kiss"].own)
        typer = ratio(rows, "floor", lambda row: row["kiss --json, Typer"].own)
        print(f"(kiss 300 - floor 300) / pass     goal <= 8    {added}")
        print(f"kiss / floor                      goal <= 14   {plain}")
        print(f"kiss through Typer / floor        goal <= 14   {typer}")
        print(f"wrapper, start to frame / pass    goal <= 2.5  {statistics.median(frames):6.2f}")
        print(f"peak memory kiss / pass                        {peaks['kiss'] / peaks[PASS]:6.2f}")
        print(f"system calls of one kiss, carrier and wrapper included  {system_calls(bench)}")


if __name__ == "__main__":
    main()
