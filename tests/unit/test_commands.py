"""Four steps: check the words, assemble, call, say it."""

from __future__ import annotations

import json
import sys

import pytest

from dispatch.cli import commands
from dispatch.cli.options import KissArgs
from dispatch.result import Result
from dispatch.verdict import TABLE
from tests.fakes.envelopes import DELIVERY, P, T
from tests.fakes.evidence import OTHER
from tests.fakes.household import ROOT, Household


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A household that this process lives in, with T running."""
    household = Household(tmp_path)
    household.runs()
    for name, value in household.env.items():
        monkeypatch.setenv(name, value)
    yield household
    household.registry.close()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"line": None}, "once"),
        ({"file": "x"}, "once"),
        ({"proof": "seen"}, "--proof knows only surfaced"),
        ({"proof": ""}, "--proof knows only surfaced"),
        ({"key": ""}, "1 to 200 bytes"),
        ({"key": "é" * 101}, "1 to 200 bytes"),
        ({"key": "\udcff"}, "UTF-8"),
        ({"wait": float("nan")}, "finite"),
        ({"lock_timeout": float("nan")}, "finite"),
        ({"lock_timeout": float("inf")}, "finite"),
        ({"queue": True, "or_queue": True}, "--queue starts nothing"),
        ({"queue": True, "dry_run": True}, "--queue starts nothing"),
        ({"queue": True, "proof": "surfaced"}, "--queue starts nothing"),
    ],
)
def test_words_that_no_kiss_understands_are_usage(changes, words):
    """Nothing is read, kept or started for them."""
    with pytest.raises(commands.Usage, match=words):
        commands.kiss(KissArgs(**({"address": "fable", "line": "x"} | changes)))


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "key", ["k", "é" * 100, "two words", "a\nb", "\N{ZERO WIDTH JOINER}", DELIVERY]
)
def test_any_text_of_200_bytes_is_a_key(capsys, key):
    """INTERFACE 7: a key is the caller's own."""
    assert commands.kiss(KissArgs("nobody", "x", key=key, json=True)) == 67
    assert key == json.loads(capsys.readouterr().out)["key"]


@pytest.mark.usefixtures("home")
def test_a_refusal_is_one_line_on_stderr(capsys):
    """Class, reason, what to do; stdout stays empty."""
    status = commands.kiss(KissArgs("itself", "x"))
    said = capsys.readouterr()

    assert status == 2
    assert said.out == ""
    assert said.err == (
        f"zdo: carrier-misbound: target itself and its postbox are one session, {P};"
        " give the target a postbox of its own\n"
    )


@pytest.mark.usefixtures("home")
def test_with_json_a_refusal_is_an_object_and_a_line(capsys):
    """Both forms; stdout holds exactly one object."""
    commands.kiss(KissArgs("itself", "x", json=True))
    said = capsys.readouterr()

    assert json.loads(said.out)["class"] == "carrier-misbound"
    assert said.err.startswith("zdo: carrier-misbound: ")


@pytest.mark.usefixtures("home")
def test_a_dry_run_shows_what_would_start(capsys):
    """Both sessions, argv, names."""
    assert commands.kiss(KissArgs("fable", "x", dry_run=True)) == 0
    shown = capsys.readouterr().out.splitlines()

    assert shown[0].startswith(f"target   {T}  fable")
    assert shown[1] == f"postbox  {P}"
    assert shown[2] == "argv"


@pytest.mark.usefixtures("home")
def test_a_queued_line_is_one_sentence(capsys):
    """With 0, and nothing on stderr; as an object it has the fields of every kiss."""
    assert commands.kiss(KissArgs("fable", "x", queue=True, key=DELIVERY)) == 0
    assert capsys.readouterr() == (f"queued: fable; delivery {DELIVERY}\n", "")
    assert commands.kiss(KissArgs("fable", "y", queue=True, json=True)) == 0
    shown = json.loads(capsys.readouterr().out)

    assert ("queued", 0, "queued", "none", None, None) == tuple(
        shown[name] for name in ("class", "exit", "state", "proof", "attempt", "advice")
    )


@pytest.mark.usefixtures("home")
def test_a_kiss_that_may_wait_says_why_it_does(capsys):
    """--or-queue after a refusal that time may mend: 0, and the class that it would have had."""
    assert commands.kiss(KissArgs(OTHER, "x", or_queue=True, json=True)) == 0
    told = capsys.readouterr()
    shown = json.loads(told.out)
    assert ("queued", 0, "") == (shown["class"], shown["exit"], told.err)
    assert shown["reason"].startswith(f"target-not-running: target {OTHER} is not running")

    assert commands.kiss(KissArgs("nobody", "x", or_queue=True)) == 67
    assert capsys.readouterr().err.startswith("zdo: target-unknown: ")


@pytest.mark.usefixtures("home")
def test_the_sender_is_the_option_else_the_environment(capsys, monkeypatch):
    """A01, through the command."""
    monkeypatch.setenv("ZDO_SESSION_ID", "from-env")
    for option, expected in ((None, "from-env"), ("from-option", "from-option")):
        commands.kiss(KissArgs("nobody", "x", json=True, session_id=option))
        assert expected == json.loads(capsys.readouterr().out)["sender"]


def test_a_delivery_is_one_line_on_stdout(capsys):
    """And nothing on stderr."""
    result = Result(command="kiss", verdict=TABLE["surfaced"])

    assert commands.say(result, ["surfaced: fable"], as_object=False) == 0
    assert capsys.readouterr() == ("surfaced: fable\n", "")


def test_a_command_that_got_nowhere_still_says_its_class(capsys):
    """Without a result of its own."""
    assert commands.fail("sessions", "usage", "odd words", as_object=True) == 64
    said = capsys.readouterr()

    assert json.loads(said.out)["command"] == "sessions"
    assert said.err == "zdo: usage: odd words; see zdo --help\n"


def test_the_house_is_the_machine(home):
    """Environment, folders, interpreter, and the folder of our packages."""
    house = commands.this_house()

    assert house.places.state == home.state
    assert (sys.executable, ROOT) == (house.python, house.root)


@pytest.mark.parametrize("more", [{"dry_run": True}, {"proof": "surfaced"}])
def test_a_line_that_may_be_kept_has_no_dry_run_and_no_proof(more):
    """--or-queue might keep it, and then neither would be true."""
    with pytest.raises(commands.Usage, match="--or-queue"):
        commands.kiss(KissArgs("fable", "x", or_queue=True, **more))


def test_a_relay_that_never_began_says_the_object_of_a_relay(capsys):
    """A script that reads `runs` and `left` finds them in every object of the command."""
    assert commands.fail("relay", "usage", "odd words", as_object=True) == 64

    told = json.loads(capsys.readouterr().out)
    assert ("relay", "usage", 0, 0) == (told["command"], told["class"], told["runs"], told["left"])
