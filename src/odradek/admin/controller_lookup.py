"""The controller of a cluster, also where DescribeCluster does not name it.

A broker of a KRaft cluster answers DescribeCluster with the id of any live broker as the controller's, because clients
cannot reach controllers (KIP-590). Such brokers serve DescribeQuorum, which names the leader of the quorum. They
forward it to the controller, and do not answer for a minute while there is none.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from odradek.admin.errors import AnswerTimeout
from odradek.conventions.failures import Failure
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
)

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, DescribedCluster

METADATA_TOPIC = "__cluster_metadata"
AFTER_REFUSAL_S = 60.0  # DescribeQuorum needs Describe on the cluster
AFTER_TIMEOUT_S = 15.0


class ControllerLookup:
    """Asks once whether the brokers are those of a KRaft cluster."""

    def __init__(self, requests: BrokerRequests) -> None:
        self._requests = requests
        self._is_kraft: bool | None = None
        self._asks_from = -math.inf  # time.monotonic()

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
        if time.monotonic() < self._asks_from:
            return None
        partitions = [DescribeQuorumPartition(partition_index=0)]
        request = DescribeQuorumRequest(topics=[DescribeQuorumTopic(topic_name=METADATA_TOPIC, partitions=partitions)])
        try:
            answer = self._requests.ask_any(request, DescribeQuorumResponse, 0, is_forwarded=True)
        except AnswerTimeout:
            self._asks_from = time.monotonic() + AFTER_TIMEOUT_S
            return None
        except Failure:
            return None
        if answer.error_code:
            self._asks_from = time.monotonic() + AFTER_REFUSAL_S
            return None
        return next(
            (each.leader_id for topic in answer.topics for each in topic.partitions if not each.error_code), None
        )
