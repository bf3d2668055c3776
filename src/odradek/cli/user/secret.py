"""The password of a user: from a prompt, standard input or a file. On a command line others can read it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.cli.framework.output import note
from odradek.conventions.failures import Failure

F = TypeVar("F", bound=Callable[..., Any])
LARGEST_PASSWORD_LENGTH = 4096


def password_options(function: F) -> F:
    """`--password-file` and `--password`, passed to the command as `password_file` and `password`."""
    decorated = click.option(
        "--password",
        metavar="PASSWORD",
        help="The password itself. Not recommended: other users of this machine can see it.",
    )(function)
    return click.option(
        "--password-file",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False, allow_dash=True),
        help="Read the password from the first line of a file; - is standard input.",
    )(decorated)


def read_password(user: str, password: str | None, password_file: str | None) -> str:
    """Asks twice on a terminal; reads standard input otherwise."""
    if password is not None and password_file is not None:
        raise click.UsageError("--password and --password-file exclude each other")
    if password is not None:
        note("warning: --password shows the password to other users of this machine; use --password-file")
    elif password_file is not None and password_file != "-":
        with open(password_file, encoding="utf-8") as file:
            password = file.readline(LARGEST_PASSWORD_LENGTH + 2)
    elif password_file is None and sys.stdin.isatty():
        password = str(click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True))
    else:
        password = sys.stdin.readline(LARGEST_PASSWORD_LENGTH + 2)
    password = password.rstrip("\r\n")
    if not password:
        raise Failure(f"user {user}: the password is empty")
    if len(password) > LARGEST_PASSWORD_LENGTH:
        raise Failure(f"user {user}: the password is longer than {LARGEST_PASSWORD_LENGTH} characters")
    return password
