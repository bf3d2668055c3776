"""Options that the pipeline commands share, and how they override a definition."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.connection_options import connection_arguments, connection_options, with_connection
from odradek.cli.pipeline.definition_options import chosen_arguments, definition_options

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
ENGINES = ("standard", "realtime", "batch")
CONNECTORS = ("jvm", "python")
OVERRIDES = ("bootstrap_server", "master", "checkpoints", "warehouse", "connector")


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where figures go: the address of metrics for Prometheus, if there is a port, and the status topic."""

    host: str = "127.0.0.1"
    port: int | None = None
    has_status_topic: bool = True

    @property
    def arguments(self) -> list[str]:
        served = [] if self.port is None else [f"--metrics-host={self.host}", f"--metrics-port={self.port}"]
        return served if self.has_status_topic else [*served, "--no-status-topic"]


name_option = click.option(
    "--pipeline", "name", metavar="NAME", type=TEXT, help="Name of the pipeline, if a Python file defines several."
)
checkpoints_option = click.option(
    "--checkpoints", metavar="DIR", type=click.Path(), help="Directory of the checkpoints."
)
yes_option = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask for confirmation.")
from_option = click.option(
    "--from",
    "from_positions",
    metavar="POSITION",
    type=TEXT,
    multiple=True,
    help="Discard the checkpoints and start at earliest, latest, a time, or TOPIC:PARTITION:OFFSET (repeatable).",
)


OVERRIDE_OPTIONS = (
    click.option(
        "--connector", type=click.Choice(CONNECTORS), help="Kafka connector: Spark's own, or one without jars."
    ),
    click.option("--warehouse", metavar="URL", type=TEXT, help="Database of tables and views, as a SQLAlchemy URL."),
    checkpoints_option,
    click.option("--master", metavar="URL", type=TEXT, help="Spark's master, such as local[2] or spark://host:7077."),
    click.option(
        "--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT, help="Brokers. Default: those of the definition."
    ),
    name_option,
)


def plain_override_options(function: F) -> F:
    """Options that override the definition, passed to the command as `name` and `overrides`."""

    @functools.wraps(function)
    def with_overrides(*arguments: Any, **rest: Any) -> Any:
        overrides = {key: rest.pop(key) for key in OVERRIDES}
        return function(*arguments, overrides=overrides, **rest)

    decorated: Any = definition_options(connection_options(with_overrides))
    for option in OVERRIDE_OPTIONS:
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return Any


def override_options(function: F) -> F:
    """The override options, and `engine`."""
    engine = click.option("--engine", type=click.Choice(ENGINES), help="Engine. Default: that of the definition.")
    return engine(plain_override_options(function))


def metrics_options(function: F) -> F:
    """`--metrics-port`, `--metrics-host` and `--no-status-topic`, passed to the command as `metrics`."""

    @functools.wraps(function)
    def with_metrics(
        *arguments: Any, metrics_host: str, metrics_port: int | None, no_status_topic: bool, **rest: Any
    ) -> Any:
        return function(*arguments, metrics=Metrics(metrics_host, metrics_port, not no_status_topic), **rest)

    host = click.option(
        "--metrics-host",
        metavar="HOST",
        type=TEXT,
        default=Metrics().host,
        show_default=True,
        help="Host of --metrics-port.",
    )
    port = click.option(
        "--metrics-port",
        type=click.IntRange(min=0, max=65535),
        metavar="PORT",
        help="Serve metrics for Prometheus at http://HOST:PORT/metrics; 0 for a free port.",
    )
    topic = click.option(
        "--no-status-topic",
        is_flag=True,
        envvar="ODRADEK_NO_STATUS_TOPIC",
        show_envvar=True,
        help="Do not publish the status to the topic __odradek_pipelines, which consoles read.",
    )
    return port(host(topic(with_metrics)))  # type: ignore[return-value]  # a command keeps its type


def overridden(found: Pipeline, overrides: dict[str, Any]) -> Pipeline:
    """The pipeline with the overrides of the command line."""
    from odradek.pipelines.definition.vocabulary import Connector

    checkpoints, connector = overrides.get("checkpoints"), overrides.get("connector")
    changes: dict[str, Any] = {
        "bootstrap_servers": overrides.get("bootstrap_server"),
        "master": overrides.get("master"),
        "checkpoints": checkpoints
        if checkpoints is None or "://" in checkpoints
        else str(Path(checkpoints).absolute()),
        "warehouse": overrides.get("warehouse"),
        "connector": None if connector is None else Connector(connector),
    }
    return dataclasses.replace(
        with_connection(found), **{key: value for key, value in changes.items() if value is not None}
    )


def override_arguments(engine: str | None, name: str, overrides: dict[str, Any]) -> list[str]:
    """The overrides as arguments for a child process."""
    chosen = {"engine": engine, "pipeline": name, **overrides}
    own = [f"--{key.replace('_', '-')}={value}" for key, value in chosen.items() if value is not None]
    return own + connection_arguments() + chosen_arguments()
