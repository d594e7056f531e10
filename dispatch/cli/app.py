"""The command line as Typer sees it: words, help and examples.

A command hands back its work instead of doing it, so that Typer's own handling
of Ctrl-C and of broken pipes never meets it.
"""

from __future__ import annotations

import contextlib
import io
from typing import Annotated

import typer

from dispatch import __version__
from dispatch.cli import commands
from dispatch.cli.app_config import app_config
from dispatch.cli.app_house import app_house
from dispatch.cli.app_lines import app_lines
from dispatch.cli.app_people import app_people
from dispatch.cli.app_postbox import app_postbox
from dispatch.cli.app_readers import app_readers
from dispatch.cli.app_views import app_views
from dispatch.cli.options import KISS
from dispatch.cli.speech import speak

app = typer.Typer(
    help="Tell a running Claude Code session something, and know how far it got.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (app_lines, app_people, app_readers, app_config, app_postbox, app_views, app_house):
    app.add_typer(part)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"zdo {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise commands.Usage("no command given")


def run(argv: list[str]) -> int:
    """The exit status of *argv*; Typer's complaints become Usage."""
    page = _Page()
    # Typer prints its help by itself, and would meet a full or closed stdout in its own way.
    with contextlib.redirect_stdout(page):
        try:
            asked = app(argv, prog_name="zdo", standalone_mode=False)
        except typer.TyperException as error:
            raise commands.Usage(_worded(error, argv)) from error
        except SystemExit as leaving:
            asked = leaving.code  # shell completion has said what it had to say
    if callable(asked):
        return int(asked())
    lost = speak(page.getvalue().splitlines())
    return asked if isinstance(asked, int) and asked else lost


def _worded(error: typer.TyperException, argv: list[str]) -> str:
    """Typer's complaint; in our words where his may quote the line."""
    said = error.format_message().rstrip(".")
    quotes = any(" " in word and word in said for word in argv)
    if said.startswith("Missing argument") or not (quotes or argv[:1] == ["kiss"]):
        return said
    flag = next((option.flag for option in KISS if f"'{option.flag}'" in said), None)
    if flag is not None:
        return f"{flag} lacks a value, or cannot take this one"
    return "too many words or an unknown option: quote the line, and put -- before it if it has a -"


class _Page(io.StringIO):
    encoding = "utf-8"
