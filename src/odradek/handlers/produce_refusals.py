"""The error message for a batch that its partition refused, and the records that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import BatchIndexAndErrorMessage

if TYPE_CHECKING:
    from odradek.protocol.messages.produce import PartitionProduceResponse
    from odradek.replica.partition import Partition

_BLAMES_RECORDS = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
_LIMITS = {ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes", ErrorCode.RECORD_LIST_TOO_LARGE: "segment.bytes"}


# For each request: finding the invalid records of a batch costs a millisecond or more, on the event loop. Further
# batches have only their error code.
MOST_EXPLAINED = 16


def explain(partition: Partition, batch: memoryview, response: PartitionProduceResponse) -> None:
    """Adds the error message, and the invalid records if the batch was refused because of them."""
    error = ErrorCode(response.error_code)
    if error in _LIMITS:
        config = partition.log.config
        limit_bytes = config.max_message_bytes if error is ErrorCode.MESSAGE_TOO_LARGE else config.segment_bytes
        size = f"{len(batch)} bytes" if len(batch) > limit_bytes else "more, compressed as the topic asks,"
        response.error_message = f"a batch of {size} where {_LIMITS[error]} allows {limit_bytes}"
        if len(batch) <= limit_bytes and config.target_compression is None:
            limit = f"records that decompress to more than {config.decompressed_limit_bytes} bytes"
            response.error_message = f"{limit}, or half of that with zstd above level 8"
    elif error in _BLAMES_RECORDS and (faults := partition.log.faults_of(batch)):
        response.log_start_offset = partition.log.log_start_offset
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=fault.batch_index, batch_index_error_message=fault.message)
            for fault in faults
        ]
        others = f", and {len(faults) - 1} more like this" if len(faults) > 1 else ""
        response.error_message = f"record {faults[0].batch_index} of the batch: {faults[0].message}{others}"
