"""The words of the commands about what zdo is told, and what its words mean: target, explain."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import configuring, explaining, views
from dispatch.cli.commands import Usage
from dispatch.cli.completing import classes, target_ids
from dispatch.cli.words import Json, Speaker, Work

app_config = typer.Typer(rich_markup_mode=None)
_target = typer.Typer(help="The configured recipients.", rich_markup_mode=None)
app_config.add_typer(_target, name="target")

NewName = Annotated[str, typer.Argument(metavar="NAME", help="What it is to be called.")]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="A configured target.", autocompletion=target_ids)
]
Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="It is the session with this id.")
]
Display = Annotated[
    str | None, typer.Option("--name", metavar="NAME", help="It is who bears this display name.")
]
Ticket = Annotated[
    str | None, typer.Option("--ticket", metavar="TK-N", help="It is who works on this ticket.")
]
Pane = Annotated[
    str | None,
    typer.Option("--tsid", metavar="PANE", help="It is who runs in this pane: TERM_SESSION_ID."),
]
Carrier = Annotated[
    str | None,
    typer.Option(
        "--carrier", metavar="POSTBOX", help="A postbox of its own: a session id, or a target."
    ),
]


@_target.command("add")
def target_add(
    name: NewName,
    *,
    session: Session = None,
    display: Display = None,
    ticket: Ticket = None,
    tsid: Pane = None,
    carrier: Carrier = None,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Put a new target into the configuration."""
    given = {"session": session, "name": display, "ticket": ticket, "tsid": tsid}
    wish = configuring.wish_of(configuring.ADD, name, given, carrier)
    return partial(configuring.target, wish, session_id, as_object=json)


@_target.command("edit")
def target_edit(
    name: Name,
    *,
    session: Session = None,
    display: Display = None,
    ticket: Ticket = None,
    tsid: Pane = None,
    carrier: Carrier = None,
    no_carrier: Annotated[
        bool, typer.Option("--no-carrier", help="No postbox of its own: the station's.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Change what is given of a target, and leave the rest."""
    if no_carrier and carrier is not None:
        raise Usage("give --carrier or --no-carrier")
    given = {"session": session, "name": display, "ticket": ticket, "tsid": tsid}
    postbox = "" if no_carrier else carrier
    wish = configuring.wish_of(configuring.EDIT, name, given, postbox)
    return partial(configuring.target, wish, session_id, as_object=json)


@_target.command("remove")
def target_remove(name: Name, *, session_id: Speaker = None, json: Json = False) -> Work:
    """Take a target out of the configuration."""
    wish = configuring.Wish(configuring.REMOVE, name)
    return partial(configuring.target, wish, session_id, as_object=json)


@_target.command("list")
def target_list(*, session_id: Speaker = None, json: Json = False) -> Work:
    """List configured targets and their postboxes, as zdo targets does."""
    return partial(views.targets, session_id, as_object=json)


@app_config.command()
def explain(
    word: Annotated[
        str | None,
        typer.Argument(metavar="CLASS", help="A class, or an exit status.", autocompletion=classes),
    ] = None,
    *,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Tell what a class means: what is known, whether repeating is safe, what to do."""
    return partial(explaining.explain, word, session_id, as_object=json)
