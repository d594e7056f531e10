"""The words of the commands about the session that carries: init, postbox, selftest."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.birth import NAME
from dispatch.cli import beginning, postboxing, selftesting
from dispatch.cli.completing import target_ids
from dispatch.cli.words import Json, Speaker, Work

app_postbox = typer.Typer(rich_markup_mode=None)
_postbox = typer.Typer(help="The sessions that carry.", rich_markup_mode=None)
app_postbox.add_typer(_postbox, name="postbox")

For = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="TARGET",
        help="That of this target alone; else the station's.",
        autocompletion=target_ids,
    ),
]
Name = Annotated[
    str, typer.Option("--name", metavar="NAME", help="The display name of the session.")
]
Over = Annotated[
    float | None,
    typer.Option("--over", min=0, metavar="MIB", help="Only if its transcript is larger."),
]


@app_postbox.command()
def init(*, session_id: Speaker = None, json: Json = False) -> Work:
    """Make what a kiss needs: folders, a postbox, the configuration; or say what is missing."""
    return partial(beginning.init, session_id, as_object=json)


@app_postbox.command()
def selftest(
    *,
    rig: Annotated[
        bool, typer.Option("--rig", help="With the embedded rig instead of Claude Code.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Try it live, with a session that is thrown away, and without a model call."""
    return partial(selftesting.selftest, session_id, with_rig=rig, as_object=json)


@_postbox.command("new")
def postbox_new(
    *, target: For = None, name: Name = NAME, session_id: Speaker = None, json: Json = False
) -> Work:
    """Make a postbox without a model call, and put it into the configuration."""
    return partial(postboxing.new, target, name, session_id, as_object=json)


@_postbox.command("list")
def postbox_list(*, session_id: Speaker = None, json: Json = False) -> Work:
    """List the postboxes: who uses each, its size and age, and whether it can carry."""
    return partial(postboxing.listing, session_id, as_object=json)


@_postbox.command("check")
def postbox_check(
    *,
    touch: Annotated[
        bool, typer.Option("--touch", help="Keep them young: Claude Code removes cold ones.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Say whether each postbox can carry, and what mends one that cannot."""
    return partial(postboxing.check, session_id, touch=touch, as_object=json)


@_postbox.command("rotate")
def postbox_rotate(
    *,
    target: For = None,
    over: Over = None,
    name: Name = NAME,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Put a new postbox in the place of the old one, which nothing carries through meanwhile."""
    return partial(postboxing.rotate, target, over, name, session_id, as_object=json)


@_postbox.command("remove")
def postbox_remove(
    postbox: Annotated[str, typer.Argument(metavar="ID", help="Its session id.")],
    *,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Take a postbox out of the configuration and remove it; never one that somebody works in."""
    return partial(postboxing.remove, postbox, session_id, as_object=json)
