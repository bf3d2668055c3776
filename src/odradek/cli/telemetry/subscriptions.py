"""`odradek client subscribe|unsubscribe|subscriptions`: which metrics clients are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.errors import check
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import print_columns, print_json, say
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.framework.times import DurationType
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.cluster import Cluster

CLIENT_METRICS = 16
SET, DELETE = 0, 1
SETTINGS = ("interval.ms", "metrics", "match")


@command(
    examples=[
        ("all metrics of all clients, every 10 seconds", "odradek client subscribe all --metrics '*' --interval 10s"),
        (
            "metrics of the producers and consumers of one application",
            "odradek client subscribe shop --metrics org.apache --match client_id=shop",
        ),
    ]
)
@click.argument("name", metavar="NAME", type=TEXT)
@click.option("--metrics", type=TEXT, metavar="PREFIX,…", required=True, help="Prefixes of metric names; '*' is all.")
@click.option(
    "--interval",
    "interval_ms",
    type=DurationType(),
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How often clients push, from 100 ms to 1 h.",
)
@click.option(
    "--match",
    "matches",
    type=TEXT,
    metavar="ATTRIBUTE=PATTERN",
    multiple=True,
    help="Only clients whose client_id, client_software_name, client_software_version, client_source_address, "
    "client_source_port or client_instance_id matches. Repeatable: all must match.",
)
@cluster_options
def subscribe(
    name: str, metrics: str, interval_ms: int, matches: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """Let clients push metrics. A subscription of the same name is replaced."""
    settings = {"metrics": metrics, "interval.ms": str(interval_ms), "match": ",".join(matches)}
    alter(cluster, name, {key: value or None for key, value in settings.items()})
    if as_json:
        print_json({"subscription": name, **settings})
    else:
        say(f"clients get the subscription {name} within 5 minutes; with the first one, when they connect again")


@command(examples=[("", "odradek client unsubscribe all")])
@click.argument("name", metavar="NAME", type=TEXT)
@cluster_options
def unsubscribe(name: str, cluster: Cluster, as_json: bool) -> None:
    """Remove a subscription."""
    alter(cluster, name, dict.fromkeys(SETTINGS))
    if as_json:
        print_json({"subscription": name, "removed": True})
    else:
        say(f"removed the subscription {name}")


@command(examples=[("", "odradek client subscriptions")])
@cluster_options
def subscriptions(cluster: Cluster, as_json: bool) -> None:
    """List the subscriptions."""
    requests = BrokerRequests(cluster)
    listed = requests.ask_any(ListConfigResourcesRequest(), ListConfigResourcesResponse, 0)
    check(listed.error_code, None, "subscriptions")
    names = sorted(each.resource_name for each in listed.config_resources)
    resources = [
        DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configuration_keys=None)
        for name in names
    ]
    described = requests.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, 4)
    found = {
        result.resource_name: {each.name: each.value or "" for each in result.configs} for result in described.results
    }
    if as_json:
        for name in names:
            print_json({"subscription": name, **found[name]})
    elif names:
        print_columns(
            ["NAME", *map(str.upper, SETTINGS)], [(n, *(found[n].get(s, "") for s in SETTINGS)) for n in names]
        )
    else:
        say("there are no subscriptions; `odradek client subscribe` adds one")


def alter(cluster: Cluster, name: str, settings: Mapping[str, str | None]) -> None:
    """Set the settings of a subscription; None removes one. A subscription without settings does not exist."""
    configs = [
        AlterableConfig(name=key, config_operation=DELETE if value is None else SET, value=value)
        for key, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=CLIENT_METRICS, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = BrokerRequests(cluster).ask_controller(request, IncrementalAlterConfigsResponse, 1).responses
    check(result.error_code, result.error_message, f"subscription {name}")
