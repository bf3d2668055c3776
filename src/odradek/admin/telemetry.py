"""The metrics that clients push: reads them from all brokers (DescribeClientTelemetry, an API of Odradek's own), and
reads and changes the subscriptions that ask clients for them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from odradek.admin.broker_metrics import listed_apis
from odradek.admin.broker_requests import BrokerRequests, KnownBroker, ask_each, describe_resources, live
from odradek.admin.errors import UnsupportedRequest, check
from odradek.admin.settings import Kind, alter_request, changes_to
from odradek.conventions.failures import Failure
from odradek.protocol.messages import describe_client_telemetry
from odradek.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from odradek.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

if TYPE_CHECKING:
    from odradek.admin.cluster import Cluster

ID_BYTES = 16
SUBSCRIPTION_SETTINGS = ("interval.ms", "metrics", "match")


class FoundInstance(NamedTuple):
    broker_id: int
    instance: describe_client_telemetry.TelemetryInstance


def id_text(instance_id: UUID) -> str:
    """As Kafka and its clients print ids."""
    return base64.urlsafe_b64encode(instance_id.bytes).decode().rstrip("=")


def parse_id(text: str) -> UUID:
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        content = b""
    if len(content) != ID_BYTES:
        raise Failure(f"{text!r} is not a client instance id; `odradek client list` shows them")
    return UUID(bytes=content)


def read_instances(cluster: Cluster, wanted: UUID | None = None) -> tuple[list[FoundInstance], dict[int, str]]:
    """The client instances of all brokers, or one of them with its values; and why brokers did not answer."""
    requests = BrokerRequests(cluster)
    request = describe_client_telemetry.DescribeClientTelemetryRequest(
        instance_ids=None if wanted is None else [wanted], include_values=wanted is not None
    )
    missing: dict[int, str] = {}

    def ask(broker: KnownBroker) -> list[FoundInstance]:
        if describe_client_telemetry.DescribeClientTelemetryRequest.api_key not in listed_apis(requests, broker):
            who = f"broker {broker.broker_id}"
            raise UnsupportedRequest(f"{who} does not show client telemetry: only brokers of Odradek do")
        answer = requests.ask(broker, request, describe_client_telemetry.DescribeClientTelemetryResponse, 0)
        check(answer.error_code, answer.error_message, f"client telemetry of broker {broker.broker_id}")
        return [FoundInstance(answer.broker_id, each) for each in answer.instances]

    found = ask_each(live(requests.describe().brokers), ask, missing)
    return [each for instances in found for each in instances], missing


def read_subscriptions(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The settings of each subscription, by name."""
    requests = BrokerRequests(cluster)
    listed = requests.ask_any(ListConfigResourcesRequest(), ListConfigResourcesResponse, 0)
    check(listed.error_code, None, "subscriptions")
    names = sorted(each.resource_name for each in listed.config_resources)
    described = describe_resources(requests, Kind.CLIENT_METRICS, names)
    found = {each.resource_name: {one.name: one.value or "" for one in each.configs} for each in described}
    return {name: found[name] for name in names}


def alter_subscription(cluster: Cluster, name: str, settings: Mapping[str, str | None]) -> None:
    """Change the settings of a subscription; None removes one. A subscription without settings does not exist."""
    request = alter_request(Kind.CLIENT_METRICS, {name: changes_to(settings)})
    (result,) = BrokerRequests(cluster).ask_controller(request, IncrementalAlterConfigsResponse, 1).responses
    check(result.error_code, result.error_message, f"subscription {name}")
