"""The result of reading one partition, as a fetch response has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from odradek.protocol.sentinels import NO_EPOCH

if TYPE_CHECKING:
    from odradek.replica.fetch_result import FetchResult

_NONE = ErrorCode.NONE  # looking up an attribute of an enum takes long


def partition_data(index: int, result: FetchResult, is_committed_only: bool) -> PartitionData:
    data = PartitionData(
        partition_index=index,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None,
        records=b"" if result.records is None else result.records,
    )
    data.preferred_read_replica = result.preferred_read_replica
    if result.diverging_epoch != NO_EPOCH:
        data.diverging_epoch = EpochEndOffset(epoch=result.diverging_epoch, end_offset=result.diverging_end_offset)
    elif is_committed_only and result.error is _NONE:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
            for each in result.aborted_transactions
        ]
    return data
