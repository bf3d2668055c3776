"""The cluster that the options of a command name, the completion of names from it, and options and arguments for both.

A shell shows no errors of a completion, so every failure means that nothing is completed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from odradek.cli.framework.options import format_option, option, repeatable, with_options, wrapped
from odradek.cli.framework.parameter_types import GROUP_NAME, PAIR, TEXT, TOPIC_NAME, TRANSACTIONAL_ID
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.security.authorizer import Operation

COMPLETION_TIMEOUT_S = 1.0
F = TypeVar("F", bound=Callable[..., Any])
THIS_USER = "this user"  # in failures of requests; a command replaces it by the principal
DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
NAMING_A_CLUSTER = ("bootstrap_server", "secure", "command_config")
PROFILE = "odradek.connection_profile"  # of the main command, in the context's meta
GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


def complete_topics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return matching_names(context, incomplete, lambda cluster: cluster.topic_names(timeout_s=COMPLETION_TIMEOUT_S))


def complete_groups(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from odradek.admin.groups import group_names

    return matching_names(context, incomplete, lambda cluster: group_names(cluster, COMPLETION_TIMEOUT_S))


def complete_transactional_ids(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    def find(cluster: Cluster) -> list[str]:
        from odradek.admin.broker_requests import BrokerRequests
        from odradek.admin.transactions import list_transactions

        cluster.check_reachable(COMPLETION_TIMEOUT_S)
        requests = BrokerRequests(cluster, COMPLETION_TIMEOUT_S)
        return [each.transactional_id for each in list_transactions(requests)]

    return matching_names(context, incomplete, find)


def complete_topic_settings(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from odradek.admin.settings import TOPIC_SETTINGS

    return [CompletionItem(name) for name in TOPIC_SETTINGS if name.startswith(incomplete)]


def complete_topic_assignments(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`NAME=` for each topic setting, to be followed by its value."""
    return [CompletionItem(f"{item.value}=") for item in complete_topic_settings(context, parameter, incomplete)]


def matching_names(
    context: click.Context, incomplete: str, find: Callable[[Cluster], Iterable[str]]
) -> list[CompletionItem]:

    try:
        parameters: dict[str, Any] = dict(context.params)
        names = find(chosen_cluster(context, parameters))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    except Exception:
        return []


command_config_option = option(
    "--command-config", "FILE", click.Path(exists=True, dir_okay=False),
    "Client properties under Kafka's names, as for Kafka's own tools.",
)  # fmt: skip
secure_option = option(
    "--secure", "DIR", click.Path(exists=True, file_okay=False),
    "Connect as the admin of a broker that runs with --secure DIR.",
)  # fmt: skip


def cluster_options(function: F) -> F:
    """The options of `connection_options`, passed to the command as `cluster`; and `--format`."""

    def with_cluster(*arguments: Any, **parameters: Any) -> Any:
        cluster = chosen_cluster(click.get_current_context(), parameters)
        try:
            return function(*arguments, cluster=cluster, **parameters)
        except Failure as failure:
            from odradek.admin.groups import with_similar_names

            message = with_similar_names(cluster, failure).message
            raise Failure(message.replace(THIS_USER, cluster.principal)) from None

    return wrapped(function, with_cluster, connection_options, format_option)


def connection_options(function: F) -> F:
    """The options that `chosen_cluster` reads."""
    return with_options(
        function,
        option(
            "--bootstrap-server -b", "HOST:PORT", TEXT,
            "Address of a broker of the cluster; separate several with commas.",
            default=DEFAULT_BOOTSTRAP_SERVER, envvar="ODRADEK_BOOTSTRAP_SERVER", show_envvar=True,
        ),
        repeatable("-X client_properties", "KEY=VALUE", PAIR,
            "Client property under its librdkafka name, such as security.protocol=SSL.",
        ),
        option(
            "--profile", "NAME", TEXT,
            "Address and client properties that `odradek profile add` has stored.",
            envvar="ODRADEK_PROFILE", show_envvar=True,
        ),
        secure_option,
        command_config_option,
    )  # fmt: skip


def nothing_visible(cluster: Cluster, things: str, text: str, operation: Operation) -> str:
    """What a command says that lists nothing: `text`, unless the user may not see everything."""
    if cluster.may(operation):
        return text
    return f"no {things} that {cluster.principal} may describe; an admin allows it with `odradek acl add`"


acks_option = option(
    "--acks", None, click.Choice(["0", "1", "all"]),
    "Replicas to wait for: none, the leader, or all in-sync replicas.", default="all",
)  # fmt: skip
compression_option = option(
    "--compression -z", None, click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    "Compression of the batches.", default="none",
)  # fmt: skip
topic_argument = click.argument("topic", metavar="TOPIC", type=TOPIC_NAME, shell_complete=complete_topics)
topics_argument = click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, type=TOPIC_NAME, shell_complete=complete_topics
)
group_argument = click.argument("name", metavar="GROUP", type=GROUP_NAME, shell_complete=complete_groups)
groups_argument = click.argument(
    "names", metavar="GROUP...", nargs=-1, required=True, type=GROUP_NAME, shell_complete=complete_groups
)
transactional_ids_argument = click.argument(
    "names", metavar="ID...", nargs=-1, required=True, type=TRANSACTIONAL_ID, shell_complete=complete_transactional_ids
)


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
