"""The appends of one Produce request: its batches are appended at once, or deferred to be converted on a worker.

The memory of the request is used again as soon as the request waits: nothing of it is kept, and batches that are
deferred are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.handlers.produce_conversions import DeferredAppend, memory_of
from odradek.handlers.produce_refusals import MOST_EXPLAINED, explain
from odradek.handlers.produced_batches import FLAGS_POSITION, is_compressed, is_transactional, is_zstd
from odradek.host.logs import get_logger
from odradek.log.append_result import CONVERT_FIRST
from odradek.log.batch_conversion import EventLoopBudget, is_decompressed_only
from odradek.protocol.batch import TRANSACTIONAL_FLAG
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import PartitionProduceResponse
from odradek.replica.partition import ALL_IN_SYNC

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping
    from uuid import UUID

    from odradek.handlers.context import RequestContext
    from odradek.handlers.transaction_verification import Verdict
    from odradek.log.append_result import AppendResult
    from odradek.log.batch_conversion import Conversion
    from odradek.log.transaction_verification import VerificationGuard
    from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.replica.partition import Partition

log = get_logger(__name__)

FIRST_VERSION_WITH_ZSTD = 7
NO_ACKNOWLEDGEMENT = 0
LEGAL_ACKS = (ALL_IN_SYNC, NO_ACKNOWLEDGEMENT, 1)

# Of the errors that every producer retries, the one for a batch that was not appended; as for coordinators (KIP-890).
CONVERSIONS_ARE_FULL = ErrorCode.NOT_ENOUGH_REPLICAS
CONVERSIONS_ARE_FULL_MESSAGE = "too many large batches wait to be converted for their topics; retry"

_COMPRESSED_ERRORS = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE})
_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long


class UnfinishedAppend(NamedTuple):
    """A batch that was appended and that may not be acknowledged."""

    partition: Partition
    end_offset: int
    leader_epoch: int
    """The leader epoch in which the batch was appended."""
    response: PartitionProduceResponse


class RequestAppends:
    __slots__ = (
        "_budget",
        "_deferred",
        "_deferred_bytes",
        "_explained_count",
        "_full_partitions",
        "_refusal",
        "_takes_zstd",
        "_traffic",
        "_verdicts",
        "_waiting_partitions",
        "acks",
        "context",
        "has_errors",
        "is_throttled",
        "unfinished",
    )

    def __init__(
        self, request: ProduceRequest, context: RequestContext, verdicts: Mapping[TopicPartition, Verdict] | None
    ) -> None:
        """`verdicts` are those on transactional batches; None for a request without a transactional id."""
        self.context = context
        self.acks = request.acks
        self.has_errors = False  # of which some may need a leader hint
        self.is_throttled = False
        self.unfinished: list[UnfinishedAppend] = []
        self._verdicts = verdicts
        self._traffic = context.services.metrics.traffic
        self._refusal = None if request.acks in LEGAL_ACKS else ErrorCode.INVALID_REQUIRED_ACKS
        self._takes_zstd = context.api_version >= FIRST_VERSION_WITH_ZSTD
        self._budget = EventLoopBudget()
        self._deferred: list[DeferredAppend] = []
        self._deferred_bytes = 0
        self._waiting_partitions: set[Partition] = set()  # so that later batches of them are not appended before
        self._full_partitions: set[Partition] = set()  # of which a batch was refused for lack of room
        self._explained_count = 0

    @property
    def are_deferred(self) -> bool:
        return bool(self._deferred)

    def append(
        self, data: PartitionProduceData, topic: str | UUID, partitions: Mapping[int, Partition]
    ) -> PartitionProduceResponse:
        """The order of the checks is Kafka's: the partition, the request, the batch."""
        index, records = data.index, data.records
        partition = partitions.get(index)
        if partition is None:
            self.has_errors = True
            return refused(index, self.context.services.partitions.absence(topic, index))
        if self._refusal is not None:
            return refused(index, self._refusal)
        if records is None:
            return refused(index, ErrorCode.INVALID_RECORD)
        guard: VerificationGuard | None = None
        if len(records) > FLAGS_POSITION and records[FLAGS_POSITION] & TRANSACTIONAL_FLAG and is_transactional(records):
            if self._verdicts is None:
                return refused(index, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
            verdict = self._verdicts.get((partition.topic, index))
            if isinstance(verdict, ErrorCode):
                self.has_errors = True
                return refused(index, verdict)
            guard = verdict
        if not self._takes_zstd and is_zstd(records):
            return refused(index, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        response = PartitionProduceResponse(index=index, error_code=0)
        if self._waiting_partitions and partition in self._waiting_partitions:
            result: AppendResult | None = CONVERT_FIRST
        else:
            result = self._try_append(partition, records, guard, self._budget)
        if result is CONVERT_FIRST:
            self._defer(partition, records, guard, response)
        else:
            self._finish(partition, records, result, response)
        return response

    def append_deferred(self, timeout_ms: int) -> Awaitable[None]:
        deferred, self._deferred = self._deferred, []
        return self.context.services.produce_conversions.append(
            deferred,
            timeout_ms,
            lambda each, conversion: self._try_append(each.partition, each.records, each.guard, conversion),
            lambda each, result: self._finish(each.partition, each.records, result, each.response),
        )

    def _defer(
        self,
        partition: Partition,
        records: memoryview,
        guard: VerificationGuard | None,
        response: PartitionProduceResponse,
    ) -> None:
        has_room = self.context.services.produce_conversions.has_room(
            len(records),
            self._deferred_bytes,
            is_decompressed_only=is_decompressed_only(records, partition.log.config),
        )
        if not has_room or partition in self._full_partitions:
            self._waiting_partitions.add(partition)
            self._full_partitions.add(partition)
            self.is_throttled = True
            _refuse(response, CONVERSIONS_ARE_FULL)
            response.error_message = CONVERSIONS_ARE_FULL_MESSAGE
            return
        deferred = DeferredAppend(partition, memoryview(bytearray(records)), guard, response)
        self._deferred.append(deferred)
        self._deferred_bytes += memory_of(deferred)
        self._waiting_partitions.add(partition)

    def _try_append(
        self, partition: Partition, records: memoryview, guard: VerificationGuard | None, conversion: Conversion
    ) -> AppendResult | None:
        """None if the disk failed."""
        try:
            return partition.append(records, self.acks, verification=guard, conversion=conversion)
        except OSError as problem:
            log.error("append failed", topic=partition.topic, partition=partition.index, reason=problem)
            return None

    def _finish(
        self,
        partition: Partition,
        records: memoryview,
        result: AppendResult | None,
        response: PartitionProduceResponse,
    ) -> None:
        """Fills in the response, and notes what the request waits for."""
        if result is None:
            _refuse(response, ErrorCode.KAFKA_STORAGE_ERROR)
            return
        error, base_offset, last_offset, log_append_time_ms, is_duplicate = result
        if error is not _NONE:
            self._finish_refused(partition, records, error, response)
            return
        if not is_duplicate:
            self._traffic.produced(partition.topic, len(records), last_offset - base_offset + 1)
        response.base_offset = base_offset
        response.log_append_time_ms = log_append_time_ms
        response.log_start_offset = partition.log.log_start_offset
        if last_offset >= partition.high_watermark and (self.acks == ALL_IN_SYNC or partition.must_flush):
            self.unfinished.append(UnfinishedAppend(partition, last_offset + 1, partition.leader_epoch, response))

    def _finish_refused(
        self, partition: Partition, records: memoryview, error: ErrorCode, response: PartitionProduceResponse
    ) -> None:
        self.has_errors = True
        _refuse(response, error)
        # Compressed records that had to be read and are refused: a few bytes may have taken a long time.
        if error in _COMPRESSED_ERRORS and is_compressed(records):
            self.is_throttled = True
        if self._explained_count < MOST_EXPLAINED:
            self._explained_count += 1
            explain(partition, records, response)


def refused(index: int, error: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=error, base_offset=-1, log_start_offset=-1)


def _refuse(response: PartitionProduceResponse, error: ErrorCode) -> None:
    response.error_code, response.base_offset, response.log_start_offset = error, -1, -1
