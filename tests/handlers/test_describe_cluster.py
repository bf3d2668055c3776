"""DescribeCluster: brokers, controller and cluster id, to those who ask for brokers."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.handlers.brokers import AnyBroker

NO_OPERATIONS = -(2**31)
CLUSTER_OPERATIONS = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))


@pytest.mark.parametrize("version", [0, 1, 2])
def test_it_tells_what_metadata_tells(broker: AnyBroker, version: int) -> None:
    answer = broker.call(DescribeClusterRequest(), DescribeClusterResponse, version)
    metadata = broker.call(MetadataRequest(topics=[]), MetadataResponse)
    assert (answer.error_code, answer.cluster_id) == (ErrorCode.NONE, metadata.cluster_id)
    assert [(each.broker_id, each.host, each.port) for each in answer.brokers] == [
        (each.node_id, each.host, each.port) for each in metadata.brokers
    ]
    assert answer.controller_id == metadata.controller_id
    assert answer.cluster_authorized_operations == NO_OPERATIONS


def test_authorized_operations_are_reported_when_asked_for(broker: AnyBroker) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = broker.call(request, DescribeClusterResponse)
    assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS


@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_controllers_are_not_found_at_a_brokers_door(broker: AnyBroker, endpoint_type: int, error: ErrorCode) -> None:
    request = DescribeClusterRequest(endpoint_type=endpoint_type)
    answer = broker.call(request, DescribeClusterResponse)
    assert (answer.error_code, answer.brokers) == (error, [])
    assert answer.error_message
