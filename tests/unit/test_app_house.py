"""The words of doctor and unit, as Typer reads them."""

from __future__ import annotations

import pytest
import typer

from dispatch.cli import app_house
from dispatch.cli.commands import Usage
from dispatch.cli.options import SENDER_HELP
from dispatch.cli.starting import Wish
from dispatch.sender import VARIABLES

KINDS = ("cron", "systemd", "launchd")


def work(*words):
    """What *words* ask for: the function and what it is given."""
    app = typer.Typer()
    app.add_typer(app_house.app_house)
    asked = app(list(words), prog_name="zdo", standalone_mode=False)
    return asked.func.__name__, asked.args, asked.keywords


def test_doctor_takes_a_sender_and_a_form():
    """As every command does."""
    assert ("doctor", (None,), {"as_object": False}) == work("doctor")
    assert ("doctor", ("me",), {"as_object": True}) == work(
        "doctor", "--json", "--session-id", "me"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wish", ["print", "install", "uninstall", "status"])
def test_a_unit_takes_one_wish(kind, wish):
    """Without an option it is printed, under the usual label."""
    words = [] if wish == "print" else [f"--{wish}"]

    plain = {"as_object": False}
    assert ("unit", (Wish(kind, "zdo-relay", wish), None), plain) == work("unit", kind, *words)
    whole = {"as_object": True}
    assert ("unit", (Wish(kind, "zdo-relay", wish), "me"), whole) == work(
        "unit", kind, "--json", "--session-id", "me", *words
    )
    with pytest.raises(Usage):
        work("unit", kind, "--install", "--uninstall")


@pytest.mark.parametrize("kind", ["systemd", "launchd"])
def test_a_unit_takes_a_label(kind):
    """For a second state folder; cron has none."""
    words = ["--install", "--label", "x"]
    assert ("unit", (Wish(kind, "x", "install"), None), {"as_object": False}) == work(
        "unit", kind, *words
    )


@pytest.mark.parametrize("words", [["doctor"], *(["unit", kind] for kind in KINDS)])
def test_the_help_names_every_source_of_the_sender(capsys, words):
    """A01: in every help text."""
    app = typer.Typer(rich_markup_mode=None)
    app.add_typer(app_house.app_house)

    app([*words, "--help"], prog_name="zdo", standalone_mode=False)

    shown = " ".join(capsys.readouterr().out.split())
    assert all(name in shown for name in VARIABLES)
    assert SENDER_HELP.split(maxsplit=1)[0] in shown
