"""Options and arguments of the commands that connect to a cluster: its address, client properties, names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from odradek.cli.client.name_completion import complete_groups, complete_topics, complete_transactional_ids
from odradek.cli.framework.options import format_option
from odradek.cli.framework.parameter_types import GROUP_NAME, PAIR, TEXT, TOPIC_NAME, TRANSACTIONAL_ID

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
F = TypeVar("F", bound=Callable[..., Any])


def cluster_options(function: F) -> F:
    """`-b` and `-X`, passed to the command as `cluster`; and `--format`."""

    @functools.wraps(function)
    def with_cluster(
        *arguments: Any, bootstrap_server: str, client_properties: tuple[tuple[str, str], ...], **rest: Any
    ) -> Any:
        from odradek.cli.client.cluster import Cluster  # noqa: PLC0415 - help does not need it

        return function(*arguments, cluster=Cluster(bootstrap_server, dict(client_properties)), **rest)

    decorated = format_option(with_cluster)
    decorated = click.option(
        "-X",
        "client_properties",
        metavar="KEY=VALUE",
        type=PAIR,
        multiple=True,
        help="Client property under its librdkafka name, such as security.protocol=SSL. Repeatable.",
    )(decorated)
    return click.option(  # type: ignore[return-value]
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        type=TEXT,
        default=DEFAULT_BOOTSTRAP_SERVER,
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        show_default=True,
        show_envvar=True,
        help="Address of a broker of the cluster; separate several with commas.",
    )(decorated)


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
