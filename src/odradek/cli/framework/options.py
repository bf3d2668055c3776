"""Options that several commands have, and the question that `--yes` answers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar, cast

import click

from odradek.cli.framework.commands import OptionalArgument
from odradek.cli.framework.output import note
from odradek.cli.framework.parameter_types import POSITIVE

F = TypeVar("F", bound=Callable[..., Any])


def option_names(parameters: Iterable[str]) -> str:
    """`--input-format and --key-separator`."""
    return " and ".join("--" + name.replace("_", "-") for name in parameters)


def with_options(function: F, *options: Callable[[F], F]) -> F:
    """The function with options, which help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def wrapped(function: F, wrapper: Callable[..., Any], *options: Callable[[Any], Any]) -> F:
    """The wrapper in place of the function, with options, which help lists in this order."""
    return cast("F", with_options(functools.wraps(function)(wrapper), *options))


def option(names: str, metavar: str | None, kind: Any, text: str, **settings: Any) -> Callable[[F], F]:
    """An option with a value, named by flags and a parameter: `--partition -p partitions`. Help shows its default."""
    settings.setdefault("show_default", bool(settings.get("default")))
    return click.option(*names.split(), metavar=metavar, type=kind, help=text, **settings)


def flag(names: str, text: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names.split(), is_flag=True, help=text, **settings)


def repeatable(names: str, metavar: str | None, kind: Any, text: str, **settings: Any) -> Callable[[F], F]:
    """An option that may be given several times, passed to the command as a tuple."""
    return option(names, metavar, kind, f"{text} Repeatable.", multiple=True, **settings)


def properties_argument(function: F) -> F:
    """The properties file of a broker, passed to the command as `properties`."""
    kind = click.Path(exists=True, dir_okay=False)
    settings: Any = {"cls": OptionalArgument, "metavar": "SERVER.PROPERTIES", "required": False, "type": kind}
    return click.argument("properties", **settings)(function)


def format_option(function: F) -> F:
    """`--format text|json`, passed to the command as `as_json`."""
    text = "Human-readable text, or one JSON object per line."
    return option(
        "--format as_json", None, click.Choice(["text", "json"]), text, default="text",
        callback=lambda _context, _parameter, value: value == "json",
    )(function)  # fmt: skip


def state_option(things: str, states: Sequence[str]) -> Callable[[F], F]:
    """`--state STATE`, passed to the command as the tuple `states`; `things` are what is listed."""
    text = f"Only {things} in this state: {', '.join(states[:-1])} or {states[-1]}."
    return repeatable("--state states", "STATE", click.Choice(states, case_sensitive=False), text)


def watch_options(text: str, values: str) -> Callable[[F], F]:
    """`--watch` with this help and `--interval` between two such values, passed as `is_watched` and `interval`."""
    interval = option("--interval", "SECONDS", POSITIVE, f"Time between two {values}.", default=1.0)
    return lambda function: with_options(function, flag("--watch is_watched", text), interval)


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
