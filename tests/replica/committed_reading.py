"""Reads a partition as a consumer with read_committed does: batches of the transactions that a fetch lists as aborted
are dropped, from the first offset of each to its marker."""

from odradek.host.slices import FileSlice
from odradek.protocol.control_records import ControlRecordType, read_end_transaction_marker
from odradek.protocol.errors import ErrorCode
from odradek.replica.fetch_result import FetchIsolation, FetchResult
from odradek.replica.partition import Partition
from odradek.replica.partition_fetch import fetch_from
from tests.log.batches import split


def fetch(
    partition: Partition,
    offset: int,
    max_bytes: int = 1 << 20,
    isolation: FetchIsolation = FetchIsolation.TRANSACTION_COMMITTED,
) -> FetchResult:
    result = fetch_from(
        partition,
        offset,
        max_bytes,
        current_leader_epoch=-1,
        last_fetched_epoch=-1,
        whole_first_batch=True,
        isolation=isolation,
    )
    assert result.error is ErrorCode.NONE
    return result


def committed_offsets(partition: Partition, max_bytes: int = 1 << 20) -> list[int]:
    """The offsets of all records, as batches hold them, up to the last stable offset."""
    found: list[int] = []
    offset = partition.log.log_start_offset
    while True:
        result = fetch(partition, offset, max_bytes)
        if result.records is None:
            assert offset == partition.last_stable_offset
            return found
        assert isinstance(result.records, FileSlice)
        ahead = sorted((each.first_offset, each.producer_id) for each in result.aborted_transactions)
        aborted: set[int] = set()
        end_offset = offset
        for header, batch in split(result.records.read()):
            end_offset = header.last_offset + 1
            while ahead and ahead[0][0] <= header.last_offset:
                aborted.add(ahead.pop(0)[1])
            if header.is_control:
                marker = read_end_transaction_marker(batch, header)
                if marker is not None and marker.type is ControlRecordType.ABORT:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                found += range(max(header.base_offset, offset), header.last_offset + 1)
        assert not ahead, "the list names a transaction that begins after the returned batches"
        assert end_offset > offset
        offset = end_offset
