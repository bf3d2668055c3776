"""The cluster that the options of a command name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click.core import ParameterSource

if TYPE_CHECKING:
    import click

    from odradek.admin.cluster import Cluster

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
NAMING_A_CLUSTER = ("bootstrap_server", "secure", "command_config")
PROFILE = "odradek.connection_profile"  # of the main command, in the context's meta
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def remember_profile(context: click.Context, _parameter: click.Parameter, name: str | None) -> None:
    """`odradek --profile NAME`, for the commands below it."""
    if name is not None:
        context.meta[PROFILE] = name


def chosen_cluster(context: click.Context, parameters: dict[str, Any]) -> Cluster:
    """The cluster that the options name. Removes them from `parameters`."""
    from odradek.admin.cluster import Cluster
    from odradek.admin.profiles import SERVERS, chosen_properties

    given = dict(parameters.pop("client_properties", None) or ())
    server = parameters.pop("bootstrap_server", None) or DEFAULT_BOOTSTRAP_SERVER
    is_given = context.get_parameter_source("bootstrap_server") is ParameterSource.COMMANDLINE
    properties = chosen_properties(
        profile=chosen_profile(context, parameters.pop("profile", None)),
        secure=parameters.pop("secure", None),
        command_config=parameters.pop("command_config", None),
        given=given,
        bootstrap_server=server if is_given else None,
        default_server=server,  # of the environment, or the default
    )
    cluster = Cluster(properties.pop(SERVERS), properties)
    if given:
        cluster.check_names(given)  # imports the client library
    return cluster


def chosen_profile(context: click.Context, name: str | None) -> str | None:
    """The profile given after the command, before it (`odradek --profile NAME`), or in the environment, in this order;
    then that of `odradek profile use`, unless another option or variable names a cluster, which must not get its
    secrets."""
    if context.get_parameter_source("profile") is ParameterSource.COMMANDLINE:
        return name
    name = context.meta.get(PROFILE) or name
    if name is not None or any(context.get_parameter_source(each) in GIVEN for each in NAMING_A_CLUSTER):
        return name
    from odradek.admin.profiles import default_profile

    return default_profile()
