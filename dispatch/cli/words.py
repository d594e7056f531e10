"""The words that several commands share: each spelled, explained and typed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from dispatch.cli.completing import addresses, deliveries
from dispatch.cli.options import KISS, SENDER_HELP

Work = Callable[[], int]
HELP = {option.flag: option.help for option in KISS}
ADDRESS_HELP = "A configured target, a session id, TK-NUMBER, tsid:PANE, name:NAME or a bare name."
DELIVERY_HELP = "A delivery id, as kiss printed it."

Json = Annotated[bool, typer.Option("--json", help=HELP["--json"])]
Speaker = Annotated[str | None, typer.Option("--session-id", metavar="ID", help=SENDER_HELP)]
Address = Annotated[str, typer.Argument(help=ADDRESS_HELP, autocompletion=addresses)]
MaybeAddress = Annotated[str | None, typer.Argument(help=ADDRESS_HELP, autocompletion=addresses)]
Delivery = Annotated[str, typer.Argument(help=DELIVERY_HELP, autocompletion=deliveries)]
MaybeDelivery = Annotated[str | None, typer.Argument(help=DELIVERY_HELP, autocompletion=deliveries)]
