"""Sizes of partitions on brokers (DescribeLogDirs)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from odradek.admin.request_parts import PARTITIONS_PER_REQUEST, by_topic, in_parts
from odradek.conventions.failures import Failure
from odradek.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster_state import ClusterState, PartitionState
    from odradek.admin.partitions.plan import Move

Sizes = dict[tuple[int, str, int], int]  # by broker, topic and partition


def read_sizes(requests: BrokerRequests, state: ClusterState, partitions: Iterable[PartitionState]) -> Sizes:
    """Sizes on the brokers that answer; the others are left out."""
    asked: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for partition in partitions:
        for replica in {*partition.replicas, *partition.adding}:
            asked[replica].append((partition.topic, partition.index))
    found: Sizes = {}
    for broker_id, its_partitions in asked.items():
        broker = state.brokers.get(broker_id)
        if broker is None or broker.is_fenced:
            continue
        for part in in_parts(its_partitions, PARTITIONS_PER_REQUEST):
            topics = [DescribableLogDirTopic(topic=topic, partitions=some) for topic, some in by_topic(part).items()]
            try:
                answer = requests.ask(broker, DescribeLogDirsRequest(topics=topics), DescribeLogDirsResponse, 2)
            except Failure:
                break
            for directory in answer.results:
                for topic in directory.topics:
                    for each in topic.partitions:
                        found[broker_id, topic.name, each.partition_index] = each.partition_size
    return found


def with_sizes(moves: Sequence[Move], sizes: Sizes) -> list[Move]:
    return [
        replace(move, size_bytes=sizes.get((move.partition.leader, move.partition.topic, move.partition.index)))
        for move in moves
    ]
