"""The words of the commands about the session that carries: postbox, selftest, init."""

from __future__ import annotations

import typer

app_postbox = typer.Typer(rich_markup_mode=None)
