"""Looks at Claude Code and at the shell: what each says where the doctor's table cannot go."""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

import pytest

from dispatch import claude_version, look_around, look_at_claude, look_at_shell, look_inside
from dispatch.cli import starting
from dispatch.finding import ill, unknown, well
from dispatch.kiss import NESTED
from dispatch.rig.transcript import Transcript
from dispatch.units import LABEL, cron, place
from dispatch.units.listing import Heard
from registry.errors import StateUnsafe
from registry.home import open_state
from tests.fakes.envelopes import P, T
from tests.fakes.household import Household


@pytest.fixture
def home(tmp_path):
    """A household in which nothing was done yet and nobody runs."""
    household = Household(tmp_path)
    yield household
    household.registry.close()


def says(home, version):
    """The claude of *home* answers with *version*."""
    home.claude(f"echo '{version}'")


# -- Claude Code


@pytest.mark.parametrize("version", claude_version.TESTED)
def test_a_measured_version_is_well(home, version):
    """As the program prints it."""
    says(home, f"{version} (Claude Code)")

    assert well(version) == look_at_claude.claude_version(home.house())


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("2.1.223", "no messaging between sessions, 2.1.224 is the first"),
        ("2.1.224", "none of those measured"),
        ("2.1.333", "none of those measured"),
        ("10.0.0", "none of those measured"),
    ],
)
def test_another_version_is_not_well(home, version, said):
    """Too old is said as such; numbers are compared as numbers."""
    says(home, version)

    found = look_at_claude.claude_version(home.house())

    assert (False, True) == (found.ok, said in found.detail)
    assert (found.fix is not None) == ("messaging" in said)


def test_a_claude_that_names_none_is_not_known(home):
    """Nor is one that is not there."""
    assert look_at_claude.claude_version(home.house()).ok is None
    says(home, "hello")
    assert "ended with 0 and names none" in look_at_claude.claude_version(home.house()).detail


def test_asking_is_bounded_and_quiet(home):
    """A program that hangs is ended; one that is none is said; no variable of ours gets in."""
    home.claude("sleep 60")
    program = f"{home.root}/bin/claude"
    began = time.monotonic()
    asked = claude_version.ask(program, {"PATH": "/usr/bin:/bin"}, "/c", within=0.2)
    assert asked.why == f"{program} --version did not end within 0.2 s"
    assert time.monotonic() - began < 10

    Path(program).write_text("#!/no/such/interpreter\n", encoding="utf-8")
    assert "cannot be started: No such file" in claude_version.ask(program, {}, "/c").why

    home.claude('env >&2; [ -z "$ZDO_CONFIG$ANTHROPIC_AUTH_TOKEN" ] && echo 1.2.3')
    env = {"ZDO_CONFIG": "x", "ANTHROPIC_AUTH_TOKEN": "x", "PATH": "/usr/bin:/bin"}
    assert "1.2.3" == claude_version.ask(program, env, "/c").version


def test_a_name_with_a_folder_is_looked_at_there(home):
    """Where a plain file stands, it only needs to be made a program."""
    program = f"{home.root}/bin/my claude"
    Path(program).touch()
    env = home.env | {"ZDO_CLAUDE_BIN": program}

    found = look_at_claude.claude_binary(home.house(env=env))

    assert ill(f"{program} is no program", f"chmod +x '{program}'") == found


def test_a_postbox_is_looked_for_where_claude_is(home):
    """Each that is ill is told of, with the cure of the first."""
    other = "a0000014-0000-4000-8000-000000000014"
    home.configure(
        f'[targets.fable]\nsession = "{T}"\ncarrier_session = "{other}"\n[station]\nname = "m"\n'
    )
    home.postbox()
    found = look_at_claude.postbox(home.house())
    assert ill(f"{other} does not exist", "zdo postbox new --for fable") == found

    Transcript(home.claude_dir, other, os.path.realpath(f"{home.state}/postbox")).block("x", "y")
    assert well(f"{P}, {other}") == look_at_claude.postbox(home.house())

    home.configure('[station]\ncarrier_session = ""\n')
    assert ill("none is configured") == look_at_claude.postbox(home.house())
    away = home.env | {"CLAUDE_CONFIG_DIR": "/nowhere"}
    assert look_at_claude.postbox(home.house(env=away)).ok is None


def managed(tmp_path, text):
    """Managed settings with *text*."""
    path = tmp_path / "managed-settings.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "ok"),
    [
        ("{}", True),
        ('{"disableAllHooks": true}', False),
        ('{"disableAllHooks": false}', True),
        ('{"allowManagedHooksOnly": true}', None),
        ("[]", None),
        ("{", None),
    ],
)
def test_managed_settings_may_forbid_hooks(home, tmp_path, text, ok):
    """What was not measured is not known."""
    path = managed(tmp_path, text)

    found = look_at_claude.hooks(home.house(), path)

    assert ok is found.ok
    assert ok is not False or path in found.fix


@pytest.mark.parametrize(
    ("by_owner", "by_user", "ok", "said"),
    [
        (None, None, True, "as usual"),
        (None, "hold", None, "held until somebody approves"),
        (None, "refuse", False, "refused"),
        (None, "accept", True, "every line accepted"),
        ("refuse", "accept", False, "refused"),
        ("accept", "refuse", True, "every line accepted"),
    ],
)
def test_settings_may_keep_lines_out(home, *, by_owner, by_user, ok, said):
    """The machine's owner is asked first."""
    tmp_path = Path(home.root)
    paths = (tmp_path / "managed.json", Path(home.claude_dir, "settings.json"))
    for path, wish in zip(paths, (by_owner, by_user), strict=True):
        if wish is not None:
            path.write_text(json.dumps({"crossSessionInbound": wish}), encoding="utf-8")

    found = look_at_claude.inbound(home.house(), str(paths[0]))

    assert (ok, True) == (found.ok, said in found.detail)
    paths[1].write_text("{", encoding="utf-8")
    if by_owner is None:
        assert look_at_claude.inbound(home.house(), str(paths[0])).ok is None


# -- the shell


def starter(home, heard):
    """What is said of the relay's start where every scheduler answers *heard*."""
    return look_at_shell.relay_starter(home.house(), lambda _argv, _env: heard)


def install(home, monkeypatch):
    """The units of systemd, as `zdo unit` writes them."""
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    wish = starting.Wish(starting.SYSTEMD, LABEL, starting.PRINT)
    unit = starting.unit_of(wish, home.house())
    place.install(unit)
    return unit


def test_nothing_installed_is_no_fault(home):
    """Whether one is needed shows where lines wait."""
    assert starter(home, Heard(None, "systemctl: no")).ok is None
    assert starter(home, Heard("")).ok is None


def test_an_installed_unit_has_to_be_active(home, monkeypatch):
    """And to be what would be written now; a scheduler that cannot be asked accuses nobody."""
    unit = install(home, monkeypatch)

    assert well("started by systemd") == starter(home, Heard(f"x {unit.mark} y\n"))
    assert well("started by systemd") == starter(home, Heard(None, "no bus"))
    found = starter(home, Heard("another.timer\n"))
    assert ill("the unit of systemd is installed and not active", unit.begin) == found


def test_a_unit_that_is_not_whole_is_told_of(home, monkeypatch):
    """In part, or changed by somebody; the command that mends it is named."""
    unit = install(home, monkeypatch)
    first = Path(unit.files[0].path)
    first.write_text(first.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    again = "zdo unit systemd --uninstall && zdo unit systemd --install"
    assert (False, again) == (
        (found := starter(home, Heard(""))).ok, found.fix,
    )  # fmt: skip

    first.unlink()
    assert "zdo unit systemd --install" == starter(home, Heard("")).fix


def test_a_crontab_counts_too(home):
    """By its whole line."""
    wish = starting.Wish(starting.CRON, LABEL, starting.PRINT)
    line = starting.unit_of(wish, home.house()).mark

    assert well("started by cron") == starter(home, Heard(f"# mine\n{line}\n"))
    assert starter(home, Heard(f"{line} # changed\n")).ok is None
    assert cron.crontab is not None


def test_cron_is_compared_with_this_shell(home):
    """What a line without any variable would not find is named."""
    said = look_at_shell.cron_environment(home.house()).detail
    assert "bare cron would not find: configuration, state folder, claude;" in said

    plain = {"HOME": home.root, "PATH": "/usr/bin:/bin", "ZDO_CLAUDE_BIN": "/bin/sh"}
    from registry.home import find_places

    bare = home.house(env=plain, places=find_places(plain))
    assert well("bare cron would find the same") == look_at_shell.cron_environment(bare)
    home.configure("[")
    assert look_at_shell.cron_environment(home.house()).ok is None


def test_few_files_are_too_few(home):
    """The soft limit of this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (32, before[1]))
        assert ill("a process may open only 32 files") == look_at_shell.limits(home.house())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert look_at_shell.limits(home.house()).ok is True


def test_a_carrier_is_known_by_its_variable(home):
    """Whatever it holds."""
    assert look_at_shell.nested(home.house(env=home.env | {NESTED: ""})).ok is False
    assert look_at_shell.nested(home.house()).ok is True


# -- inside


def test_each_fault_of_the_state_folder_has_its_cure(home, tmp_path):
    """What is somebody else's is given back by its owner; what is not understood has none."""
    open_state(home.house().places)
    state = home.state

    def cure(path):
        return look_inside._cure(StateUnsafe(path, "x"), state)

    assert cure(state) is None
    plain = tmp_path / "plain"
    plain.touch()
    assert f"mv {plain} {plain}.odd" == cure(str(plain))
    (tmp_path / "link").symlink_to(state)
    assert f"rm {tmp_path}/link" == cure(f"{tmp_path}/link")
    if os.geteuid() == 0:
        os.chown(state, 12345, -1)
        assert f"sudo chown -R 0 {state}" == cure(state)


def test_a_configuration_that_others_may_write_is_ill(home):
    """Whoever writes it chooses the targets."""
    path = home.env["ZDO_CONFIG"]
    os.chmod(path, 0o620)

    found = look_around.config(home.house())

    assert ill(f"{path} can be written by others", f"chmod go-w {path}") == found


def test_a_database_in_the_place_of_which_a_folder_stands(home):
    """It is moved away, and nothing is read."""
    open_state(home.house().places)
    os.mkdir(f"{home.state}/zdo.db")

    found = look_inside.database(home.house())

    assert f"mv {home.state}/zdo.db {home.state}/zdo.db.odd" == found.fix


def test_an_entry_of_tomorrow_accuses_the_clock(home):
    """A minute is let pass; an empty journal says nothing."""
    assert unknown("nothing is on record to compare it with") == look_inside.clock(home.house())
    home.database().close()
    assert look_inside.clock(home.house()).ok is True
    home.queued()
    home.alter("UPDATE event SET at = ?", time.time() + 50)
    assert look_inside.clock(home.house()).ok is True
    home.alter("UPDATE event SET at = ?", time.time() + 86400)
    assert look_inside.clock(home.house()).ok is False
