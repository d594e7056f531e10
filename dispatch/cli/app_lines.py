"""Typer's words for lines on their way: kiss, verify, show, relay, fsck, spool."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import commands, relaying, spooling, views
from dispatch.cli.options import KissArgs
from dispatch.cli.words import (
    HELP,
    Delivery,
    Json,
    MaybeAddress,
    MaybeDelivery,
    Speaker,
    Work,
)
from dispatch.errand import LOCK_TIMEOUT_S, WAIT_S
from dispatch.relay import PASS_S

app_lines = typer.Typer()
_spool = typer.Typer(help="The lines that are kept for the relay.", rich_markup_mode=None)
app_lines.add_typer(_spool, name="spool")

_FOR_HELP = f"Start no carrier after so long; {PASS_S:g} if not given."


@app_lines.command(
    epilog="Examples: zdo kiss fable 'tests are green'; "
    "make 2>&1 | tail -1 | zdo kiss fable -; zdo kiss --json fable 'done' | jq .class"
)
def kiss(
    address: MaybeAddress = None,
    line: Annotated[
        str | None, typer.Argument(help="The line; - reads stdin; after -- it may begin with -.")
    ] = None,
    *,
    json: Json = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=HELP["--dry-run"])] = False,
    if_idle: Annotated[bool, typer.Option("--if-idle", help=HELP["--if-idle"])] = False,
    queue: Annotated[bool, typer.Option("--queue", help=HELP["--queue"])] = False,
    or_queue: Annotated[bool, typer.Option("--or-queue", help=HELP["--or-queue"])] = False,
    sign: Annotated[bool, typer.Option("--sign", help=HELP["--sign"])] = False,
    reply: Annotated[
        str | None, typer.Option("--reply", metavar="DELIVERY", help=HELP["--reply"])
    ] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help=HELP["--file"])] = None,
    session_id: Speaker = None,
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help=HELP["--key"])] = None,
    proof: Annotated[
        str | None, typer.Option("--proof", metavar="surfaced", help=HELP["--proof"])
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", min=0, metavar="SECONDS", help=HELP["--wait"])
    ] = WAIT_S,
    lock_timeout: Annotated[
        float,
        typer.Option("--lock-timeout", min=0, metavar="SECONDS", help=HELP["--lock-timeout"]),
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
        sign=sign,
        reply=reply,
        file=file,
        session_id=session_id,
        key=key,
        proof=proof,
        wait=wait,
        lock_timeout=lock_timeout,
    )
    return partial(commands.kiss, args)


@app_lines.command()
def verify(
    delivery: MaybeDelivery = None,
    *,
    every_open: Annotated[
        bool, typer.Option("--open", help="Every delivery that is not over yet.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Ask the target's transcript again; raises or settles a verdict, never lowers it."""
    if (delivery is None) != every_open:
        raise commands.Usage("name a delivery, or give --open")
    if delivery is None:
        return partial(spooling.verify_open, session_id, as_object=json)
    return partial(views.verify, delivery, session_id, as_object=json)


@app_lines.command()
def show(delivery: Delivery, *, session_id: Speaker = None, json: Json = False) -> Work:
    """Tell everything known of one delivery; the line itself is never shown."""
    return partial(views.show, delivery, session_id, as_object=json)


@app_lines.command()
def relay(
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Stay, and wake on new lines.")] = False,
    seconds: Annotated[
        float, typer.Option("--for", min=0, metavar="SECONDS", help=_FOR_HELP)
    ] = PASS_S,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Deliver what is due: one pass, for cron and timers."""
    return partial(relaying.relay, session_id, follow=follow, seconds=seconds, as_object=json)


@app_lines.command()
def fsck(*, session_id: Speaker = None, json: Json = False) -> Work:
    """Check the spool; a damaged file is kept in corrupt/ and what is whole is saved."""
    return partial(spooling.fsck, session_id, as_object=json)


@_spool.command("list")
def spool_list(
    *,
    dead: Annotated[bool, typer.Option("--dead", help="Only dead letters.")] = False,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help="Only lines to it.")
    ] = None,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """List the kept lines and what holds them."""
    return partial(spooling.listing, session_id, dead=dead, target=target, as_object=json)


@_spool.command("show")
def spool_show(delivery: Delivery, *, session_id: Speaker = None, json: Json = False) -> Work:
    """Tell everything known of one kept line, as zdo show does."""
    return partial(views.show, delivery, session_id, as_object=json)


@_spool.command("requeue")
def spool_requeue(
    delivery: Delivery,
    *,
    looked: Annotated[
        bool,
        typer.Option("--i-have-looked", help="It is in doubt, and I know that it did not arrive."),
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Let the relay try a dead line again; one in doubt only if you have looked."""
    return partial(spooling.requeue, delivery, session_id, looked=looked, as_object=json)


@_spool.command("drop")
def spool_drop(delivery: Delivery, *, session_id: Speaker = None, json: Json = False) -> Work:
    """Give a kept line up; its key stays taken."""
    return partial(spooling.drop, delivery, session_id, as_object=json)
