"""`odradek client describe`: the latest values of a client's metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from odradek.admin.telemetry import parse_id, read_instances
from odradek.cli.client.options import cluster_options
from odradek.cli.framework.commands import command
from odradek.cli.framework.output import note_missing, print_columns, print_json, say, strong
from odradek.cli.framework.parameter_types import TEXT
from odradek.cli.telemetry.list import as_object
from odradek.conventions.failures import Failure

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster
    from odradek.protocol.messages.describe_client_telemetry import TelemetryValue

KINDS = ("gauge", "sum", "histogram")


@command(
    examples=[
        ("all metrics of a client", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw"),
        ("those whose names have a text", "odradek client describe Wx6hXBUsRYuiVrYqnvfDEw --name latency"),
    ]
)
@click.argument("instance", metavar="INSTANCE", type=TEXT)
@click.option("--name", metavar="TEXT", type=TEXT, default="", help="Only metrics whose names have this text.")
@cluster_options
def describe(instance: str, name: str, cluster: Cluster, as_json: bool) -> None:
    """Show the latest metrics of a client. Sums and histograms are totals since its first push to the broker."""
    found, missing = read_instances(cluster, parse_id(instance))
    note_missing(missing, "clients")
    if not found:
        raise Failure(f"no broker knows the client instance {instance}; `odradek client list` shows them")
    latest = max(found, key=lambda each: each.instance.last_push_ms)
    values = sorted((each for each in latest.instance.values if name in each.name), key=lambda each: each.name)
    if as_json:
        print_json({**as_object(latest), "values": [value_object(each) for each in values]})
        return
    client = latest.instance
    software = f"{client.software_name} {client.software_version}"
    say(f"{strong(client.client_id or instance)}  {software}, broker {latest.broker_id}")
    print_columns(
        ["METRIC", "VALUE", "KIND", "ATTRIBUTES"],
        [(each.name, f"{each.value:g}", KINDS[each.kind], attributes_text(each)) for each in values],
    )


def value_object(value: TelemetryValue) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": value.name,
        "kind": KINDS[value.kind],
        "value": value.value,
        "attributes": {each.name: each.value for each in value.attributes},
    }
    return shown | ({"count": value.count} if KINDS[value.kind] == "histogram" else {})


def attributes_text(value: TelemetryValue) -> str:
    return ", ".join(f"{each.name}={each.value}" for each in value.attributes)
