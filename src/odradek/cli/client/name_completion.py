"""Names that a shell completes: topics, groups, transactions and settings of the cluster that is named.

A shell shows no errors of a completion, so every failure means that nothing is completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from odradek.admin.cluster import Cluster

TIMEOUT_S = 1.0


def complete_topics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return matching_names(context, incomplete, lambda cluster: cluster.topic_names(timeout_s=TIMEOUT_S))


def complete_groups(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from odradek.admin.groups import group_names

    return matching_names(context, incomplete, lambda cluster: group_names(cluster, TIMEOUT_S))


def complete_transactional_ids(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    def find(cluster: Cluster) -> list[str]:
        from odradek.admin.broker_requests import BrokerRequests
        from odradek.admin.transactions import list_transactions, live_brokers

        cluster.check_reachable(TIMEOUT_S)
        requests = BrokerRequests(cluster, TIMEOUT_S)
        return [each.transactional_id for each in list_transactions(requests, live_brokers(requests).values())]

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
    from odradek.cli.client.options import chosen_cluster

    try:
        parameters: dict[str, Any] = dict(context.params)
        names = find(chosen_cluster(context, parameters))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    except Exception:
        return []
