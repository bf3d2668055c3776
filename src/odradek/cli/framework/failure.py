"""Expected failures, and the one way in which errors are reported: a line on standard error with one prefix."""

from __future__ import annotations

import click

PROGRAM = "odradek:"
ERROR = "error:"


class Failure(click.ClickException):
    """An expected failure. Its message is one line: what happened, the value concerned, and what to do."""


def report_error(message: str) -> None:
    """Print `odradek: error: …` as one line on standard error."""
    line = " ".join(message.split())
    click.echo(f"{PROGRAM} {click.style(ERROR, fg='red', bold=True)} {line}", err=True)


def without_prefix(line: str) -> str:
    """The message of an error that another odradek process has reported."""
    return line.removeprefix(f"{PROGRAM} {ERROR} ")
