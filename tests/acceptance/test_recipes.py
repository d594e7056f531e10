"""The recipes of USAGE.md, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch.rig.rig import ROOT, Rig
from tests.acceptance.saying import delivered

PAGE = (ROOT / "USAGE.md").read_text(encoding="utf-8")
# By the name in the comment below the first line.
SCRIPTS = {
    found[2]: found[1]
    for found in re.finditer(
        r"^```sh\n(#!/bin/sh\n# (\S+?)[ :\n].*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
}
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def rig():
    """A rig with one running session."""
    with Rig() as made:
        made.door()
        yield made


def script(rig, name):
    """The path of the recipe *name*, executable."""
    path = Path(rig.home) / Path(name).name
    path.write_text(SCRIPTS[name], encoding="utf-8")
    path.chmod(0o700)
    return path


def run(rig, *argv, **env):
    """How *argv* ended in the rig's home."""
    return subprocess.run(
        argv,
        env=rig.env | env,
        cwd=rig.home,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_every_recipe_is_tried_here():
    """A new one without a test would be a promise that nobody keeps."""
    tried = {".git/hooks/post-merge", "ci-tells.sh", "disk-watch.sh", "tell-all.sh", "claude"}

    assert tried == set(SCRIPTS)


def test_the_git_hook_tells_of_a_merge_once(rig):
    """Git runs it after a pull; run again for the same commit, nothing is told twice."""
    name = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]
    for words in (
        ["init", "-q", "here"],
        ["-C", "here", "commit", "-q", "--allow-empty", "-m", "first"],
        ["clone", "-q", "here", "there"],
        ["-C", "here", "commit", "-q", "--allow-empty", "-m", "the $(schema) changed; 'x'"],
    ):
        ended = run(rig, "git", *name, *words)
        assert 0 == ended.returncode, ended.stderr
    script(rig, ".git/hooks/post-merge").rename(f"{rig.home}/there/.git/hooks/post-merge")

    for _ in range(2):
        ended = run(rig, "git", *name, "-C", "there", "pull", "-q", "--no-edit")
        assert 0 == ended.returncode, ended.stderr
    run(rig, "sh", "-c", "cd there && .git/hooks/post-merge")

    (told,) = rig.lines()
    assert re.fullmatch(r"merged [0-9a-f]+: the \$\(schema\) changed; 'x'", told)


def test_the_ci_step_tells_known_from_unknown(rig):
    """0 when told or kept; a doubt is said, and is no failure of the job; a refusal is one."""
    tells = script(rig, "ci-tells.sh")

    assert 0 == run(rig, tells, "812", "success").returncode
    assert ["job 812 ended: success"] == rig.lines()

    rig.install_claude(outcome="empty")
    doubted = run(rig, tells, "813", "failure")
    assert (0, True) == (doubted.returncode, "do not repeat" in doubted.stderr), doubted

    rig.close_doors()
    rig.configure("")
    assert 1 == run(rig, tells, "814", "failure").returncode


def test_the_disk_watch_speaks_once_a_day(rig):
    """Below the limit it is silent; above it one line is told, however often it runs."""
    watch = script(rig, "disk-watch.sh")

    assert 0 == run(rig, watch, LIMIT="101").returncode
    assert [] == rig.lines()
    for _ in range(2):
        ended = run(rig, watch, LIMIT="0")
        assert (0, "") == (ended.returncode, ended.stderr)

    (told,) = rig.lines()
    assert re.fullmatch(r"the disk is [0-9]+ % full", told)


def test_everybody_is_told_and_the_worst_is_the_status(rig):
    """One target is its own postbox; the other hears the line all the same."""
    (Path(rig.bin) / "python3").symlink_to(sys.executable)

    ended = run(rig, script(rig, "tell-all.sh"), "stop, the schema changed")

    assert (2, ["stop, the schema changed"]) == (ended.returncode, rig.lines())
    assert "carrier-misbound" in ended.stderr


def test_the_stand_in_of_five_lines_carries(rig):
    """What the page shows is a `claude` that is enough."""
    script(rig, "claude").rename(f"{rig.bin}/claude")

    delivered(rig.zdo("kiss", "--json", "fable", "hello"))

    assert ["hello"] == rig.lines()


def test_the_pytest_example_passes(tmp_path):
    """The plugin is found by its entry point, and nothing but the page is needed."""
    (tmp_path / "test_example.py").write_text(EXAMPLE, encoding="utf-8")

    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    ended = subprocess.run(
        [*argv, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (0, True) == (ended.returncode, "3 passed" in ended.stdout), ended.stdout
