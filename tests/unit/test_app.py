"""The command line as Typer sees it: every word reaches the command that it is for."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import typer

from dispatch import __version__
from dispatch.cli import app
from dispatch.cli.commands import Usage
from dispatch.cli.options import KISS
from dispatch.rig.rig import Rig
from registry.clock import Clock
from registry.home import find_places, open_state
from registry.locks import take_lease
from tests.fakes.envelopes import DELIVERY, P
from tests.fakes.household import ROOT, Household


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in, with a busy session besides T."""
    household = Household(tmp_path)
    household.runs(status="busy")
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


def said(capsys):
    """The object that was printed."""
    return json.loads(capsys.readouterr().out)


GROUPS = {
    "postbox": ["check", "list", "new", "remove", "rotate"],
    "spool": ["drop", "list", "requeue", "show"],
    "target": ["add", "edit", "list", "remove"],
    "unit": ["cron", "launchd", "systemd"],
}


def test_every_command_of_the_application_has_help():
    """A command without a sentence is a riddle."""
    command = typer.main.get_command(app.app)
    groups = {name: command.commands[name] for name in GROUPS}

    assert sorted(command.commands) == [
        "ack", "doctor", "explain", "fsck", "init", "kiss", "postbox", "receipts", "register",
        "relay", "report", "resolve", "selftest", "senders", "sessions", "show", "spool", "target",
        "targets", "unit", "unregister", "verify", "watch",
    ]  # fmt: skip
    assert GROUPS == {name: sorted(group.commands) for name, group in groups.items()}
    for group in (command, *groups.values()):
        assert all(each.help for each in group.commands.values())


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["kiss", "--help"], ["kiss", "-h"]])
def test_help_is_a_success(words, capsys):
    """And says what there is."""
    assert app.run(words) == 0
    assert "Usage: zdo" in capsys.readouterr().out


def test_the_help_of_kiss_names_every_option_and_where_the_sender_comes_from(capsys, monkeypatch):
    """A01: all names in the help text."""
    monkeypatch.setenv("COLUMNS", "500")
    app.run(["kiss", "--help"])
    shown = " ".join(capsys.readouterr().out.split())

    for option in KISS:
        assert option.flag in shown
        assert option.help in shown


def test_the_version_is_that_of_the_package(capsys):
    """`zdo --version`."""
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"zdo {__version__}\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "no command given"),
        (["kiss"], "address"),
        (["kiss", "t", "x", "y"], "too many words"),
        (["kiss", "t", "x", "--wait", "soon"], "--wait"),
        (["kiss", "t", "x", "--wait", "-1"], "--wait"),
        (["kiss", "t", "x", "--key"], "--key"),
        (["frobnicate"], "frobnicate"),
        (["spool"], "Missing command"),
        (["spool", "frobnicate"], "frobnicate"),
        (["spool", "drop"], "delivery"),
        (["spool", "requeue", "x", "--looked"], "--looked"),
        (["unit"], "Missing command"),
        (["relay", "now"], "now"),
        (["relay", "--for", "-1"], "--for"),
        (["relay", "--for", "soon"], "--for"),
        (["verify"], "name a delivery, or give --open"),
        (["verify", "x", "--open"], "name a delivery, or give --open"),
    ],
)
def test_a_complaint_of_typer_is_usage(words, complaint):
    """Its status 2 would be a refused binding."""
    with pytest.raises(Usage, match=complaint) as caught:
        app.run(words)
    assert not str(caught.value).endswith(".")


@pytest.mark.usefixtures("home")
def test_each_option_of_kiss_reaches_the_kiss(capsys, tmp_path):
    """One at a time, by what it changes."""
    note = tmp_path / "note"
    note.write_text("a line of 20 bytes..\n", encoding="ascii")

    assert app.run(["kiss", "--json", "--if-idle", "fable", "x"]) == 75
    assert said(capsys)["class"] == "target-status"
    assert app.run(["kiss", "--json", "--dry-run", "fable", "--file", str(note)]) == 0
    shown = said(capsys)
    assert ("dry-run", 20) == (shown["class"], shown["line"]["bytes"])
    assert app.run(["kiss", "--json", "nobody", "x", "--key", DELIVERY, "--session-id", "me"]) == 67
    shown = said(capsys)
    assert (DELIVERY, "me") == (shown["key"], shown["sender"])
    with pytest.raises(Usage, match="only surfaced"):
        app.run(["kiss", "fable", "x", "--proof", "seen"])
    with pytest.raises(Usage, match="finite"):
        app.run(["kiss", "fable", "x", "--wait", "nan"])


def test_the_lock_timeout_reaches_the_lease(home, capsys):
    """The sentence names it."""
    places = find_places(home.env)
    open_state(places)
    lease = take_lease(places.locks, P, timeout_s=0, clock=Clock())
    status = app.run(["kiss", "fable", "x", "--json", "--lock-timeout", "0.03"])
    lease.close()

    assert status == 75
    assert "for all of 0.03 s" in said(capsys)["reason"]


def test_wait_and_proof_reach_a_delivery(capsys, monkeypatch):
    """A line that is not seen in time is not-surfaced, and says how long it was waited for."""
    with Rig() as rig:
        rig.door(surface_after=None)
        for name, value in rig.env.items():
            monkeypatch.setenv(name, value)
        words = ["kiss", "fable", "x", "--json", "--proof", "surfaced", "--wait", "0.125"]
        assert app.run(words) == 3

    shown = said(capsys)
    assert shown["class"] == "not-surfaced"
    assert shown["reason"].startswith("not in the model's input after 0.")


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["resolve", "fable"], 0),
        (["sessions"], 0),
        (["targets"], 0),
        (["verify", DELIVERY], 67),
        (["show", DELIVERY], 67),
        (["verify", "--open"], 0),
        (["relay"], 0),
        (["relay", "--for", "inf"], 0),
        (["fsck"], 0),
        (["spool", "list"], 0),
        (["spool", "list", "--dead", "--target", "fable"], 0),
        (["spool", "requeue", DELIVERY], 67),
        (["spool", "requeue", DELIVERY, "--i-have-looked"], 67),
        (["spool", "drop", DELIVERY], 67),
    ],
)
def test_each_view_is_reached_and_takes_json(capsys, words, status):
    """The status is the view's own."""
    assert status == app.run([*words, "--json"])
    assert said(capsys)["command"] == words[0]


@pytest.mark.usefixtures("home")
def test_a_line_on_the_shelf_is_shown_as_everywhere(capsys):
    """`zdo spool show` is `zdo show`."""
    assert app.run(["kiss", "fable", "x", "--queue", "--key", DELIVERY]) == 0
    capsys.readouterr()

    shown = [app.run([*words, DELIVERY, "--json"]) or said(capsys)
             for words in (["show"], ["spool", "show"])]  # fmt: skip
    assert shown[0] == shown[1]
    assert "queued" == shown[0]["events"][0]["class"]


@pytest.mark.usefixtures("home")
def test_each_option_of_the_shelf_reaches_it(capsys):
    """--i-have-looked, --dead and --target, one at a time, by what they change."""
    app.run(["kiss", "fable", "x", "--queue", "--key", DELIVERY])
    capsys.readouterr()

    def listed(*words):
        assert app.run(["spool", "list", "--json", *words]) == 0
        return len(said(capsys)["lines"])

    assert [1, 0, 1, 0] == [
        listed(),
        listed("--dead"),
        listed("--target", "fable"),
        listed("--target", "itself"),
    ]
    with closing(sqlite3.connect(f"{os.environ['ZDO_STATE_DIR']}/zdo.db")) as link:
        link.execute("UPDATE line SET state = 13")
        link.commit()
    assert app.run(["spool", "requeue", DELIVERY]) == 3
    assert app.run(["spool", "requeue", DELIVERY, "--i-have-looked"]) == 0
    capsys.readouterr()


@pytest.mark.usefixtures("home")
def test_a_crontab_line_can_be_asked_for(capsys):
    """`zdo unit cron`."""
    assert app.run(["unit", "cron"]) == 0
    assert capsys.readouterr().out.startswith("* * * * * ")


def test_a_shell_can_ask_for_completions(home):
    """Completion speaks on stdout by itself and leaves; its words arrive all the same."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from dispatch.cli.main import main; main()"
    )
    ours = {k: v for k, v in os.environ.items() if k.startswith("COVERAGE_")}
    asked = ours | {"_ZDO_COMPLETE": "complete_bash", "COMP_WORDS": "zdo ses", "COMP_CWORD": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=home.env | asked,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "sessions\n", "") == (ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize(
    "words", [["kiss", "fable", "a", "SECRET"], ["kiss", "fable", "--SECRET is broken"]]
)
def test_a_complaint_about_a_kiss_does_not_quote_the_line(words):
    """The words that do not fit may be the line itself."""
    with pytest.raises(Usage, match="quote the line") as caught:
        app.run(words)

    assert "SECRET" not in str(caught.value)


def test_a_complaint_about_another_command_names_the_word():
    """There it can only be a slip."""
    with pytest.raises(Usage, match="--nonsense"):
        app.run(["targets", "--nonsense"])


def test_a_line_without_its_command_is_not_quoted_either():
    """Whoever forgot the word kiss meant a line all the same."""
    with pytest.raises(Usage) as caught:
        app.run(["SECRET plan"])

    assert "SECRET" not in str(caught.value)
