"""The words of the commands about the house itself: doctor, unit."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from dispatch.cli import checking, starting
from dispatch.cli.words import Json, Speaker, Work
from dispatch.units import LABEL

app_house = typer.Typer(rich_markup_mode=None)
_unit = typer.Typer(help="How the relay is started by others.", rich_markup_mode=None)
app_house.add_typer(_unit, name="unit")

_CRONTAB = "Say the one command that {} the crontab; by itself this changes nothing."
CronInstall = Annotated[bool, typer.Option("--install", help=_CRONTAB.format("puts the line into"))]
CronUninstall = Annotated[
    bool, typer.Option("--uninstall", help=_CRONTAB.format("takes the line out of"))
]
Install = Annotated[
    bool, typer.Option("--install", help="Put it in its place; say the one command to run next.")
]
Uninstall = Annotated[
    bool, typer.Option("--uninstall", help="Take it away; say the one command to run next.")
]
Status = Annotated[
    bool, typer.Option("--status", help="Say what is in its place, and whether it is active.")
]
Label = Annotated[
    str, typer.Option("--label", metavar="LABEL", help="Its name: one for each state folder.")
]


@app_house.command()
def doctor(*, json: Json = False, session_id: Speaker = None) -> Work:
    """Look at everything that a kiss needs, now; change nothing."""
    return partial(checking.doctor, session_id, as_object=json)


@_unit.command("cron")
def unit_cron(
    *,
    install: CronInstall = False,
    uninstall: CronUninstall = False,
    status: Status = False,
    json: Json = False,
    session_id: Speaker = None,
) -> Work:
    """Print the crontab line that runs the relay every minute."""
    wish = starting.wish_of(
        starting.CRON, LABEL, install=install, uninstall=uninstall, status=status
    )
    return partial(starting.unit, wish, session_id, as_object=json)


# The lowest is the first in the help.
@_unit.command(starting.LAUNCHD, help="Print an agent that runs the relay every minute.")
@_unit.command(
    starting.SYSTEMD, help="Print a service and the timer that runs the relay every minute."
)
def unit_with_files(
    context: typer.Context,
    *,
    install: Install = False,
    uninstall: Uninstall = False,
    status: Status = False,
    label: Label = LABEL,
    json: Json = False,
    session_id: Speaker = None,
) -> Work:
    """Answer for the kind by whose name it was called."""
    wish = starting.wish_of(
        str(context.info_name), label, install=install, uninstall=uninstall, status=status
    )
    return partial(starting.unit, wish, session_id, as_object=json)
