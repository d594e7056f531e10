"""The words of the commands about what zdo is told, and what its words mean: target, explain."""

from __future__ import annotations

import typer

app_config = typer.Typer(rich_markup_mode=None)
