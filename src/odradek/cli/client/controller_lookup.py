"""The controller of a cluster, also where DescribeCluster does not name it.

A broker of a KRaft cluster answers DescribeCluster with the id of any live broker as the controller's, because clients
cannot reach controllers (KIP-590). Such brokers serve DescribeQuorum, which names the leader of the quorum.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from odradek.cli.framework.failure import Failure
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
)

if TYPE_CHECKING:
    from odradek.cli.client.broker_requests import BrokerRequests, DescribedCluster

METADATA_TOPIC = "__cluster_metadata"
ASK_AGAIN_S = 60.0  # after a refusal: DescribeQuorum needs Describe on the cluster


class ControllerLookup:
    """Asks once whether the brokers are those of a KRaft cluster."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._is_kraft: bool | None = None
        self._refused_at = -math.inf

    def complete(self, described: DescribedCluster) -> DescribedCluster:
        """The description with the real controller, or with none if the cluster does not report it."""
        if self._is_kraft is None:
            answer = self._requests.ask_any(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._is_kraft = any(each.api_key == DescribeQuorumRequest.api_key for each in answer.api_keys)
        if not self._is_kraft:
            return described
        leader = self._read_leader()
        if leader is None:
            return described._replace(controller_id=None, knows_controller=False)
        return described._replace(controller_id=leader if leader >= 0 else None)

    def _read_leader(self) -> int | None:
        """−1 if the quorum has no leader; None if it is not known."""
        if time.monotonic() - self._refused_at < ASK_AGAIN_S:
            return None
        partitions = [DescribeQuorumPartition(partition_index=0)]
        request = DescribeQuorumRequest(topics=[DescribeQuorumTopic(topic_name=METADATA_TOPIC, partitions=partitions)])
        try:
            answer = self._requests.ask_any(request, DescribeQuorumResponse, 0)
        except Failure:
            return None
        if answer.error_code:
            self._refused_at = time.monotonic()
            return None
        return next(
            (each.leader_id for topic in answer.topics for each in topic.partitions if not each.error_code), None
        )
