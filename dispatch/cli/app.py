"""The command line as Typer sees it: words, help and examples.

A command hands back its work instead of doing it, so that Typer's own handling
of Ctrl-C and of broken pipes never meets it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from dispatch import __version__
from dispatch.cli import commands, relaying, spooling, views
from dispatch.cli.options import KISS, SENDER_HELP, KissArgs
from dispatch.cli.speech import speak
from dispatch.errand import LOCK_TIMEOUT_S, WAIT_S
from dispatch.relay import PASS_S

_HELP = {option.flag: option.help for option in KISS}

app = typer.Typer(
    help="Tell a running Claude Code session something, and know how far it got.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_spool = typer.Typer(help="The lines that are kept for the relay.", rich_markup_mode=None)
_unit = typer.Typer(help="How the relay is started by others.", rich_markup_mode=None)
app.add_typer(_spool, name="spool")
app.add_typer(_unit, name="unit")

Work = Callable[[], int]
_FOR_HELP = f"Start no carrier after so long; {PASS_S:g} if not given."
Json = Annotated[bool, typer.Option("--json", help=_HELP["--json"])]
Address = Annotated[
    str,
    typer.Argument(help="A configured target, a session id, name:NAME or a bare name."),
]
_DELIVERY_HELP = "A delivery id, as kiss printed it."
Delivery = Annotated[str, typer.Argument(help=_DELIVERY_HELP)]


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
    queue: Annotated[bool, typer.Option("--queue", help=_HELP["--queue"])] = False,
    or_queue: Annotated[bool, typer.Option("--or-queue", help=_HELP["--or-queue"])] = False,
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
    ] = WAIT_S,
    lock_timeout: Annotated[
        float,
        typer.Option("--lock-timeout", min=0, metavar="SECONDS", help=_HELP["--lock-timeout"]),
    ] = LOCK_TIMEOUT_S,
) -> Work:
    """Put one line into a running session, now, and say how far it got."""
    args = KissArgs(
        address=address,
        line=line,
        json=json,
        dry_run=dry_run,
        if_idle=if_idle,
        queue=queue,
        or_queue=or_queue,
        file=file,
        session_id=session_id,
        key=key,
        proof=proof,
        wait=wait,
        lock_timeout=lock_timeout,
    )
    return partial(commands.kiss, args)


@app.command()
def resolve(address: Address, *, json: Json = False) -> Work:
    """Show both sessions, the checks and the route; start nothing."""
    return partial(views.resolve, address, as_object=json)


@app.command()
def sessions(*, json: Json = False) -> Work:
    """List running sessions, and the skipped rows with their reasons."""
    return partial(views.sessions, as_object=json)


@app.command()
def targets(*, json: Json = False) -> Work:
    """List configured targets and their postboxes."""
    return partial(views.targets, as_object=json)


@app.command()
def verify(
    delivery: Annotated[str | None, typer.Argument(help=_DELIVERY_HELP)] = None,
    *,
    every_open: Annotated[
        bool, typer.Option("--open", help="Every delivery that is not over yet.")
    ] = False,
    json: Json = False,
) -> Work:
    """Ask the target's transcript again; raises or settles a verdict, never lowers it."""
    if (delivery is None) != every_open:
        raise commands.Usage("name a delivery, or give --open")
    if delivery is None:
        return partial(spooling.verify_open, as_object=json)
    return partial(views.verify, delivery, as_object=json)


@app.command()
def show(delivery: Delivery, *, json: Json = False) -> Work:
    """Tell everything known of one delivery; the line itself is never shown."""
    return partial(views.show, delivery, as_object=json)


@app.command()
def relay(
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Stay, and wake on new lines.")] = False,
    seconds: Annotated[
        float, typer.Option("--for", min=0, metavar="SECONDS", help=_FOR_HELP)
    ] = PASS_S,
    json: Json = False,
) -> Work:
    """Deliver what is due: one pass, for cron and timers."""
    return partial(relaying.relay, follow=follow, seconds=seconds, as_object=json)


@app.command()
def fsck(*, json: Json = False) -> Work:
    """Check the spool; a damaged file is kept in corrupt/ and what is whole is saved."""
    return partial(spooling.fsck, as_object=json)


@_spool.command("list")
def spool_list(
    *,
    dead: Annotated[bool, typer.Option("--dead", help="Only dead letters.")] = False,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="Only lines to it.")
    ] = None,
    json: Json = False,
) -> Work:
    """List the kept lines and what holds them."""
    return partial(spooling.listing, dead=dead, target=target, as_object=json)


@_spool.command("show")
def spool_show(delivery: Delivery, *, json: Json = False) -> Work:
    """Tell everything known of one kept line, as zdo show does."""
    return partial(views.show, delivery, as_object=json)


@_spool.command("requeue")
def spool_requeue(
    delivery: Delivery,
    *,
    looked: Annotated[
        bool,
        typer.Option("--i-have-looked", help="It is in doubt, and I know that it did not arrive."),
    ] = False,
    json: Json = False,
) -> Work:
    """Let the relay try a dead line again; one in doubt only if you have looked."""
    return partial(spooling.requeue, delivery, looked=looked, as_object=json)


@_spool.command("drop")
def spool_drop(delivery: Delivery, *, json: Json = False) -> Work:
    """Give a kept line up; its key stays taken."""
    return partial(spooling.drop, delivery, as_object=json)


@_unit.command("cron")
def unit_cron() -> Work:
    """Print the crontab line that runs the relay every minute."""
    return spooling.unit_cron


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
