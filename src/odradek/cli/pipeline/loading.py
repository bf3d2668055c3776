"""The definition that a command names: `--profile` and `--set`, the file, and what must be installed to read it.

Choices, and secrets that errors must not contain, are kept in the context of click.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.framework.options import with_options
from odradek.cli.framework.parameter_types import PAIR, TEXT
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.pipelines.definition.checked import Definition
    from odradek.pipelines.definition.choices import Choices
    from odradek.pipelines.definition.model import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
NEEDED_PACKAGES = {"yaml": "PyYAML", "sqlglot": "sqlglot", "fastavro": "fastavro"}
SPARK_PACKAGES = {"pyspark": "PySpark", "pandas": "pandas", "pyarrow": "PyArrow", "sqlalchemy": "SQLAlchemy"}
ENGINES = ("standard", "realtime", "batch")
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

    return with_options(with_hidden_secrets, PROFILE_OPTION, SET_OPTION)  # type: ignore[no-any-return]  # click's decorators return Any


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


name_option = click.option(
    "--pipeline", "name", metavar="NAME", type=TEXT, help="Name of the pipeline, if a Python file defines several."
)


def require_packages(packages: Mapping[str, str] = NEEDED_PACKAGES) -> None:
    missing = [package for module, package in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise Failure(f"pipelines need {' and '.join(missing)}; install them with: pip install 'odradek[pipelines]'")


def require_spark() -> None:
    require_packages(SPARK_PACKAGES)


def load(file: str, engine: str | None) -> list[Definition]:
    """The definitions of a file; Failure if the packages for reading them are not installed."""
    require_packages()
    from odradek.pipelines.definition.loading import load_file
    from odradek.pipelines.definition.vocabulary import Engine

    found = load_file(file, os.environ, None if engine is None else Engine(engine), chosen())
    for each in found:
        remember_secrets(() if each.pipeline is None else each.pipeline.all_secrets)
    return found


def choose(file: str, definitions: list[Definition], name: str | None) -> Pipeline:
    """The named pipeline, or the only one; Failure if a definition has errors."""
    for definition in definitions:
        errors = [each for each in definition.problems if each.severity == "error"]
        if errors:
            more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
            raise Failure(f"{errors[0].place}: {errors[0].text}{more} (see `odradek pipeline validate {file}`)")
    by_name = {each.pipeline.name: each.pipeline for each in definitions if each.pipeline is not None}
    if name is None and len(by_name) > 1:
        raise Failure(f"{file} defines {', '.join(by_name)}; choose one with --pipeline")
    if name is not None and name not in by_name:
        raise Failure(f"{file} defines no pipeline {name}; it has {', '.join(by_name)}")
    return by_name[name] if name is not None else next(iter(by_name.values()))
