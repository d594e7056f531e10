"""The words of those who read along, as Typer sees them."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import reading
from dispatch.cli.commands import Usage
from dispatch.cli.words import Json, Speaker, Work
from dispatch.levels import LEVELS
from dispatch.reader import ASC, DESC, LIMIT, MOST, Narrow
from dispatch.verdict import TABLE

app_readers = typer.Typer()

_ORDERS = (ASC, DESC)
_NO_MOVE = "The cursor does not move then."


@app_readers.command(
    epilog="Examples: zdo receipts --limit 20 --order desc; "
    "zdo receipts --resume --json | jq '.events[].class'"
)
def receipts(
    *,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on after what this session has read.")
    ] = False,
    peek: Annotated[bool, typer.Option("--peek", help="Do not move the cursor.")] = False,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="The first --resume begins at the first entry.")
    ] = False,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="N", help="Go on after entry N.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MOST, metavar="N", help=f"A page; {LIMIT} else.")
    ] = LIMIT,
    order: Annotated[
        str, typer.Option("--order", metavar="asc|desc", help="Oldest or newest first.")
    ] = ASC,
    target: Annotated[
        str | None, typer.Option("--target", metavar="TARGET", help=f"Only to it. {_NO_MOVE}")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--class", metavar="CLASS", help=f"Only of it. {_NO_MOVE}")
    ] = None,
    correlation: Annotated[
        str | None,
        typer.Option("--correlation", metavar="KEY", help=f"Only of this delivery. {_NO_MOVE}"),
    ] = None,
    level: Annotated[
        str | None, typer.Option("--level", metavar="|".join(LEVELS), help="At least of it.")
    ] = None,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Read the journal, page by page; with --resume each entry once."""
    _check(resume=resume, from_start=from_start, cursor=cursor)
    _one_of("--order", order, _ORDERS)
    _one_of("--level", level, LEVELS)
    if name not in (None, *TABLE):
        raise Usage("--class takes a class as zdo show names it")
    asked = reading.Asked(
        session_id=session_id,
        resume=resume,
        peek=peek,
        from_start=from_start,
        cursor=cursor,
        limit=limit,
        order=order,
        narrow=Narrow(target=target, name=name, correlation=correlation, level=level),
        as_object=json,
    )
    return partial(reading.receipts, asked)


@app_readers.command()
def ack(
    *,
    cursor: Annotated[
        str, typer.Option("--cursor", metavar="N", help="The last entry that was read.")
    ],
    rewind: Annotated[
        bool, typer.Option("--allow-rewind", help="N may be behind; what is after comes again.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Say how far this session has read."""
    return partial(reading.ack, session_id, cursor, rewind=rewind, as_object=json)


@app_readers.command()
def register(
    *,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="For people.")] = None,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Give a session a cursor; only --session-id says which, no variable does."""
    return partial(reading.register, session_id, name, as_object=json)


@app_readers.command()
def unregister(*, session_id: Speaker = None, json: Json = False) -> Work:
    """Let a session read no more, and get no lines; zdo register takes it back."""
    return partial(reading.unregister, session_id, as_object=json)


@app_readers.command()
def senders(*, session_id: Speaker = None, json: Json = False) -> Work:
    """List the sessions that are registered, or were."""
    return partial(reading.every_sender, session_id, as_object=json)


def _check(*, resume: bool, from_start: bool, cursor: str | None) -> None:
    if resume and cursor is not None:
        raise Usage("--resume goes on where the session stands, so it goes without --cursor")
    if from_start and not resume:
        raise Usage("--from-start is for the first --resume")


def _one_of(option: str, given: str | None, words: tuple[str, ...]) -> None:
    if given is not None and given not in words:
        raise Usage(f"{option} knows only {', '.join(words)}")
