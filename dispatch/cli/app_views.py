"""The words of the commands about the whole at a glance: watch, report."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import watching
from dispatch.cli.watching import INTERVAL_S
from dispatch.cli.words import Json, Speaker, Work

app_views = typer.Typer(rich_markup_mode=None)


@app_views.command()
def watch(
    *,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="How often it is drawn anew.")
    ] = INTERVAL_S,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Show who runs, what waits, what needs you, and the last verdicts; Ctrl-C ends it."""
    return partial(watching.watch, session_id, interval=interval, once=once, as_object=json)
