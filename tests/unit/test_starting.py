"""`zdo unit`: printed, installed, taken away, looked at; no scheduler is ever told anything."""

from __future__ import annotations

import json
import os
import plistlib
import shlex
from pathlib import Path

import pytest

from dispatch.cli import starting
from dispatch.cli.commands import Usage, this_house
from dispatch.cli.starting import CRON, INSTALL, LAUNCHD, PRINT, STATUS, SYSTEMD, UNINSTALL, Wish
from dispatch.units.listing import Heard
from tests.fakes.household import Household

KINDS = (CRON, SYSTEMD, LAUNCHD)
PLACES = {
    CRON: (),
    SYSTEMD: (".config/systemd/user/my-relay.service", ".config/systemd/user/my-relay.timer"),
    LAUNCHD: ("Library/LaunchAgents/my-relay.plist",),
}

UNTOUCHED = "the crontab is as it was: only the next command changes it"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in, with a claude."""
    household = Household(tmp_path)
    household.claude("exit 0")
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


class Scheduler:
    """What a scheduler has, and what it was asked."""

    def __init__(self, text=None, why=None):
        self.heard, self.asked = Heard(text, why), []

    def __call__(self, argv, env):
        """Answer as it was told to."""
        self.asked.append((argv, env["HOME"]))
        return self.heard


def asked(kind, wish, scheduler=None, label="my-relay", *, as_object=False):
    """The exit status of `zdo unit`."""
    ask = scheduler or Scheduler()
    return starting.unit(Wish(kind, label, wish), None, as_object=as_object, ask=ask)


def unit_of(kind):
    """The unit as it would be installed now."""
    return starting.unit_of(Wish(kind, "my-relay", PRINT), this_house())


def said(capsys, kind, wish, scheduler=None):
    """The lines of `zdo unit`, which went well."""
    assert asked(kind, wish, scheduler) == 0
    told = capsys.readouterr()
    assert "" == told.err
    return told.out.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    ("given", "wish"),
    [
        ((False, False, False), PRINT),
        ((True, False, False), INSTALL),
        ((False, True, False), UNINSTALL),
        ((False, False, True), STATUS),
    ],
)
def test_one_thing_is_wished(given, wish):
    """Without an option it is printed."""
    install, uninstall, status = given

    assert Wish(CRON, "x", wish) == starting.wish_of(
        CRON, "x", install=install, uninstall=uninstall, status=status
    )


@pytest.mark.parametrize("given", [(True, True, False), (True, False, True), (False, True, True)])
def test_two_wishes_are_usage(given):
    """Nobody knows which comes first."""
    install, uninstall, status = given

    with pytest.raises(Usage, match="give one of --install, --uninstall and --status"):
        starting.wish_of(CRON, "x", install=install, uninstall=uninstall, status=status)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_printed_is_what_is_installed(home, capsys, kind):
    """Word for word; printing writes nothing and asks nobody."""
    scheduler = Scheduler()
    printed = "\n".join(said(capsys, kind, PRINT, scheduler))
    assert not any(os.path.lexists(f"{home.root}/{path}") for path in (*PLACES[kind], "state"))

    lines = said(capsys, kind, INSTALL, scheduler)

    paths = [f"{home.root}/{path}" for path in PLACES[kind]]
    assert ([f"current: {path}" for path in paths] or [UNTOUCHED]) == lines[:-1]
    assert lines[-1].startswith("next: ")
    assert all(Path(path).read_text().strip() in printed for path in paths)
    assert home.state in printed
    assert f"{home.root}/bin/claude" in printed
    assert [] == scheduler.asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_with_an_odd_end_of_line_is_printed_as_it_is(home, capsys, monkeypatch, kind):
    """Only a newline is one to a scheduler."""
    odd = f"{home.root}/two\u2028lines\x85"
    monkeypatch.setenv("ZDO_STATE_DIR", odd)

    printed = "\n".join(said(capsys, kind, PRINT))

    assert odd in printed


def test_the_folder_of_the_log_is_there_after_an_installation(home, capsys):
    """No scheduler makes it; it is as private as every command would make it."""
    said(capsys, LAUNCHD, INSTALL)

    assert os.stat(home.state).st_mode & 0o777 == 0o700
    plist = plistlib.loads(Path(f"{home.root}/{PLACES[LAUNCHD][0]}").read_bytes())
    assert f"{home.state}/relay.log" == plist["StandardErrorPath"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_taken_away_is_gone(home, capsys, kind):
    """And the command that ends it is said, also when nothing was there."""
    said(capsys, kind, INSTALL)

    for _ in range(2):
        lines = said(capsys, kind, UNINSTALL)
        absent = [f"absent: {home.root}/{path}" for path in PLACES[kind]]
        assert (absent or [UNTOUCHED]) == lines[:-1]
        assert lines[-1].startswith("next: ")
        assert not any(os.path.lexists(f"{home.root}/{path}") for path in PLACES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_the_status_is_looked_up_at_the_call(home, capsys, kind):
    """Each file by its content, and what the scheduler says that it has."""
    scheduler = Scheduler("", None)
    paths = [f"{home.root}/{path}" for path in PLACES[kind]]
    assert [*(f"absent: {path}" for path in paths), "active: no"] == said(
        capsys, kind, STATUS, scheduler
    )
    said(capsys, kind, INSTALL)
    mark = unit_of(kind).mark
    scheduler.heard = Heard(f"another\n{mark}\n")
    assert [*(f"current: {path}" for path in paths), "active: yes"] == said(
        capsys, kind, STATUS, scheduler
    )
    for path in paths:
        Path(path).write_text("older")
    scheduler.heard = Heard(None, "no answer")
    assert [*(f"differs: {path}" for path in paths), "active: not known (no answer)"] == said(
        capsys, kind, STATUS, scheduler
    )
    argv = {CRON: "crontab", SYSTEMD: "systemctl", LAUNCHD: "launchctl"}[kind]
    assert [(argv, home.root)] * 3 == [(words[0], where) for words, where in scheduler.asked]


@pytest.mark.parametrize("kind", KINDS)
def test_the_object_has_every_field(home, capsys, kind):
    """Whatever was wished; what was not asked for is null."""
    fields = [
        "v",
        "command",
        "class",
        "exit",
        "sender",
        "kind",
        "files",
        "active",
        "reason",
        "next",
        "text",
    ]
    heard = Scheduler(None, "no answer")
    shown = {}
    for wish in (PRINT, INSTALL, STATUS, UNINSTALL):
        assert asked(kind, wish, heard, as_object=True) == 0
        shown[wish] = json.loads(capsys.readouterr().out)
        assert fields == list(shown[wish])
        plain = (1, "unit", None, 0, "anonymous", kind)
        assert plain == tuple(shown[wish][name] for name in fields[:6])

    unit = unit_of(kind)
    paths = [f"{home.root}/{path}" for path in PLACES[kind]]
    current = [{"path": path, "state": "current"} for path in paths]
    absent = [{"path": path, "state": "absent"} for path in paths]
    expected = {
        PRINT: [[], None, None, None, unit.text],
        INSTALL: [current, None, None, unit.begin, None],
        STATUS: [current, None, "no answer", None, None],
        UNINSTALL: [absent, None, None, unit.end, None],
    }
    assert expected == {wish: [each[name] for name in fields[6:]] for wish, each in shown.items()}
    home.configure("[nonsense]\n")
    assert asked(kind, PRINT, as_object=True) == 78
    told = json.loads(capsys.readouterr().out)
    assert ("unit", "config-invalid") == (told["command"], told["class"])


@pytest.mark.parametrize(
    ("given", "folder"),
    [("/x", "/x/systemd/user"), ("x", "{}/.config/systemd/user"), ("", "{}/.config/systemd/user")],
)
def test_systemd_looks_where_xdg_says(home, monkeypatch, given, folder):
    """A relative folder is to be ignored."""
    monkeypatch.setenv("XDG_CONFIG_HOME", given)

    unit = unit_of(SYSTEMD)

    assert f"{folder.format(home.root)}/my-relay.timer" == unit.files[1].path


@pytest.mark.parametrize("kind", KINDS)
def test_an_odd_label_is_usage(kind):
    """It is a word on the command line, and no path."""
    with pytest.raises(Usage, match="a label is 1 to 64 letters"):
        starting.wish_of(kind, "../../x", install=True, uninstall=False, status=False)


@pytest.mark.parametrize("kind", [SYSTEMD, LAUNCHD])
@pytest.mark.parametrize("wish", [INSTALL, UNINSTALL])
def test_another_state_folders_unit_is_left(home, capsys, monkeypatch, kind, wish):
    """78, the file is named, and stands as it was."""
    said(capsys, kind, INSTALL)
    path = Path(f"{home.root}/{PLACES[kind][0]}")
    before = path.read_bytes()
    monkeypatch.setenv("ZDO_STATE_DIR", f"{home.root}/other")

    assert asked(kind, wish) == 78

    assert capsys.readouterr().err.startswith(f"zdo: config-invalid: {path} is ")
    assert before == path.read_bytes()


def test_the_line_for_a_crontab_is_one_line(home, capsys):
    """With what leads to this queue and to this claude."""
    (line,) = said(capsys, CRON, PRINT)
    words = shlex.split(line)

    assert f"ZDO_STATE_DIR={home.state}" in words
    assert f"ZDO_CLAUDE_BIN={home.root}/bin/claude" in words
    assert ["relay", ">/dev/null"] == words[-2:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_needs_a_configuration_that_can_be_read(home, capsys, kind):
    """Else it would fail every minute."""
    home.configure("[nonsense]\n")

    assert asked(kind, INSTALL) == 78
    assert capsys.readouterr().err.startswith("zdo: config-invalid: ")


def test_a_state_folder_that_is_not_ours_gets_no_unit(home, capsys):
    """The relay could not be served from it."""
    Path(home.state).touch()

    assert asked(SYSTEMD, INSTALL) == 73
    assert capsys.readouterr().err.startswith("zdo: spool-unwritable: ")
    assert not any(os.path.lexists(f"{home.root}/{path}") for path in PLACES[SYSTEMD])
