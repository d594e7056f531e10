"""Builds the wheel and looks into it: three packages, one command, nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP_LEVEL = {"registry", "carrier", "dispatch"}
SHARED = {
    "share/man/man1/zdo.1",
    "share/bash-completion/completions/zdo",
    "share/zsh/site-functions/_zdo",
    "share/fish/vendor_completions.d/zdo.fish",
}


def build_wheel(folder: Path) -> Path:
    """The wheel of this tree, built into *folder* with the tools already installed."""
    argv = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*argv, str(ROOT)], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("zdo-*.whl")
    return wheel


def top_level(wheel: Path) -> set[str]:
    """The first names of everything in *wheel* that is not its metadata."""
    names = {name.split("/", 1)[0] for name in zipfile.ZipFile(wheel).namelist()}
    return {name for name in names if not name.endswith((".dist-info", ".data"))}


def shared(venv: Path) -> set[str]:
    """The files of SHARED that stand in *venv*, where a shell and `man` look for them."""
    return {name for name in SHARED if (venv / name).is_file()}


def main() -> int:
    """Build, look, and try the command of the wheel alone; 0 when all is as it should be."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        found = top_level(wheel)
        if found != TOP_LEVEL:
            print(f"the wheel holds {sorted(found)}, not {sorted(TOP_LEVEL)}")
            return 1
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", Path(folder) / "venv"], check=True)
        pip = [python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel]
        subprocess.run(pip, check=True)
        if shared(python.parents[1]) != SHARED:
            print(f"the wheel lacks {sorted(SHARED - shared(python.parents[1]))}")
            return 1
        said = subprocess.run(
            [python.parent / "zdo", "--version"], check=True, capture_output=True, text=True
        )
        print(f"{wheel.name}: {', '.join(sorted(found))}; {said.stdout.strip()} runs from it")
        return try_as_cron(python.parent / "zdo", Path(folder))


def try_as_cron(zdo: Path, folder: Path) -> int:
    """Start *zdo* with next to no environment, as cron does; 0 when it says what it should."""
    env = {
        "ZDO_STATE_DIR": f"{folder}/state",
        "ZDO_CONFIG": f"{folder}/zdo.toml",
        "CLAUDE_CONFIG_DIR": f"{folder}/claude",
    }
    said = [
        subprocess.run([zdo, *words], env=env, capture_output=True, text=True, check=False)
        for words in (["relay"], ["unit", "cron"])
    ]
    right = "relay: nothing to do\n" == said[0].stdout and f" {zdo} relay " in said[1].stdout
    print(f"as cron starts it: {said[0].stdout.strip() or said[0].stderr.strip()}")
    return 0 if right and not said[0].stderr else 1


if __name__ == "__main__":
    sys.exit(main())
