"""Markers for partitions that this broker leads. Those of groups go through their coordinator, which applies the
offsets that the transaction committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odradek.coordinator.groups.group_coordinator import OFFSETS_TOPIC
from odradek.host.logs import get_logger
from odradek.protocol.errors import ErrorCode
from odradek.replica.waiting_requests import WaitingProduce

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator

    from odradek.coordinator.groups.group_coordinator import GroupCoordinator
    from odradek.coordinator.transactions.transaction import TransactionVersion
    from odradek.host.clock import Clock
    from odradek.protocol.control_records import EndTransactionMarker
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition_table import PartitionTable

log = get_logger(__name__)

COMMIT_TIMEOUT_MS = 8_000  # less than the coordinator on another broker waits for the answer


class LocalMarkers:
    def __init__(self, partitions: PartitionTable, groups: GroupCoordinator, clock: Clock) -> None:
        self._partitions = partitions
        self._groups = groups
        self._clock = clock

    def append_marker(
        self,
        partition: TopicPartition,
        marker: EndTransactionMarker,
        version: TransactionVersion,
        *,
        is_repeated: bool = False,  # noqa: ARG002 - the shape of all leaders
    ) -> ErrorCode | Awaitable[ErrorCode]:
        topic, index = partition
        if topic == OFFSETS_TOPIC:
            return self._groups.end_transaction(index, marker, version)
        hosted = self._partitions.find(topic, index)
        if hosted is None:
            return self._partitions.absence(topic, index)
        try:
            result = hosted.append_marker(marker, transaction_version=version)
        except OSError as problem:
            log.error("a transaction marker could not be written", topic=topic, partition=index, reason=problem)
            return ErrorCode.KAFKA_STORAGE_ERROR
        if result.error is not ErrorCode.NONE or result.last_offset < hosted.high_watermark:
            return result.error
        return _CommitWait(WaitingProduce([(hosted, result.last_offset + 1)], COMMIT_TIMEOUT_MS, self._clock))


class _CommitWait:
    """Awaitable, but not a coroutine: a request that is cancelled at its first marker never awaits the others."""

    def __init__(self, waiting: WaitingProduce) -> None:
        self._waiting = waiting

    def __await__(self) -> Generator[Any, None, ErrorCode]:
        (error,) = yield from self._waiting.wait().__await__()
        return error
