"""`--cluster-profile`, `--secure` and `--command-config` of the commands that run pipelines: credentials of brokers.

`--profile` of these commands names a profile of the definition; `odradek --profile NAME` before the command, and
`--cluster-profile NAME`, name an address with credentials that `odradek profile add` has kept. Child processes get the
names of profiles, directories and files, never their content: other users of the machine can see command lines.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.client.options import command_config_option, secure_option
from odradek.cli.client.profile_option import PROFILE
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.pipeline.definition_options import meta, remember_secrets

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


def connection_options(function: F) -> F:
    """The options; `with_connection` applies them."""

    @functools.wraps(function)
    def with_choices(*arguments: Any, **rest: Any) -> Any:
        chosen = {name: rest.pop(name) for name in ("cluster_profile", "secure", "command_config")}
        meta()[CHOICES] = {name: value for name, value in chosen.items() if value is not None}
        return function(*arguments, **rest)

    decorated: Any = with_choices
    for option in (command_config_option, secure_option, cluster_profile_option):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return Any


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
