"""`odradek client`: the metrics that clients push to the brokers (KIP-714)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from odradek.admin import telemetry
from odradek.cli.client.options import cluster_options
from odradek.cli.framework import output
from odradek.cli.framework.commands import group
from odradek.cli.framework.options import option
from odradek.cli.framework.parameter_types import DURATION_MS, TEXT
from odradek.conventions.failures import Failure
from odradek.conventions.figures import age_text
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.describe_client_telemetry import TelemetryInstance, TelemetryValue

KINDS = ("gauge", "sum", "histogram")


@group(
    ("ask all clients for all metrics, every 10 s", "odradek client subscribe all --metrics '*' --interval 10s"),
    ("which clients push", "odradek client list"),
    ("the latest values of one", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw"),
    name="client",
)
def client() -> None:
    """Show the metrics that clients push, and choose which they push.

    Clients with KIP-714 push: Java from 3.7, librdkafka from 2.5. `list` and `describe` need Odradek's brokers.
    """


@client.command(
    ("clients, the last push first", "odradek client list"),
    name="list",
    short_help="List the clients that push their metrics.",
)
@cluster_options
def list_clients(cluster: Cluster, as_json: bool) -> None:
    """List the clients that push their metrics, or that have requested their subscription."""
    instances, missing = telemetry.read_instances(cluster)
    output.note_missing(missing, "clients")
    found = sorted(instances, key=lambda each: -each.instance.last_push_ms)
    now_ms = int(time.time() * 1000)
    titles = ["INSTANCE", "CLIENT ID", "SOFTWARE", "ADDRESS", "BROKER", "PUSHES", "METRICS", "LAST PUSH"]
    rows = [client_row(broker_id, each, now_ms) for broker_id, each in found]
    nothing = "no client has requested its subscription; clients do so some seconds after they have connected"
    output.print_list(map(as_object, found), titles, rows, otherwise=nothing, as_json=as_json)


def client_row(broker_id: int, found: TelemetryInstance, now_ms: int) -> tuple[object, ...]:
    age = f"{age_text(max(now_ms - found.last_push_ms, 0))} ago" if found.pushes else "never"
    client = telemetry.id_text(found.instance_id), found.client_id or "", software_text(found)
    return *client, f"{found.host}:{found.port}", broker_id, found.pushes, found.series, age


def software_text(instance: TelemetryInstance) -> str:
    return f"{instance.software_name} {instance.software_version}"


def as_object(found: telemetry.FoundInstance) -> dict[str, Any]:
    instance = found.instance
    return {
        "instance_id": telemetry.id_text(instance.instance_id),
        **output.fields_of(instance, "client_id software_name software_version host port"),
        "broker": found.broker_id,
        **output.fields_of(instance, "subscription_id push_interval_ms requested_metrics"),
        "last_error": ErrorCode(instance.last_error).name,
        "last_push_ms": instance.last_push_ms if instance.pushes else None,
        **output.fields_of(instance, "pushes received_bytes"),
        "metrics": instance.series,
        "dropped_metrics": instance.dropped_series,
    }


@client.command(
    ("all metrics of a client", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw"),
    ("those whose names have a text", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw --name latency"),
)
@click.argument("instance", metavar="INSTANCE", type=TEXT)
@option("--name", "TEXT", TEXT, "Only metrics whose names have this text.", default="")
@cluster_options
def describe(instance: str, name: str, cluster: Cluster, as_json: bool) -> None:
    """Show the latest metrics of a client. Sums and histograms are totals since its first push to the broker."""
    found, missing = telemetry.read_instances(cluster, telemetry.parse_id(instance))
    output.note_missing(missing, "clients")
    if not found:
        raise Failure(f"no broker knows the client instance {instance}; `odradek client list` shows them")
    latest = max(found, key=lambda each: each.instance.last_push_ms)
    values = sorted((each for each in latest.instance.values if name in each.name), key=lambda each: each.name)
    if as_json:
        output.print_json({**as_object(latest), "values": [value_object(each) for each in values]})
        return
    name_text = output.strong(latest.instance.client_id or instance)
    output.say(f"{name_text}  {software_text(latest.instance)}, broker {latest.broker_id}")
    rows = []
    for each in values:
        attributes = ", ".join(f"{attribute.name}={attribute.value}" for attribute in each.attributes)
        rows.append((each.name, f"{each.value:g}", KINDS[each.kind], attributes))
    output.print_columns(["METRIC", "VALUE", "KIND", "ATTRIBUTES"], rows)


def value_object(value: TelemetryValue) -> dict[str, Any]:
    kind = KINDS[value.kind]
    attributes = {each.name: each.value for each in value.attributes}
    shown: dict[str, Any] = {"name": value.name, "kind": kind, "value": value.value, "attributes": attributes}
    return shown | ({"count": value.count} if kind == "histogram" else {})


@client.command(
    ("all metrics of all clients, every 10 seconds", "odradek client subscribe all --metrics '*' --interval 10s"),
    (
        "metrics of the producers and consumers of one application",
        "odradek client subscribe shop --metrics org.apache --match client_id=shop",
    ),
)
@click.argument("name", metavar="NAME", type=TEXT)
@option("--metrics", "PREFIX,…", TEXT, "Prefixes of metric names; '*' is all.", required=True)
@option("--interval interval_ms", "DURATION", DURATION_MS, "How often clients push, from 100 ms to 1 h.", default="5m")
@option(
    "--match matches", "ATTRIBUTE=PATTERN", TEXT,
    "Only clients whose client_id, client_software_name, client_software_version, client_source_address, "
    "client_source_port or client_instance_id matches. Repeatable: all must match.", multiple=True,
)  # fmt: skip
@cluster_options
def subscribe(
    name: str, metrics: str, interval_ms: int, matches: tuple[str, ...], cluster: Cluster, as_json: bool
) -> None:
    """Let clients push metrics. A subscription of the same name is replaced."""
    settings = {"metrics": metrics, "interval.ms": str(interval_ms), "match": ",".join(matches)}
    telemetry.alter_subscription(cluster, name, {key: value or None for key, value in settings.items()})
    text = f"clients get the subscription {name} within 5 minutes; with the first one, when they connect again"
    output.print_result({"subscription": name, **settings}, text, as_json=as_json)


@client.command(("", "odradek client unsubscribe all"))
@click.argument("name", metavar="NAME", type=TEXT)
@cluster_options
def unsubscribe(name: str, cluster: Cluster, as_json: bool) -> None:
    """Remove a subscription."""
    telemetry.alter_subscription(cluster, name, dict.fromkeys(telemetry.SUBSCRIPTION_SETTINGS))
    output.print_result({"subscription": name, "removed": True}, f"removed the subscription {name}", as_json=as_json)


@client.command(("", "odradek client subscriptions"))
@cluster_options
def subscriptions(cluster: Cluster, as_json: bool) -> None:
    """List the subscriptions."""
    found = telemetry.read_subscriptions(cluster)
    keys = telemetry.SUBSCRIPTION_SETTINGS
    rows = [(name, *(settings.get(each, "") for each in keys)) for name, settings in found.items()]
    objects = [{"subscription": name, **settings} for name, settings in found.items()]
    nothing = "there are no subscriptions; `odradek client subscribe` adds one"
    output.print_list(objects, ["NAME", *map(str.upper, keys)], rows, otherwise=nothing, as_json=as_json)
