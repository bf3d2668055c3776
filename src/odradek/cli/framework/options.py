"""Options that every command shares: which cluster, which client properties, text or JSON."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek.cli.framework.parameter_types import PAIR, TEXT, TOPIC_NAME

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

DEFAULT_BOOTSTRAP_SERVER = "127.0.0.1:9092"
F = TypeVar("F", bound=Callable[..., Any])


def format_option(function: F) -> F:
    """`--format text|json`, handed to the command as `as_json`."""
    return click.option(
        "--format",
        "as_json",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        callback=lambda _context, _parameter, value: value == "json",
        help="Output for people, or one JSON object a line.",
    )(function)


def cluster_options(function: F) -> F:
    """Which cluster and how to speak to it, handed to the command as `cluster`; and `--format`."""

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
        help="A property of the client (librdkafka's names), such as security.protocol=SSL. Repeatable.",
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
        help="A broker of the cluster; several with commas.",
    )(decorated)


def complete_topics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of topics for the shell; nothing where no broker answers at once."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - completion only

    from odradek.cli.client.cluster import Cluster  # noqa: PLC0415 - completion only

    server = context.params.get("bootstrap_server") or DEFAULT_BOOTSTRAP_SERVER
    try:
        names = Cluster(server, dict(context.params.get("client_properties") or ())).topic_names(timeout_s=1)
    except Exception:  # a shell's completion never complains
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def topic_argument(*, several: bool = False) -> Callable[[F], F]:
    if several:
        return click.argument(
            "names", metavar="NAME...", nargs=-1, required=True, type=TOPIC_NAME, shell_complete=complete_topics
        )
    return click.argument("topic", metavar="TOPIC", type=TOPIC_NAME, shell_complete=complete_topics)
