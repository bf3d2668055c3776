"""Options by which pipeline commands override a definition: brokers, Spark, checkpoints, metrics.

`--profile` of these commands names a profile of the definition; `odradek --profile NAME` before the command, and
`--cluster-profile NAME`, name an address with credentials that `odradek profile add` has kept. Child processes get the
names of profiles, directories and files, never their content: other users of the machine can see command lines.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.client.options import command_config_option, secure_option
from odradek.cli.client.profile_option import PROFILE
from odradek.cli.framework.options import with_options
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.loading import (
    ENGINES,
    chosen_arguments,
    definition_options,
    meta,
    name_option,
    remember_secrets,
)

if TYPE_CHECKING:
    from odradek.pipelines.definition.model import Pipeline


F = TypeVar("F", bound=Callable[..., Any])
SERVERS = "bootstrap.servers"
CHOICES = "odradek.connection_choices"
cluster_profile_option = click.option(
    "--cluster-profile",
    metavar="NAME",
    type=TEXT,
    help="Address and credentials of the brokers that `odradek profile add` has stored.",
)
CONNECTORS = ("jvm", "python")
OVERRIDES = ("bootstrap_server", "master", "checkpoints", "warehouse", "connector")


def connection_options(function: F) -> F:
    """The options; `with_connection` applies them."""

    @functools.wraps(function)
    def with_choices(*arguments: Any, **rest: Any) -> Any:
        chosen = {name: rest.pop(name) for name in ("cluster_profile", "secure", "command_config")}
        meta()[CHOICES] = {name: value for name, value in chosen.items() if value is not None}
        return function(*arguments, **rest)

    return with_options(with_choices, cluster_profile_option, secure_option, command_config_option)  # type: ignore[no-any-return]  # click's decorators return Any


def connection_choices() -> dict[str, str]:
    chosen: dict[str, str] = dict(meta().get(CHOICES) or {})
    if "cluster_profile" not in chosen and meta().get(PROFILE) is not None:
        chosen["cluster_profile"] = meta()[PROFILE]
    return chosen


def connection_arguments() -> list[str]:
    """The choices as arguments for a child process."""
    chosen = connection_choices()
    paths = {name: str(Path(value).absolute()) for name, value in chosen.items() if name != "cluster_profile"}
    return [f"--{name.replace('_', '-')}={value}" for name, value in {**chosen, **paths}.items()]


def with_connection(found: Pipeline) -> Pipeline:
    """The pipeline with the chosen address and client properties, which win over those of the definition."""
    chosen = connection_choices()
    if not chosen:
        return found
    from odradek.admin.profiles import chosen_kafka_properties

    properties = chosen_kafka_properties(
        profile=chosen.get("cluster_profile"),
        secure=chosen.get("secure"),
        command_config=chosen.get("command_config"),
    )
    servers = properties.pop(SERVERS, found.bootstrap_servers)
    secured = dataclasses.replace(found, bootstrap_servers=servers, kafka={**found.kafka, **properties})
    remember_secrets(secured.all_secrets)
    return secured


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


def plain_override_options(function: F) -> F:
    """Options that override the definition, passed to the command as `name` and `overrides`."""

    @functools.wraps(function)
    def with_overrides(*arguments: Any, **rest: Any) -> Any:
        overrides = {key: rest.pop(key) for key in OVERRIDES}
        return function(*arguments, overrides=overrides, **rest)

    return with_options(  # type: ignore[no-any-return]
        definition_options(connection_options(with_overrides)),
        name_option,
        click.option(
            "--bootstrap-server", "-b", metavar="HOST:PORT", type=TEXT,
            help="Brokers. Default: those of the definition.",
        ),
        click.option(
            "--master", metavar="URL", type=TEXT, help="Spark's master, such as local[2] or spark://host:7077."
        ),
        checkpoints_option,
        click.option(
            "--warehouse", metavar="URL", type=TEXT, help="Database of tables and views, as a SQLAlchemy URL."
        ),
        click.option(
            "--connector", type=click.Choice(CONNECTORS), help="Kafka connector: Spark's own, or one without jars."
        ),
    )  # fmt: skip


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
