"""The words of the commands about the whole at a glance: watch, report."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import reporting, watching
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


@app_views.command()
def report(
    *,
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="WHEN", help="30m, 12h, 7d, 2w, an ISO date (UTC), or all."
        ),
    ] = reporting.SINCE,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="T", help="Only deliveries to this address or session."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write it as one page; - is stdout."),
    ] = None,
    session_id: Speaker = None,
    json: Json = False,
) -> Work:
    """Count what became of deliveries: by verdict, day and target, and how long they took."""
    asked = reporting.Asked(session_id, since, target, html, as_object=json)
    return partial(reporting.report, asked)
