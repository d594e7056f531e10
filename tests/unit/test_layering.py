"""The walls of the house, read from the imports and from one real run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from carrier.argv import wrapper_command
from dispatch.rig.rig import Rig
from registry.home import find_places
from tests.fakes.household import ROOT

LAYERS = ("registry", "carrier", "dispatch", "dispatch.cli")
OURS = ("registry", "carrier", "dispatch")

# Who may touch what only an edge touches (docs/INTERNALS.md, layers).
EDGES = {
    # The keeper, and the child of the wrapper that may stay as an ear.
    "fork": {"carrier.run", "carrier.wrapper"},
    "posix_spawn": {"carrier.ward"},
    "posix_spawnp": set(),
    "execv": set(),
    "execve": set(),
    "system": set(),
    "popen": set(),
    # The spool's turn-taking and the lease.
    "flock": {"registry.locks", "dispatch.database"},
    # The door, its reply socket, and the one probe of `zdo sessions`.
    "socket": {"registry.rows"},
    "_socket": {"carrier.door", "carrier.calls", "carrier.notices"},
    # ps, claude --version, a session that is thrown away, what tells whether a unit is active.
    "subprocess": {
        "registry.processes",
        "registry.surroundings_ps",
        "dispatch.claude_version",
        "dispatch.throwaway",
        "dispatch.units.listing",
    },
    "ctypes": {"carrier.family"},
}

WORDS = (
    "app", "app_config", "app_house", "app_lines", "app_people", "app_postbox", "app_readers",
    "app_views", "words",
)  # fmt: skip

# Each costs a kiss more than what it is used for (docs/decisions/0002).
NEVER_ON_A_KISS = (
    "dataclasses", "pathlib", "typing", "subprocess", "uuid", "logging", "pydantic", "typer",
    "filelock", "rich", "asyncio", "tomllib", "inspect", "tempfile", "shutil", "socket",
    "decimal", "difflib",
)  # fmt: skip
# Whom the standard library itself brings along.
BROUGHT_BY = {"enum": {"re", "signal"}}


def modules():
    """Every module of ours by its dotted name."""
    found = {}
    for layer in OURS:
        for path in sorted(Path(ROOT, layer).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()
# Programs that play Claude Code, for tests: they touch whatever it touches.
RIG = {name for name in MODULES if name.split(".")[:2] == ["dispatch", "rig"]}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def is_type_checking(node):
    """Whether *node* is the block that never runs."""
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def running(node):
    """Every node below *node* that can run."""
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            for other in child.orelse:
                yield other
                yield from running(other)
            continue
        yield child
        yield from running(child)


def imports(name, *, at_run_time=False):
    """What the module *name* imports, anywhere in it, as dotted names of modules."""
    nodes = running(TREES[name]) if at_run_time else ast.walk(TREES[name])
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} has a relative import"
            found.add(node.module)
            # `from dispatch import keep` names a module, not a value.
            found.update(
                f"{node.module}.{alias.name}"
                for alias in node.names
                if f"{node.module}.{alias.name}" in MODULES
            )
    return found


def layer_of(name):
    """The layer of a module, from the bottom; None for what is not ours."""
    if name == "dispatch.cli" or name.startswith("dispatch.cli."):
        return LAYERS.index("dispatch.cli")
    top = name.split(".")[0]
    return LAYERS.index(top) if top in LAYERS else None


def closure(start):
    """Every module of ours that *start* may bring along at run time."""
    seen, todo = set(), [start]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        todo += [each for each in imports(name, at_run_time=True) if each in MODULES]
    return seen


@pytest.mark.parametrize("name", MODULES)
def test_imports_run_down(name):
    """From cli to dispatch to carrier to registry, never up; also for types."""
    for imported in imports(name):
        layer = layer_of(imported)
        assert layer is None or layer <= layer_of(name), f"{name} imports {imported}"


def test_only_the_wrapper_knows_the_door():
    """K11: the dispatcher never writes a door."""
    importers = {name for name in MODULES if "carrier.door" in imports(name, at_run_time=True)}

    assert importers <= {"carrier.wrapper", "carrier.visit"}
    assert importers
    for start in ("carrier.attempt", *(name for name in MODULES if name.startswith("dispatch"))):
        assert not closure(start) & {
            "carrier.door",
            "carrier.calls",
            "carrier.visit",
            "carrier.companions",
            "carrier.knock",
            "carrier.stay",
            "carrier.wrapper",
        }


@pytest.mark.parametrize("name", sorted(closure("carrier.wrapper")))
def test_the_wrapper_is_the_standard_library_and_our_own(name):
    """It is started without site packages: nothing else is there."""
    for imported in imports(name, at_run_time=True):
        top = imported.split(".")[0]
        if name == "registry.schema" or top in OURS:
            continue
        assert top in sys.stdlib_module_names or top == "__future__", f"{name} imports {imported}"
    assert name != "registry.schema"


def test_the_wrapper_is_started_isolated():
    """-I: no user site, no PYTHON variables, no current folder; -S: no site at all."""
    command = wrapper_command(sys.executable, ROOT)

    assert command.startswith(f"'{sys.executable}' -IS -c ")
    assert command.endswith(" || exit 2")


def touched(name):
    """The words of EDGES that the module *name* uses: imports, calls and bare references."""
    found = {each.split(".")[0] for each in imports(name, at_run_time=True)} & EDGES.keys()
    for node in running(TREES[name]):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in ("os", "fcntl"):
            found.update({node.attr} & EDGES.keys())
    return found


@pytest.mark.parametrize("word", EDGES)
def test_effects_live_at_their_edges(word):
    """Processes, locks and sockets are touched where docs/INTERNALS.md says, and nowhere else."""
    assert EDGES[word] == {name for name in MODULES if word in touched(name)} - RIG


def test_pydantic_and_typer_have_one_place_each():
    """Schemas of what a person writes and what zdo keeps; words of a command line."""
    schemas = {name for name in MODULES if "pydantic" in imports(name, at_run_time=True)}
    words = {name for name in MODULES if "typer" in imports(name, at_run_time=True)}

    assert schemas == {"registry.schema", "dispatch.schema"}
    assert words - {"dispatch.cli.manual"} == {f"dispatch.cli.{name}" for name in WORDS}


def test_the_other_packages_have_one_place_each():
    """Locks that no carrier inherits, what is drawn, what is edited; imported when needed."""
    places = {
        "filelock": {"dispatch.configure", "dispatch.relay", "registry.memory"},
        "tomlkit": {"dispatch.configure"},
        "rich": {"dispatch.cli.drawing", "dispatch.cli.relaying", "dispatch.cli.watching"},
    }
    for package, its in places.items():
        users = {
            name for name in MODULES
            if package in {each.split(".")[0] for each in imports(name, at_run_time=True)}
        }  # fmt: skip
        assert its == users
        # What draws is itself imported only where something is drawn.
        for place in its - {"dispatch.cli.drawing"}:
            body = TREES[place].body
            at_import = [n for n in body if isinstance(n, (ast.Import, ast.ImportFrom))]
            assert package not in "".join(map(ast.unparse, at_import))


def test_the_rig_stands_beside_the_house():
    """Only the trial knows of it, for where there is no Claude Code; nothing that delivers does."""
    users = {name for name in MODULES if {each for each in imports(name) if each in RIG}} - RIG

    assert users == {"dispatch.cli.selftesting"}


def test_nothing_reads_the_clock_or_the_environment_at_import():
    """Law 8: they come in as arguments; a module's top level has neither."""
    for name, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) or is_type_checking(node):
                continue
            words = {f"{getattr(n.value, 'id', '')}.{n.attr}" for n in ast.walk(node)
                     if isinstance(n, ast.Attribute)}  # fmt: skip
            assert not words & {"os.environ", "os.getenv", "time.time", "time.monotonic"}, name


def imported_by_a_kiss(rig, *words, status):
    """Every module that one real kiss in its plain spelling had loaded at its end."""
    code = f"import sys; sys.path.insert(0, {ROOT!r}); from dispatch.cli.main import main; main()"
    # -S as far as we can go: what site and its .pth files load is not ours.
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-S", "-c", code, *words],
        env=rig.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert status == ended.returncode, ended.stderr
    lines = [line for line in ended.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.fixture(scope="module")
def loaded():
    """What a delivered kiss loads, a refused one, and one that is queued."""
    with Rig() as rig:
        rig.door()
        # The first makes the state folder, the second keeps the checked configuration there.
        for line in ("first", "second"):
            rig.zdo("kiss", "fable", line)
        return {
            "delivered": imported_by_a_kiss(rig, "kiss", "fable", "x", status=0),
            "refused": imported_by_a_kiss(rig, "kiss", "itself", "x", status=2),
            "queued": imported_by_a_kiss(rig, "kiss", "--queue", "fable", "x", status=0),
        }


@pytest.mark.parametrize("how", ["delivered", "refused", "queued"])
def test_a_kiss_imports_nothing_that_costs_more_than_it_does(loaded, how):
    """A plain kiss with a known configuration: none of the heavy modules."""
    assert sorted(loaded[how] & set(NEVER_ON_A_KISS)) == []
    assert "dispatch.kiss" in loaded[how]
    assert not {name for name in loaded[how] if name.startswith(("typer", "pydantic"))}


@pytest.mark.parametrize("how", ["delivered", "refused", "queued"])
def test_enum_comes_only_with_what_needs_it(loaded, how):
    """`re` of json and `signal` bring it; a module of ours never does."""
    if "enum" in loaded[how]:
        assert loaded[how] & BROUGHT_BY["enum"]
    assert not [name for name in MODULES if "enum" in imports(name, at_run_time=True)]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_one_thought(name):
    """No module above 250 lines, and its first line says the thought."""
    text = MODULES[name].read_text(encoding="utf-8")

    assert text.count("\n") <= 250
    assert ast.get_docstring(TREES[name])


def test_no_folder_of_tests_hides_a_package():
    """`tests/registry` would be imported in its place."""
    folders = {entry.name for entry in os.scandir(Path(ROOT, "tests")) if entry.is_dir()}

    assert not folders & set(OURS)
    assert find_places({"HOME": "/h"}).state == "/h/.local/state/zdo"
