"""The log directories of brokers, and the sizes of partitions in them (DescribeLogDirs)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.admin.broker_requests import BrokerRequests
    from odradek.admin.cluster_state import ClusterState


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """`total_bytes` and `usable_bytes` are those of the volume; −1 if the broker does not report them."""

    broker_id: int
    path: str
    error_code: int
    partitions: int
    stored_bytes: int
    total_bytes: int
    usable_bytes: int


@dataclass(frozen=True, slots=True)
class Disks:
    """Sizes of partitions on each broker, and the log directories."""

    sizes: Mapping[tuple[int, str, int], int] = field(default_factory=dict)  # by broker, topic and partition
    directories: tuple[LogDirectory, ...] = ()
    is_denied: bool = False  # the user lacks Describe on the cluster


def read_disks(requests: BrokerRequests, state: ClusterState) -> Disks:
    """The log directories of the brokers that answer."""
    sizes: dict[tuple[int, str, int], int] = {}
    directories: list[LogDirectory] = []
    is_denied = False
    for broker in state.brokers.values():
        if broker.is_fenced:
            continue
        try:
            answer = requests.ask(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
        except Failure:
            continue
        is_denied = is_denied or answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        for directory in answer.results:
            before = len(sizes)
            stored = 0
            for topic in directory.topics:
                for each in topic.partitions:
                    if not each.is_future_key:
                        sizes[broker.broker_id, topic.name, each.partition_index] = each.partition_size
                    stored += each.partition_size
            directories.append(
                LogDirectory(
                    broker.broker_id,
                    directory.log_dir,
                    directory.error_code,
                    len(sizes) - before,
                    stored,
                    directory.total_bytes,
                    directory.usable_bytes,
                )
            )
    return Disks(sizes, tuple(directories), is_denied)
