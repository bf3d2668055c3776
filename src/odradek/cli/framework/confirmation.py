"""Questions before something is deleted, and `--yes`, which answers them."""

from __future__ import annotations

import sys

import click

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, is_confirmed: bool) -> None:
    """Return if the user agrees; abort if not. Without a terminal `--yes` is required."""
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal, so nobody can be asked; confirm with --yes")
    click.confirm(question, abort=True, err=True)
