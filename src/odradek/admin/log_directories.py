"""The log directories of brokers, and the copies of partitions in them (DescribeLogDirs)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.broker_requests import BrokerRequests, KnownBroker, answers_of, by_topic, in_parts, live
from odradek.admin.errors import NotAuthorized, check
from odradek.conventions.dataclass import dataclass
from odradek.conventions.failures import Failure
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_log_dirs as describing

if TYPE_CHECKING:
    from odradek.admin.cluster_state import ClusterState, PartitionState

VERSIONS = (4, 2)  # 4 has the sizes of volumes
Sizes = dict[tuple[int, str, int], int]  # by broker, topic and partition


class Copy(NamedTuple):
    """A copy of a partition in a log directory of a broker. `is_future` while it is copied from another directory."""

    topic: str
    partition: int
    path: str
    size_bytes: int
    is_future: bool

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogDirectory(NamedTuple):
    """`total_bytes` and `usable_bytes` are those of the volume; −1 if the broker does not report them."""

    broker_id: int
    path: str
    error_code: int
    partitions: int
    stored_bytes: int
    total_bytes: int
    usable_bytes: int
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True, slots=True)
class Disks:
    """Sizes of partitions on each broker, and the log directories without their copies."""

    sizes: Mapping[tuple[int, str, int], int] = field(default_factory=dict)  # by broker, topic and partition
    directories: tuple[LogDirectory, ...] = ()
    is_denied: bool = False  # the user lacks Describe on the cluster


class BrokerCopies(NamedTuple):
    """The log directories of a broker, the errors of those that cannot be used, and the copies in the others."""

    paths: list[str]
    errors: dict[str, ErrorCode]
    copies: list[Copy]


def read_directories(
    requests: BrokerRequests, broker: KnownBroker, partitions: Iterable[tuple[str, int]] | None = None
) -> list[LogDirectory]:
    """The log directories of a broker, with the copies of these partitions or of all."""
    topics = None
    if partitions is not None:
        by_name = by_topic(partitions).items()
        topics = [describing.DescribableLogDirTopic(topic=name, partitions=some) for name, some in by_name]
    request = describing.DescribeLogDirsRequest(topics=topics)
    answer = requests.ask(broker, request, describing.DescribeLogDirsResponse, VERSIONS)
    check(answer.error_code, None, f"log directories of broker {broker.broker_id}")
    found = []
    for result in answer.results:
        copies = tuple(
            Copy(topic.name, each.partition_index, result.log_dir, each.partition_size, each.is_future_key)
            for topic in result.topics
            for each in topic.partitions
        )
        counts = sum(not each.is_future for each in copies), sum(each.size_bytes for each in copies)
        volume = result.total_bytes, result.usable_bytes
        found.append(LogDirectory(broker.broker_id, result.log_dir, result.error_code, *counts, *volume, copies))
    return found


def read_copies(requests: BrokerRequests, broker: KnownBroker) -> BrokerCopies:
    found = read_directories(requests, broker)
    errors = {each.path: ErrorCode(each.error_code) for each in found if each.error_code}
    copies = [copy for each in found if not each.error_code for copy in each.copies]
    return BrokerCopies([each.path for each in found], errors, copies)


def failed_text(broker: KnownBroker, found: BrokerCopies) -> str:
    """For messages: the log directories that cannot be used; empty if all can."""
    failed = ", ".join(f"{path} ({error.name})" for path, error in found.errors.items())
    return f"; broker {broker.broker_id} cannot use {failed}" if failed else ""


def read_disks(requests: BrokerRequests, state: ClusterState) -> Disks:
    """The log directories of the brokers that answer."""
    answers, failures = answers_of(live(state.brokers), lambda broker: read_directories(requests, broker))
    found = [each for directories in answers for each in directories]
    is_denied = any(isinstance(each, NotAuthorized) for each in failures.values())
    return Disks(_sizes_of(found), tuple(each._replace(copies=()) for each in found), is_denied)


def read_sizes(requests: BrokerRequests, state: ClusterState, partitions: Iterable[PartitionState]) -> Sizes:
    """Sizes on the brokers that answer; the others are left out."""
    asked: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for partition in partitions:
        for replica in {*partition.replicas, *partition.adding}:
            asked[replica].append((partition.topic, partition.index))
    sizes: Sizes = {}
    for broker in live(state.brokers):
        for part in in_parts(asked[broker.broker_id]):
            try:
                sizes |= _sizes_of(read_directories(requests, broker, part))
            except Failure:
                break
    return sizes


def _sizes_of(directories: Iterable[LogDirectory]) -> Sizes:
    return {
        (each.broker_id, *copy.key): copy.size_bytes
        for each in directories
        for copy in each.copies
        if not copy.is_future
    }
