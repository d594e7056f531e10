"""The command line as Typer sees it: words, help and examples; the work is in commands.py."""

from __future__ import annotations

import contextlib
import io
from typing import Annotated

import typer

from dispatch import __version__
from dispatch.cli import commands, views
from dispatch.cli.options import KISS, SENDER_HELP, KissArgs
from dispatch.cli.speech import speak

_HELP_WORDS = {"-h", "--help", "--show-completion", "--install-completion"}
_HELP = {option.flag: option.help for option in KISS}

app = typer.Typer(
    help="Tell a running Claude Code session something, and know how far it got.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help=_HELP["--json"])]
Address = Annotated[
    str,
    typer.Argument(help="A configured target, a session id, name:NAME or a bare name."),
]
Delivery = Annotated[str, typer.Argument(help="A delivery id, as kiss printed it.")]


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        raise typer.Exit(speak([f"zdo {__version__}"]))
    if context.invoked_subcommand is None:
        raise commands.Usage("no command given")


@app.command(
    epilog=f"{SENDER_HELP}  Examples: zdo kiss fable 'tests are green'; "
    "make 2>&1 | tail -1 | zdo kiss fable -; zdo kiss --json fable 'done' | jq .class"
)
def kiss(
    address: Address,
    line: Annotated[
        str | None, typer.Argument(help="The line; - reads stdin; after -- it may begin with -.")
    ] = None,
    *,
    json: Json = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_HELP["--dry-run"])] = False,
    if_idle: Annotated[bool, typer.Option("--if-idle", help=_HELP["--if-idle"])] = False,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help=_HELP["--file"])
    ] = None,
    session_id: Annotated[
        str | None, typer.Option("--session-id", metavar="ID", help=_HELP["--session-id"])
    ] = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help=_HELP["--key"])] = None,
    proof: Annotated[
        str | None, typer.Option("--proof", metavar="surfaced", help=_HELP["--proof"])
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help=_HELP["--wait"])
    ] = 30.0,
    lock_timeout: Annotated[
        float,
        typer.Option("--lock-timeout", min=0, metavar="SECONDS", help=_HELP["--lock-timeout"]),
    ] = 60.0,
) -> None:
    """Put one line into a running session, now, and say how far it got."""
    raise typer.Exit(
        commands.kiss(
            KissArgs(
                address=address,
                line=line,
                json=json,
                dry_run=dry_run,
                if_idle=if_idle,
                file=file,
                session_id=session_id,
                key=key,
                proof=proof,
                wait=wait,
                lock_timeout=lock_timeout,
            )
        )
    )


@app.command()
def resolve(address: Address, *, json: Json = False) -> None:
    """Show both sessions, the checks and the route; start nothing."""
    raise typer.Exit(views.resolve(address, as_object=json))


@app.command()
def sessions(*, json: Json = False) -> None:
    """List running sessions, and the skipped rows with their reasons."""
    raise typer.Exit(views.sessions(as_object=json))


@app.command()
def targets(*, json: Json = False) -> None:
    """List configured targets and their postboxes."""
    raise typer.Exit(views.targets(as_object=json))


@app.command()
def verify(delivery: Delivery, *, json: Json = False) -> None:
    """Ask the target's transcript again; raises or settles a verdict, never lowers it."""
    raise typer.Exit(views.verify(delivery, as_object=json))


@app.command()
def show(delivery: Delivery, *, json: Json = False) -> None:
    """Tell everything known of one delivery; the line itself is never shown."""
    raise typer.Exit(views.show(delivery, as_object=json))


def run(argv: list[str]) -> int:
    """The exit status of *argv*; Typer's complaints become Usage."""
    page = _Page()
    # Typer prints its help by itself, and would meet a full or closed stdout in its own way.
    shown = contextlib.redirect_stdout(page) if _HELP_WORDS & {*argv} else contextlib.nullcontext()
    try:
        with shown:
            status = app(argv, prog_name="zdo", standalone_mode=False)
    except typer.TyperException as error:
        raise commands.Usage(error.format_message().rstrip(".")) from error
    lost = speak(page.getvalue().splitlines())
    return (status if isinstance(status, int) else 0) or lost


class _Page(io.StringIO):
    encoding = "utf-8"
