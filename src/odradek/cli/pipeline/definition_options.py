"""`--profile` and `--set`, which every command with a definition has, and secrets that its errors must not contain.

The values are kept in click's context, where `loading` finds them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.framework.parameter_types import PAIR, TEXT
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.pipelines.definition.choices import Choices

F = TypeVar("F", bound=Callable[..., Any])
PROFILE = "odradek.profile"
PARAMETERS = "odradek.parameters"
SECRETS = "odradek.secrets"


def definition_options(function: F) -> F:
    """The options, which `chosen` returns. Failures of the command are reported without the definition's secrets."""

    @functools.wraps(function)
    def with_hidden_secrets(*arguments: Any, **rest: Any) -> Any:
        try:
            return function(*arguments, **rest)
        except Failure as error:
            raise Failure(without_secrets(error.message)) from error

    decorated: Any = with_hidden_secrets
    for option in (SET_OPTION, PROFILE_OPTION):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return Any


def keep(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def kept(context: click.Context, _parameter: click.Parameter, value: Any) -> Any:
        context.meta[name] = value
        return value

    return kept


PROFILE_OPTION = click.option(
    "--profile",
    metavar="NAME",
    type=TEXT,
    expose_value=False,
    callback=keep(PROFILE),
    help="Profile of the definition. Default: $ODRADEK_PIPELINE_PROFILE, or none.",
)
SET_OPTION = click.option(
    "--set",
    metavar="NAME=VALUE",
    type=PAIR,
    multiple=True,
    expose_value=False,
    callback=keep(PARAMETERS),
    help="Value of a parameter of the definition. Repeatable.",
)


def meta() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def chosen() -> Choices:
    """What the command line chooses."""
    from odradek.pipelines.definition.choices import Choices

    return Choices(meta().get(PROFILE), dict(meta().get(PARAMETERS) or ()))


def chosen_arguments() -> list[str]:
    """The choices as arguments for a child process."""
    choices = chosen()
    profile = [] if choices.profile is None else [f"--profile={choices.profile}"]
    return profile + [f"--set={name}={value}" for name, value in choices.parameters.items()]


def remember_secrets(secrets: Iterable[str]) -> None:
    meta().setdefault(SECRETS, set()).update(secrets)


def without_secrets(text: str) -> str:
    from odradek.pipelines.definition.secrets import hidden

    return hidden(text, meta().get(SECRETS, ()))
