"""What a follower may append: batches as the leader's log has them, with offsets and leader epochs assigned.
Pure; only headers are read, and checksums computed."""

from typing import NamedTuple

from odradek.log.batch_scan import is_plausible
from odradek.protocol.batch import ATTRIBUTES_POSITION, HEADER_SIZE_BYTES, BatchHeader, read_batch_header
from odradek.protocol.checksum import crc32c
from odradek.protocol.errors import ErrorCode
from odradek.protocol.sentinels import NO_OFFSET


class FollowerAppend(NamedTuple):
    """The outcome of an append by a follower. With an error, the batches before the refused one were appended:

    - CORRUPT_MESSAGE: its magic, length or checksum is wrong. The same fetch may succeed when it is repeated.
    - OFFSET_OUT_OF_RANGE: it begins before the log end, or before the end of the batch before it. The logs have
      diverged, or the fetch began within a batch: a log that is empty may be truncated to the batch's base offset.
    - FENCED_LEADER_EPOCH: its leader epoch is lower than that of the batch before it. The logs have diverged.
    - UNKNOWN_LEADER_EPOCH: its leader epoch is higher than that of the leader that was fetched from.
    """

    error: ErrorCode
    batch_count: int = 0
    size_bytes: int = 0
    refused_base_offset: int = NO_OFFSET
    refused_last_offset: int = NO_OFFSET


class CheckedBatches(NamedTuple):
    headers: list[BatchHeader]
    error: ErrorCode
    refused: BatchHeader | None

    def result(self, size_bytes: int) -> FollowerAppend:
        """The result after all `headers`, of `size_bytes` in total, are appended."""
        if self.refused is None:
            return FollowerAppend(self.error, len(self.headers), size_bytes)
        return FollowerAppend(
            self.error, len(self.headers), size_bytes, self.refused.base_offset, self.refused.last_offset
        )


def check_follower_batches(
    batches: memoryview, next_offset: int, previous_epoch: int, leader_epoch: int | None
) -> CheckedBatches:
    """The headers of the whole batches up to the first that is refused, and why it is. An incomplete batch at the end
    is ignored. Offsets may have gaps, which compaction leaves, but must not go back; nor may leader epochs."""
    headers: list[BatchHeader] = []
    position, end = 0, len(batches)
    while position + HEADER_SIZE_BYTES <= end:
        header = read_batch_header(batches, position)
        if not is_plausible(header):
            return CheckedBatches(headers, ErrorCode.CORRUPT_MESSAGE, header)
        next_position = position + header.size_bytes
        if next_position > end:
            break
        if crc32c(batches[position + ATTRIBUTES_POSITION : next_position]) != header.crc:
            return CheckedBatches(headers, ErrorCode.CORRUPT_MESSAGE, header)
        epoch = header.partition_leader_epoch
        if header.base_offset < next_offset:
            return CheckedBatches(headers, ErrorCode.OFFSET_OUT_OF_RANGE, header)
        if epoch < previous_epoch:
            return CheckedBatches(headers, ErrorCode.FENCED_LEADER_EPOCH, header)
        if leader_epoch is not None and epoch > leader_epoch:
            return CheckedBatches(headers, ErrorCode.UNKNOWN_LEADER_EPOCH, header)
        headers.append(header)
        next_offset = header.base_offset + header.last_offset_delta + 1
        previous_epoch = epoch
        position = next_position
    return CheckedBatches(headers, ErrorCode.NONE, None)
