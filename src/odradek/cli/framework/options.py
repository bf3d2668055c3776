"""The option that every command has: text or JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def format_option(function: F) -> F:
    """`--format text|json`, passed to the command as `as_json`."""
    return click.option(
        "--format",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=lambda _context, _parameter, value: value == "json",
        help="Human-readable text, or one JSON object per line.",
    )(function)
