"""SCRAM users over the wire: the requests of `odradek user`, and the options that its commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.admin.users import MECHANISMS

F = TypeVar("F", bound=Callable[..., Any])


mechanism_option = click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(MECHANISMS, case_sensitive=False),
    multiple=True,
    help="SCRAM-SHA-256 or SCRAM-SHA-512. Repeatable; both by default.",
)


def iterations_option(default: int | None, default_text: str | None = None) -> Callable[[F], F]:
    return click.option(
        "--iterations",
        type=click.IntRange(4096, 16384),
        metavar="N",
        default=default,
        show_default=default_text or True,
        help="Iterations of the hash of the password.",
    )
