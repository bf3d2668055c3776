"""Reads the facts of a cluster: few requests for any number of topics, each of a bounded size."""

from __future__ import annotations

import socket
import time
from collections import Counter
from typing import TYPE_CHECKING

from odradek.admin.broker_metrics import metrics_of, serves_metrics
from odradek.admin.broker_requests import BrokerRequests
from odradek.admin.cluster_state import MIN_IN_SYNC, TOPIC_RESOURCE, ControllerLookup, MinInSync, read_disks, read_state
from odradek.admin.doctor.cluster.facts import ClusterFacts, Contact, Limits
from odradek.admin.doctor.cluster.reading_groups import compare, read_groups
from odradek.admin.doctor.cluster.reading_transactions import newest_internal_records, read_hanging
from odradek.admin.doctor.cluster.topics import SETTINGS
from odradek.admin.doctor.reading import all_at_once
from odradek.admin.request_parts import TOPICS_PER_REQUEST, in_parts
from odradek.conventions.addresses import is_loopback, split_addresses
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.admin.broker_requests import KnownBroker
    from odradek.admin.cluster import Cluster
    from odradek.admin.cluster_state import ClusterState
    from odradek.admin.doctor.reading import Reader

BROKER_TIMEOUT_S = 8.0


def read_cluster(cluster: Cluster, reader: Reader, interval_s: float, limits: Limits) -> ClusterFacts:
    """All facts; what cannot be read is None, and `reasons` says why."""
    requests = BrokerRequests(cluster, BROKER_TIMEOUT_S)
    facts = ClusterFacts(limits=limits, reasons=reader.reasons, from_elsewhere=is_elsewhere(cluster.bootstrap_servers))
    settings = TopicSettings(requests, reader)
    lookup = ControllerLookup(requests)
    facts.state = reader.read(
        "state", "reading topics and their settings …", lambda: read_state(requests, settings, lookup)
    )
    if facts.state is None:
        facts.unreachable = why_unreachable(requests)
        reason = reader.reasons["state"]
        if facts.unreachable is not None:
            reason = "no broker answers"
        for name in ("state", "contacts", "topic_settings", "disks", "groups", "hanging", "open_files", "ahead_ms"):
            reader.reasons[name] = reason
        return facts
    state = facts.state
    began_at = time.monotonic()
    first = reader.read("groups", "reading groups and their lag …", lambda: read_groups(requests, state, reader))
    facts.topic_settings = settings.known if settings.known or not settings.refusals else None
    reader.leave_out("topic_settings", settings.refusals, "topic", "settings of {}")
    facts.contacts = reader.read("contacts", "connecting to each broker …", lambda: contact_all(requests, state))
    facts.disks = reader.read("disks", "reading log directories …", lambda: read_disks(requests, state))
    facts.hanging = reader.read(
        "hanging", "looking for hanging transactions …", lambda: read_hanging(requests, state, reader)
    )
    facts.open_files = reader.read("open_files", "reading limits …", lambda: read_open_files(cluster, requests, state))
    facts.ahead_ms = reader.read(
        "ahead_ms", "comparing clocks …", lambda: newest_internal_records(requests, state, reader)
    )
    facts.groups = first
    if first and interval_s > 0:
        reader.pause(interval_s - (time.monotonic() - began_at))
        second = reader.read("later_groups", "reading the lag again …", lambda: read_groups(requests, state, reader))
        facts.later_groups = second or []
        facts.groups = compare(first, facts.later_groups, time.monotonic() - began_at)
    return facts


def why_unreachable(requests: BrokerRequests) -> str | None:
    """None if a broker answers: the cluster can be reached, and refuses something."""
    try:
        requests.ask_any(ApiVersionsRequest(), ApiVersionsResponse, 0)
    except Failure as failure:
        return failure.message
    return None


class TopicSettings(MinInSync):
    """The settings of topics that rules use. `known` has them by topic."""

    def __init__(self, requests: BrokerRequests, reader: Reader) -> None:
        super().__init__(requests)
        self._broker = requests
        self._reader = reader
        self.known: dict[str, dict[str, str]] = {}
        self.refusals: Counter[int] = Counter()  # error codes of topics whose settings could not be read

    def of(self, topics: Iterable[str]) -> Mapping[str, int]:
        for names in in_parts(topics, TOPICS_PER_REQUEST):
            self._reader.check_time()
            resources = [
                DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic, configuration_keys=list(SETTINGS)
                )
                for topic in names
            ]
            answer = self._broker.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, 4)
            for result in answer.results:
                if result.error_code:
                    if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # it was deleted
                        self.refusals[result.error_code] += 1
                    continue
                self.known[result.resource_name] = {
                    each.name: each.value for each in result.configs if each.value is not None
                }
        return {topic: int(settings.get(MIN_IN_SYNC, "1")) for topic, settings in self.known.items()}


def contact_all(requests: BrokerRequests, state: ClusterState) -> list[Contact]:
    return all_at_once(lambda broker: contact(requests, broker), state.brokers.values())


def contact(requests: BrokerRequests, broker: KnownBroker) -> Contact:
    """A connection to the address that a broker advertises, and its versions."""
    addresses: tuple[str, ...] = ()
    try:
        addresses = resolve(broker.host, broker.port)
        request = ApiVersionsRequest(client_software_name="odradek-cli", client_software_version="1")
        answer = requests.ask(broker, request, ApiVersionsResponse, 3)
    except OSError as error:
        reason = f"the name {broker.host} cannot be resolved: {error.strerror or error}"
        return Contact(broker.broker_id, broker.host, broker.port, reason, addresses)
    except Failure as failure:
        return Contact(broker.broker_id, broker.host, broker.port, failure.message, addresses)
    return Contact(
        broker.broker_id,
        broker.host,
        broker.port,
        addresses=addresses,
        apis={each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
        features={each.name: each.max_version_level for each in answer.finalized_features},
    )


def read_open_files(cluster: Cluster, requests: BrokerRequests, state: ClusterState) -> dict[int, tuple[int, int]]:
    """Open and allowed files of the brokers of Odradek; other brokers do not report them."""
    found = {}
    for broker in state.brokers.values():
        if broker.is_fenced:
            continue
        try:
            if serves_metrics(cluster.address(*broker.address), BROKER_TIMEOUT_S):
                metrics = metrics_of(requests, broker, ["process_"])
                files = (int(metrics.total("process_open_fds")), int(metrics.total("process_max_fds")))
                found[broker.broker_id] = files
        except Failure:
            continue  # a broker that does not answer has a finding of its own
    return {broker_id: files for broker_id, files in found.items() if files[1] > 0}


def resolve(host: str, port: int) -> tuple[str, ...]:
    """The addresses of a host name, without duplicates; OSError if it has none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(each[4][0]) for each in found))


def is_elsewhere(bootstrap_servers: str) -> bool:
    """Whether the given addresses are not loopback addresses of this machine."""
    for host, port in split_addresses(bootstrap_servers):
        try:
            if any(map(is_loopback, resolve(host, port))):
                return False
        except OSError:
            continue
    return True
