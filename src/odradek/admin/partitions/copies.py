"""The copies of partitions in the log directories of a broker (DescribeLogDirs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.admin.errors import check
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

if TYPE_CHECKING:
    from odradek.admin.broker_requests import BrokerRequests, KnownBroker


class Copy(NamedTuple):
    """A copy of a partition in a log directory of the broker."""

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


class BrokerCopies(NamedTuple):
    """The log directories of a broker, the errors of those that cannot be used, and the copies in the others."""

    paths: list[str]
    errors: dict[str, ErrorCode]
    copies: list[Copy]


def read_copies(requests: BrokerRequests, broker: KnownBroker) -> BrokerCopies:
    answer = requests.ask(broker, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 4)
    check(answer.error_code, None, f"log directories of broker {broker.broker_id}")
    errors = {result.log_dir: ErrorCode(result.error_code) for result in answer.results if result.error_code}
    copies = [
        Copy(topic.name, each.partition_index, result.log_dir, each.partition_size, each.is_future_key)
        for result in answer.results
        if not result.error_code
        for topic in result.topics
        for each in topic.partitions
    ]
    return BrokerCopies([result.log_dir for result in answer.results], errors, copies)


def failed_text(broker: KnownBroker, found: BrokerCopies) -> str:
    """For messages: the log directories that cannot be used; empty if all can."""
    failed = ", ".join(f"{path} ({error.name})" for path, error in found.errors.items())
    return f"; broker {broker.broker_id} cannot use {failed}" if failed else ""
