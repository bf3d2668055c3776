"""Names that a shell completes: topics, groups and settings, asked of the cluster that the command line names.

A shell shows no errors of a completion, so every failure means that nothing is completed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from odradek.cli.client.cluster import Cluster

TIMEOUT_S = 1.0


def complete_topics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return matching_names(context, incomplete, lambda cluster: cluster.topic_names(timeout_s=TIMEOUT_S))


def complete_groups(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return matching_names(context, incomplete, lambda cluster: cluster.group_names(timeout_s=TIMEOUT_S))


def complete_topic_settings(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from odradek.cli.client.setting_names import TOPIC_SETTINGS  # noqa: PLC0415 - completion only

    return [CompletionItem(name) for name in TOPIC_SETTINGS if name.startswith(incomplete)]


def complete_topic_assignments(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """`NAME=` for each topic setting, to be followed by its value."""
    return [CompletionItem(f"{item.value}=") for item in complete_topic_settings(context, parameter, incomplete)]


def matching_names(
    context: click.Context, incomplete: str, find: Callable[[Cluster], Iterable[str]]
) -> list[CompletionItem]:
    from odradek.cli.client.cluster import Cluster  # noqa: PLC0415 - completion only

    parameters: dict[str, Any] = context.params
    server = parameters.get("bootstrap_server") or os.environ.get("ODRADEK_BOOTSTRAP_SERVER") or "127.0.0.1:9092"
    try:
        names = find(Cluster(server, dict(parameters.get("client_properties") or ())))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    except Exception:
        return []
