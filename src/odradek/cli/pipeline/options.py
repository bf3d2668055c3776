"""The definition that a pipeline command names, and the options that override it: brokers, Spark, checkpoints, metrics.

Values of these options are kept in the context of click, with the secrets that errors must not contain. `--profile`
names an address with credentials that `odradek profile add` has kept. Child processes get the names of profiles,
directories and files, never their content: other users of the machine can see command lines.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from odradek.cli.client.options import PROFILE, command_config_option, secure_option
from odradek.cli.framework.options import option, with_options, wrapped
from odradek.cli.framework.parameter_types import PAIR, TEXT
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline
    from odradek.pipelines.planning.loading import Choices, Definition

F = TypeVar("F", bound=Callable[..., Any])
NEEDED_PACKAGES = {"yaml": "PyYAML", "sqlglot": "sqlglot", "fastavro": "fastavro"}
SPARK_PACKAGES = {"pyspark": "PySpark", "pandas": "pandas", "pyarrow": "PyArrow", "sqlalchemy": "SQLAlchemy"}
ENGINES = ("standard", "realtime", "batch")
SERVERS = "bootstrap.servers"
CONNECTION = {"profile": "--profile", "secure": "--secure", "command_config": "--command-config"}
OVERRIDES = {  # field of the definition: option
    "bootstrap_servers": "--bootstrap-server",
    "master": "--master",
    "checkpoints": "--checkpoints",
    "warehouse": "--warehouse",
}
LOOPBACK = "127.0.0.1"
KEPT = "odradek.pipeline_options"
SECRETS = "odradek.secrets"


def meta() -> dict[str, Any]:
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def kept() -> dict[str, Any]:
    """Values of the options that were given, by parameter."""
    values: dict[str, Any] = meta().setdefault(KEPT, {})
    return values


def keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None:
        context.meta.setdefault(KEPT, {})[parameter.name] = value


def kept_option(names: str, metavar: str | None, kind: Any, text: str, **settings: Any) -> Callable[[F], F]:
    """An option that is kept, and not passed to the command."""
    return option(names, metavar, kind, text, expose_value=False, callback=keep, **settings)


def text_option(names: str, metavar: str, text: str) -> Callable[[F], F]:
    return kept_option(names, metavar, TEXT, text)


name_option = text_option("--pipeline name", "NAME", "Name of the pipeline, if a Python file defines several.")
checkpoints_option = kept_option("--checkpoints", "DIR", click.Path(), "Directory of the checkpoints.")
engine_option = click.option("--engine", type=click.Choice(ENGINES), help="Engine. Default: that of the definition.")
from_option = option(
    "--from from_positions", "POSITION", TEXT,
    "Discard the checkpoints and start at earliest, latest, a time, or TOPIC:PARTITION:OFFSET (repeatable).",
    multiple=True,
)  # fmt: skip


def definition_options(function: F) -> F:
    """`--set`. Failures of the command are reported without the definition's secrets."""

    def with_hidden_secrets(*arguments: Any, **rest: Any) -> Any:
        try:
            return function(*arguments, **rest)
        except Failure as error:
            raise Failure(without_secrets(error.message)) from error

    return wrapped(
        function, with_hidden_secrets,
        kept_option(
            "--set parameters", "NAME=VALUE", PAIR, "Value of a parameter of the definition. Repeatable.", multiple=True
        ),
    )  # fmt: skip


def connection_options(function: F) -> F:
    """`--profile`, `--secure` and `--command-config`; `with_connection` applies them."""

    def keeping(*arguments: Any, secure: str | None, command_config: str | None, **rest: Any) -> Any:
        kept().update(secure=secure, command_config=command_config)
        return function(*arguments, **rest)

    text = "Address and credentials of the brokers that `odradek profile add` has stored."
    profile = text_option("--profile", "NAME", text)
    return wrapped(function, keeping, profile, secure_option, command_config_option)


def pipeline_options(function: F) -> F:
    """The options that choose a pipeline and override its definition, for `chosen_pipeline`."""
    return with_options(
        definition_options(connection_options(function)),
        name_option,
        text_option(
            "--bootstrap-server -b bootstrap_servers", "HOST:PORT", "Brokers. Default: those of the definition."
        ),
        text_option("--master", "URL", "Spark's master, such as local[2] or spark://host:7077."),
        checkpoints_option,
        text_option("--warehouse", "URL", "Database of tables and views, as a SQLAlchemy URL."),
    )


def metrics_options(function: F) -> F:
    """`--metrics-port`, `--metrics-host` and `--no-status-topic`, for `chosen_metrics`."""
    return with_options(
        function,
        kept_option(
            "--metrics-port", "PORT", click.IntRange(min=0, max=65535),
            "Serve metrics for Prometheus at http://HOST:PORT/metrics; 0 for a free port.",
        ),
        kept_option("--metrics-host", "HOST", TEXT, "Host of --metrics-port.", default=LOOPBACK),
        kept_option(
            "--no-status-topic", None, None,
            "Do not publish the status to the topic __odradek_pipelines, which consoles read.",
            is_flag=True, envvar="ODRADEK_NO_STATUS_TOPIC", show_envvar=True,
        ),
    )  # fmt: skip


class Metrics(NamedTuple):
    """Where figures go: the address of metrics for Prometheus, if there is a port, and the status topic."""

    host: str
    port: int | None
    has_status_topic: bool

    @property
    def arguments(self) -> list[str]:
        served = [] if self.port is None else [f"--metrics-host={self.host}", f"--metrics-port={self.port}"]
        return served if self.has_status_topic else [*served, "--no-status-topic"]


def chosen_metrics() -> Metrics:
    values = kept()
    return Metrics(values["metrics_host"], values.get("metrics_port"), not values["no_status_topic"])


def chosen() -> Choices:
    """The parameters of the command line."""
    from odradek.pipelines.planning.loading import Choices

    return Choices(dict(kept().get("parameters") or ()))


def chosen_arguments() -> list[str]:
    """The same as arguments for a child process."""
    return [f"--set={name}={value}" for name, value in chosen().parameters.items()]


def connection_choices() -> dict[str, str]:
    found = {name: value for name in CONNECTION if (value := kept().get(name)) is not None}
    if "profile" not in found and meta().get(PROFILE) is not None:
        found["profile"] = meta()[PROFILE]
    return found


def connection_arguments() -> list[str]:
    """The connection as arguments for a child process."""
    found = connection_choices()
    paths = {name: str(Path(value).absolute()) for name, value in found.items() if name != "profile"}
    return [f"{CONNECTION[name]}={value}" for name, value in {**found, **paths}.items()]


def child_arguments(engine: str | None, name: str) -> list[str]:
    """All choices as arguments for a child process."""
    options = {"--engine": engine, "--pipeline": name} | {flag: kept().get(key) for key, flag in OVERRIDES.items()}
    given = [f"{flag}={value}" for flag, value in options.items() if value is not None]
    return given + connection_arguments() + chosen_arguments()


def remember_secrets(secrets: Iterable[str]) -> None:
    meta().setdefault(SECRETS, set()).update(secrets)


def without_secrets(text: str) -> str:
    from odradek.pipelines.definition.secrets import hidden

    return hidden(text, meta().get(SECRETS, ()))


def require_packages(packages: Mapping[str, str] = NEEDED_PACKAGES) -> None:
    missing = [package for module, package in packages.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise Failure(f"pipelines need {' and '.join(missing)}; install them with: pip install 'odradek[pipelines]'")


def require_spark() -> None:
    require_packages(SPARK_PACKAGES)


@contextlib.contextmanager
def pipeline_errors() -> Iterator[None]:
    """Turns an error of a pipeline on Spark into a Failure."""
    from odradek.conventions.client_properties import UntranslatableSetting
    from odradek.pipelines.spark.sessions.failures import PipelineError

    try:
        yield
    except (PipelineError, UntranslatableSetting) as error:
        raise Failure(str(error)) from error


def load(file: str, engine: str | None) -> list[Definition]:
    """The definitions of a file; Failure if the packages for reading them are not installed."""
    require_packages()
    from odradek.pipelines.definition.vocabulary import Engine
    from odradek.pipelines.planning.loading import load_file

    choices = dataclasses.replace(chosen(), engine=None if engine is None else Engine(engine))
    found = load_file(file, os.environ, choices)
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


def chosen_pipeline(file: str, engine: str | None = None) -> Pipeline:
    """The pipeline of the file that the options choose, with their overrides."""
    return overridden(choose(file, load(file, engine), kept().get("name")), kept())


def overridden(found: Pipeline, values: Mapping[str, Any]) -> Pipeline:
    changes = {field: values[field] for field in OVERRIDES if values.get(field) is not None}
    if "checkpoints" in changes and "://" not in changes["checkpoints"]:
        changes["checkpoints"] = str(Path(changes["checkpoints"]).absolute())
    return dataclasses.replace(with_connection(found), **changes)


def with_connection(found: Pipeline) -> Pipeline:
    """The pipeline with the chosen address and client properties, which win over those of the definition."""
    choices = connection_choices()
    if not choices:
        return found
    from odradek.admin.profiles import chosen_kafka_properties

    properties = chosen_kafka_properties(
        profile=choices.get("profile"),
        secure=choices.get("secure"),
        command_config=choices.get("command_config"),
    )
    servers = properties.pop(SERVERS, found.bootstrap_servers)
    secured = dataclasses.replace(found, bootstrap_servers=servers, kafka={**found.kafka, **properties})
    remember_secrets(secured.all_secrets)
    return secured
