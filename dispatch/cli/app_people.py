"""Typer's words for who is who: resolve, sessions, targets."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import views
from dispatch.cli.words import Address, Json, Speaker, Work

app_people = typer.Typer()


@app_people.command()
def resolve(address: Address, *, session_id: Speaker = None, json: Json = False) -> Work:
    """Show both sessions, the checks and the route; start nothing."""
    return partial(views.resolve, address, session_id, as_object=json)


@app_people.command()
def sessions(
    *,
    every: Annotated[
        bool, typer.Option("--all", help="The skipped rows too, and what could not be seen.")
    ] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """List running sessions: what each does, works on, and whether its door answers."""
    return partial(views.sessions, session_id, every=every, as_object=json)


@app_people.command()
def targets(*, session_id: Speaker = None, json: Json = False) -> Work:
    """List configured targets and their postboxes."""
    return partial(views.targets, session_id, as_object=json)
