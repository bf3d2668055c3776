"""The metrics of brokers over the wire, by Odradek's own API; for commands and the console.

`metrics_of` asks one broker, `metrics_of_all` each broker of a cluster. A broker of Apache Kafka does not know the API:
`serves_metrics` distinguishes them by the list of APIs that a broker returns to Odradek's clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import answers_of, live
from odradek.admin.errors import check
from odradek.conventions.failures import Failure
from odradek.protocol.messages import describe_broker_metrics as describing
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker

SOFTWARE_NAME = "odradek"
KINDS = ("counter", "gauge", "histogram")
VERSION = 0


class MetricPoint(NamedTuple):
    """One line of /metrics. `name` has the suffix of a histogram's point: _bucket, _sum or _count."""

    name: str
    labels: Mapping[str, str]
    value: float


class BrokerMetrics(NamedTuple):
    """`time_ms` is the broker's clock when the points were collected; `kinds` and `texts` are by name of a metric."""

    broker_id: int
    time_ms: int
    kinds: Mapping[str, str]
    texts: Mapping[str, str]
    points: Sequence[MetricPoint]

    def total(self, name: str, **labels: str) -> float:
        """The sum of the points with this name and these labels; 0 if there are none."""
        return sum(
            point.value
            for point in self.points
            if point.name == name and all(point.labels.get(label) == value for label, value in labels.items())
        )

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """The sums of the points with this name, by one label."""
        found: dict[str, float] = {}
        for point in self.points:
            if point.name == name and label in point.labels:
                found[point.labels[label]] = found.get(point.labels[label], 0.0) + point.value
        return found


def metrics_of(requests: BrokerRequests, broker: KnownBroker, prefixes: Sequence[str] = ()) -> BrokerMetrics:
    """Failure if the broker does not answer, refuses, or is not Odradek's. `prefixes` choose metrics by name."""
    request = describing.DescribeBrokerMetricsRequest(name_prefixes=list(prefixes))
    try:
        response = requests.ask(broker, request, describing.DescribeBrokerMetricsResponse, VERSION)
    except Failure as failure:
        raise Failure(f"no metrics of broker {broker.broker_id}: {failure.message}") from None
    check(response.error_code, response.error_message, f"metrics of broker {broker.broker_id}")
    return BrokerMetrics(
        response.broker_id,
        response.time_ms,
        {family.name: KINDS[family.kind] for family in response.families},
        {family.name: family.text for family in response.families},
        [
            MetricPoint(family.name + point.suffix, {each.name: each.value for each in point.labels}, point.value)
            for family in response.families
            for point in family.points
        ],
    )


def metrics_of_all(
    requests: BrokerRequests, prefixes: Sequence[str] = ()
) -> tuple[list[BrokerMetrics], dict[int, str]]:
    """The metrics of each broker that runs; and by broker why another one has none."""
    brokers = requests.describe().brokers
    found, failures = answers_of(live(brokers), lambda broker: metrics_of(requests, broker, prefixes))
    missing = {each.broker_id: "the broker is fenced" for each in brokers.values() if each.is_fenced}
    missing |= {broker_id: failure.message for broker_id, failure in failures.items()}
    return found, dict(sorted(missing.items()))


def serves_metrics(requests: BrokerRequests, broker: KnownBroker) -> bool:
    """Whether the broker has the API; Failure if it does not answer."""
    return describing.DescribeBrokerMetricsRequest.api_key in listed_apis(requests, broker)


def listed_apis(requests: BrokerRequests, broker: KnownBroker) -> set[int]:
    """The keys of the APIs that a broker lists to clients of Odradek, which learn of Odradek's own."""
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version="1")
    return {each.api_key for each in requests.ask(broker, request, ApiVersionsResponse, 3).api_keys}
