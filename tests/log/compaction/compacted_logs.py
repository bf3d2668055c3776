"""Logs to compact, and what is left of them, for the tests of this room."""

from collections.abc import Iterable, Iterator, Sequence

from odradek.log.cleaned_segment import discard_unused
from odradek.log.compaction.batch_filter import LastRecord
from odradek.log.compaction.compactor import CleanedGroup, CompactionJob, CompactionOutcome, compact
from odradek.log.partition_log import PartitionLog
from odradek.protocol.batch import TRANSACTIONAL_FLAG, BatchHeader, assign_offset, read_batch_header, write_batch
from odradek.protocol.compression import Compression
from odradek.protocol.records import Record, build_batch, read_records
from tests.log.batches import NOW_MS, read_all
from tests.simulation.simulated_host import Simulation

DAY_MS = 24 * 3600 * 1000
KeyValue = tuple[bytes | None, bytes | None]


def keyed_batch(
    pairs: Sequence[KeyValue],
    *,
    compression: Compression = Compression.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
    timestamp: int = NOW_MS,
    is_transactional: bool = False,
) -> memoryview:
    records = [Record(index, timestamp + index, key, value) for index, (key, value) in enumerate(pairs)]
    producer_id, producer_epoch, base_sequence = producer
    return memoryview(
        build_batch(
            records,
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=is_transactional,
        )
    )


def marker_batch(producer_id: int, *, is_commit: bool, offset: int, producer_epoch: int = 0) -> memoryview:
    """The end of a transaction, as a coordinator writes it."""
    key = b"\x00\x00" + (b"\x00\x01" if is_commit else b"\x00\x00")
    batch = build_batch(
        [Record(0, NOW_MS, key, b"\x00\x00\x00\x00\x00\x00")], producer_id=producer_id, producer_epoch=producer_epoch
    )
    header = read_batch_header(batch)
    marked = write_batch(header._replace(attributes=TRANSACTIONAL_FLAG | 0x20), bytes(batch[61:]))
    assign_offset(marked, 0, offset, 0)
    return memoryview(marked)


def job_for(
    log: PartitionLog,
    *,
    clean_offset: int = 0,
    end_offset: int | None = None,
    now_ms: int = NOW_MS,
    delete_retention_ms: int = DAY_MS,
    dedupe_buffer_bytes: int = 128 << 20,
) -> CompactionJob:
    """All that is not written to, with everything before `clean_offset` taken for clean."""
    end = log.segments[-1].base_offset if end_offset is None else end_offset
    return CompactionJob(
        directory=log.directory,
        base_offsets=[segment.base_offset for segment in log.segments if segment.base_offset < end],
        first_dirty_offset=clean_offset,
        end_offset=end,
        now_ms=now_ms,
        delete_retention_ms=delete_retention_ms,
        segment_bytes=log.config.segment_bytes,
        segment_index_bytes=log.config.segment_index_bytes,
        index_interval_bytes=log.config.index_interval_bytes,
        last_records={
            producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
            for producer_id, entry in log.producers.entries.items()
        },
        aborted_in_active_segment=log.segments[-1].transaction_index.collect(0, end)[0],
        dedupe_buffer_bytes=dedupe_buffer_bytes,
    )


def durable_end_offset(log: PartitionLog) -> int:
    """Where compaction must stop: only what is on the disk may replace something."""
    durable = [each.base_offset for each in log.segments if each.base_offset <= log.recovery_point_offset]
    return max(durable, default=log.segments[0].base_offset)


def adopt(log: PartitionLog, results: Iterable[CleanedGroup | CompactionOutcome]) -> CompactionOutcome:
    """As the broker does it: each group takes its place as it comes."""
    segments = {segment.base_offset: segment for segment in log.segments}
    for result in results:
        if isinstance(result, CompactionOutcome):
            return result
        assert log.replace_segments([segments[offset] for offset in result.base_offsets], result.cleaned)
    raise AssertionError("no outcome")


def compact_log(simulation: Simulation, log: PartitionLog, job: CompactionJob | None = None) -> CompactionOutcome:
    outcome = adopt(log, compact(simulation.background_context, job or job_for(log)))
    discard_unused(simulation.disk, log.directory)
    return outcome


def headers_of(log: PartitionLog) -> list[BatchHeader]:
    return [read_batch_header(batch) for batch in read_all(log)]


def records_of(log: PartitionLog) -> Iterator[Record]:
    """Of data; what markers hold is not for readers."""
    for batch in read_all(log):
        if not read_batch_header(batch).is_control:
            yield from read_records(batch, 1 << 30)
