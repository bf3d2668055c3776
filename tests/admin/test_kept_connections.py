"""One connection to each broker: it is used again, replaced after a failure, and not used with other credentials."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from odradek.admin.errors import NoAnswer, UnsupportedRequest
from odradek.admin.security import WireSecurity
from odradek.admin.wire import KeptConnections, SecuredAddress
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.console.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.console.fake_cluster import FakeBroker

REQUEST = MetadataRequest(topics=None)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with fake_cluster(1) as cluster:
        yield cluster.brokers[0]


@pytest.fixture
def connections() -> Iterator[KeptConnections]:
    kept = KeptConnections()
    yield kept
    kept.close()


def ask(connections: KeptConnections, broker: FakeBroker, security: WireSecurity | None = None) -> None:
    address = SecuredAddress("127.0.0.1", broker.port, security)
    assert connections(address, REQUEST, MetadataResponse, 12, 0.5).topics


def test_a_connection_is_used_again(connections: KeptConnections, broker: FakeBroker) -> None:
    for _ in range(3):
        ask(connections, broker)
    assert broker.accepted == 1


def test_a_connection_that_the_broker_closed_is_replaced(connections: KeptConnections, broker: FakeBroker) -> None:
    ask(connections, broker)
    broker.close_connections()
    ask(connections, broker)
    assert broker.accepted == 2


def test_other_credentials_need_another_connection(connections: KeptConnections, broker: FakeBroker) -> None:
    first, second = WireSecurity(None, None), WireSecurity(None, None)
    for security in (first, first, second, second):
        ask(connections, broker, security)
    assert broker.accepted == 2


def test_a_late_response_is_not_that_of_the_next_request(connections: KeptConnections, broker: FakeBroker) -> None:
    ask(connections, broker)
    broker.goes_on.clear()
    with pytest.raises(NoAnswer):
        ask(connections, broker)
    assert broker.accepted == 1  # a broker that hangs is not asked twice
    broker.goes_on.set()
    ask(connections, broker)
    assert broker.accepted == 2


def test_a_broker_is_asked_once_for_its_versions(connections: KeptConnections, broker: FakeBroker) -> None:
    """It has DescribeCluster up to version 2, and no ListGroups."""
    address = SecuredAddress("127.0.0.1", broker.port, None)
    for versions in ((7, 2, 0), (1,)):
        assert connections(address, DescribeClusterRequest(), DescribeClusterResponse, versions).cluster_id == "fake"
    with pytest.raises(UnsupportedRequest, match="does not support ListGroups"):
        connections(address, ListGroupsRequest(), ListGroupsResponse, (5, 4))
    assert broker.requests == [ApiVersionsRequest.api_key, *[DescribeClusterRequest.api_key] * 2]
    assert broker.accepted == 1


def test_threads_share_connections(connections: KeptConnections, broker: FakeBroker) -> None:
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(ask, connections, broker) for _ in range(100)]:
            done.result()
    assert broker.accepted <= 100
    accepted = broker.accepted
    ask(connections, broker)
    assert broker.accepted == accepted
