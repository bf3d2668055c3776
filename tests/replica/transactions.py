"""Transactional batches and markers, written directly into a partition as if a coordinator had confirmed them."""

from odradek.protocol.control_records import ControlRecordType, EndTransactionMarker
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import Record, build_batch
from odradek.replica.partition import ALL_IN_SYNC, Partition
from tests.log.batches import NOW_MS, verify


def put(partition: Partition, producer_id: int, *values: bytes, timestamp: int = NOW_MS, key: bytes = b"k") -> int:
    """Appends a batch of the producer's open or next transaction, and returns its base offset."""
    entry = partition.log.producers.entries.get(producer_id)
    batch = build_batch(
        [Record(index, timestamp, key, value) for index, value in enumerate(values)],
        producer_id=producer_id,
        producer_epoch=entry.epoch if entry else 0,
        base_sequence=entry.next_sequence if entry else 0,
        transactional=True,
    )
    result = partition.append(memoryview(batch), ALL_IN_SYNC, verification=verify(partition.log, memoryview(batch)))
    assert result.error is ErrorCode.NONE
    return result.base_offset


def end(partition: Partition, producer_id: int, kind: ControlRecordType) -> int:
    """Ends the producer's transaction, as of version 2, and returns the offset of the marker."""
    entry = partition.log.producers.entries[producer_id]
    marker = EndTransactionMarker(producer_id, entry.epoch + 1, kind, coordinator_epoch=0)
    result = partition.append_marker(marker, transaction_version=2)
    assert result.error is ErrorCode.NONE
    return result.base_offset


def commit(partition: Partition, producer_id: int) -> int:
    return end(partition, producer_id, ControlRecordType.COMMIT)


def abort(partition: Partition, producer_id: int) -> int:
    return end(partition, producer_id, ControlRecordType.ABORT)
