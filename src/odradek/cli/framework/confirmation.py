"""Questions before something is deleted or moved, and `--yes`, which answers them."""

from __future__ import annotations

import sys

import click

from odradek.cli.framework.output import note

yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, is_confirmed: bool, *, refusal: str = "nothing was deleted") -> None:
    """Return if the user agrees; print `refusal` and exit with 1 if not. Without a terminal `--yes` is required."""
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal, so the question cannot be asked; confirm with --yes")
    if not click.confirm(question, err=True):
        note(refusal)  # the user's own choice is no error
        raise click.exceptions.Exit(1)
