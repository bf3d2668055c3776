"""Options that commands about pipelines share, and what they make of a definition."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.framework.parameter_types import TEXT

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline

F = TypeVar("F", bound=Callable[..., Any])
ENGINES = ("standard", "realtime", "batch")
CONNECTORS = ("jvm", "python")
OVERRIDES = ("bootstrap_server", "master", "checkpoints", "warehouse", "connector")


@dataclass(frozen=True, slots=True)
class Metrics:
    """Where Prometheus finds them; without a port nowhere."""

    host: str = "127.0.0.1"
    port: int | None = None

    @property
    def arguments(self) -> list[str]:
        return [] if self.port is None else [f"--metrics-host={self.host}", f"--metrics-port={self.port}"]


name_option = click.option(
    "--pipeline", "name", metavar="NAME", type=TEXT, help="Which one, of a Python file with several."
)
checkpoints_option = click.option(
    "--checkpoints", metavar="DIR", type=click.Path(), help="Where it notes how far it is."
)
yes_option = click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
from_option = click.option(
    "--from",
    "from_places",
    metavar="PLACE",
    type=TEXT,
    multiple=True,
    help="Forget how far it is and begin at earliest, latest, a time, or TOPIC:PARTITION:OFFSET (repeatable).",
)


PLACE_OPTIONS = (
    click.option("--connector", type=click.Choice(CONNECTORS), help="Spark's own, or the one that needs no jars."),
    click.option("--warehouse", metavar="URL", type=TEXT, help="Database of tables and views (SQLAlchemy's URL)."),
    checkpoints_option,
    click.option("--master", metavar="URL", type=TEXT, help="Spark's master, such as local[2] or spark://host:7077."),
    click.option(
        "--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT, help="Instead of the definition's brokers."
    ),
    name_option,
)


def plain_override_options(function: F) -> F:
    """What takes the place of the definition's own, handed to the command as `name` and `overrides`."""

    @functools.wraps(function)
    def with_overrides(*arguments: Any, **rest: Any) -> Any:
        overrides = {key: rest.pop(key) for key in OVERRIDES}
        return function(*arguments, overrides=overrides, **rest)

    decorated: Any = with_overrides
    for option in PLACE_OPTIONS:
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def override_options(function: F) -> F:
    """The same, and `engine`."""
    engine = click.option("--engine", type=click.Choice(ENGINES), help="Instead of the definition's own.")
    return engine(plain_override_options(function))


def metrics_options(function: F) -> F:
    """`--metrics-port` and `--metrics-host`, handed to the command as `metrics`."""

    @functools.wraps(function)
    def with_metrics(*arguments: Any, metrics_host: str, metrics_port: int | None, **rest: Any) -> Any:
        return function(*arguments, metrics=Metrics(metrics_host, metrics_port), **rest)

    host = click.option(
        "--metrics-host",
        metavar="HOST",
        type=TEXT,
        default=Metrics().host,
        show_default=True,
        help="See --metrics-port.",
    )
    port = click.option(
        "--metrics-port",
        type=click.IntRange(min=0, max=65535),
        metavar="PORT",
        help="Serve http://HOST:PORT/metrics for Prometheus; 0 takes a free port.",
    )
    return port(host(with_metrics))  # type: ignore[return-value]


def overridden(found: Pipeline, overrides: dict[str, Any]) -> Pipeline:
    """With what the command line says instead."""
    from odradek.pipelines.definition.vocabulary import Connector  # noqa: PLC0415 - help does not need it

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
    return dataclasses.replace(found, **{key: value for key, value in changes.items() if value is not None})


def override_arguments(engine: str | None, name: str, overrides: dict[str, Any]) -> list[str]:
    """The same wishes for a process of our own."""
    chosen = {"engine": engine, "pipeline": name, **overrides}
    return [f"--{key.replace('_', '-')}={value}" for key, value in chosen.items() if value is not None]
