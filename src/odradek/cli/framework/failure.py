"""The one way in which commands report errors: a line on standard error with one prefix."""

from __future__ import annotations

import click

from odradek.conventions.failures import ERROR, PROGRAM


def report_error(message: str) -> None:
    """Print `odradek: error: …` as one line on standard error."""
    line = " ".join(message.split())
    click.echo(f"{PROGRAM} {click.style(ERROR, fg='red', bold=True)} {line}", err=True)
