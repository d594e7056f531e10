"""The words of the commands about the whole at a glance: watch, report."""

from __future__ import annotations

import typer

app_views = typer.Typer(rich_markup_mode=None)
