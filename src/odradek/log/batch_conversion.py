"""The cases in which the records of a batch must be read before it is appended: a compacted topic requires keys,
`compression.type` may require another codec than the producer's, the timestamps of a header may be doubtful, and
`produce.validation` says what is checked. Every decompression is bounded. A few small batches of a request are read on
the event loop, the others on a worker: both ways give the same bytes and errors."""

from typing import NamedTuple, NoReturn, TypeAlias

from odradek.log.append_result import CONVERT_FIRST, AppendResult
from odradek.log.log_config import LogConfig, ProduceValidation, TimestampType
from odradek.protocol.batch import (
    COMPRESSION_MASK,
    HEADER_SIZE_BYTES,
    BatchHeader,
    read_batch_header,
    replace_records,
    set_max_timestamp,
)
from odradek.protocol.compression import (
    MAPPED_BYTES,
    DecompressedTooLarge,
    compress,
    decompress_frame,
    decompress_in_place,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.record_checks import begins_with_record, check_records, every_record_has_a_key
from odradek.protocol.records import SMALLEST_RECORD_BYTES, Pause, read_times_of
from odradek.protocol.sentinels import NO_TIMESTAMP
from odradek.protocol.varints import Bytes

_SMALLEST_LIMIT_BYTES = 1 << 20
# For each request, the records that are read on the event loop, as they are sent and decompressed.
EVENT_LOOP_BYTES = 128 << 10
EVENT_LOOP_RECORDS = 500  # and headers of records
SMALLEST_CHARGE_BYTES = 4 << 10  # for each batch: a compressor has to be made for it


class EventLoopBudget:
    """The records of one request that may be read on the event loop. A batch that exceeds the rest is left to a
    worker."""

    bytes_left = EVENT_LOOP_BYTES  # of the class, because most requests need no budget
    records_left = EVENT_LOOP_RECORDS


class ConvertedBatch(NamedTuple):
    """The result of `convert_batch` on a worker, and the configuration of the topic that it applies to."""

    config: LogConfig | None
    batch: memoryview | ErrorCode


Conversion: TypeAlias = EventLoopBudget | ConvertedBatch

NOT_CONVERTED = ConvertedBatch(None, ErrorCode.NONE)
"""The batch may be converted on a worker only, and has not been."""


class _TooManyRecords(Exception):
    """For the event loop."""


def _leave_to_worker() -> NoReturn:
    raise _TooManyRecords


def convert_on_worker(batch: memoryview, config: LogConfig, pause: Pause) -> ConvertedBatch:
    return ConvertedBatch(config, convert_batch(batch, read_batch_header(batch), config, pause=pause))


def convert_at_append(
    batch: memoryview, header: BatchHeader, config: LogConfig, conversion: Conversion | None
) -> memoryview | AppendResult:
    """The batch as it is to be stored, or why it is not appended: CONVERT_FIRST if a worker must convert it first.
    `conversion` is None if the caller cannot wait."""
    converted = _convert(batch, header, config, conversion)
    if converted is None:
        return CONVERT_FIRST
    return AppendResult(converted) if isinstance(converted, ErrorCode) else converted


def _convert(
    batch: memoryview, header: BatchHeader, config: LogConfig, conversion: Conversion | None
) -> memoryview | ErrorCode | None:
    if conversion is None:
        return convert_batch(batch, header, config)
    if needs_no_conversion(header, config):
        return batch
    if _has_too_many_records(header, config):
        return ErrorCode.INVALID_RECORD
    if isinstance(conversion, EventLoopBudget):
        return _convert_within(conversion, batch, header, config)
    return conversion.batch if conversion.config == config else None


def _convert_within(
    budget: EventLoopBudget, batch: memoryview, header: BatchHeader, config: LogConfig
) -> memoryview | ErrorCode | None:
    """None if the budget is too small."""
    reads_every_record = _reads_every_record(header, config)
    charge = 2 if reads_every_record else 1  # for a byte: the records may be compressed, too
    if charge * len(batch) > budget.bytes_left:
        return None
    if header.record_count > budget.records_left and reads_every_record:
        return None
    limit_bytes = min(budget.bytes_left // charge, config.decompressed_limit_bytes)
    try:
        records = _decompress(batch, header, config, limit_bytes)
    except MalformedMessage:  # too large, or corrupt: the worker finds out which
        budget.bytes_left -= charge * limit_bytes
        return None
    budget.bytes_left -= max(charge * len(records), SMALLEST_CHARGE_BYTES)
    try:
        return _convert_records(records, batch, header, config, budget, _leave_to_worker)
    except _TooManyRecords:
        budget.records_left = 0
        return None


def is_decompressed_only(batch: memoryview, config: LogConfig) -> bool:
    """Whether a worker takes a few milliseconds at most for the batch, since it does not read record by record."""
    return len(batch) >= HEADER_SIZE_BYTES and not _reads_every_record(read_batch_header(batch), config)


def needs_no_conversion(header: BatchHeader, config: LogConfig) -> bool:
    is_unpacked = header.attributes & COMPRESSION_MASK and config.produce_validation is not ProduceValidation.HEADER
    return not is_unpacked and not _reads_every_record(header, config)


def _reads_every_record(header: BatchHeader, config: LogConfig) -> bool:
    return (
        config.is_compacted
        or config.produce_validation is ProduceValidation.COMPLETE
        or not is_stored_as_built(header, config)
        or _must_read_timestamps(header, config)
    )


def _must_read_timestamps(header: BatchHeader, config: LogConfig) -> bool:
    is_doubtful = header.has_doubtful_timestamps or config.produce_validation is ProduceValidation.COMPLETE
    return is_doubtful and config.message_timestamp_type is TimestampType.CREATE_TIME


def _has_too_many_records(header: BatchHeader, config: LogConfig) -> bool:
    return header.record_count > largest_record_count(config) and _reads_every_record(header, config)


def _decompress(batch: memoryview, header: BatchHeader, config: LogConfig, limit_bytes: int) -> Bytes:
    """Loops over records are faster with bytes. Without one, and of large batches, the copy is saved."""
    unpack = decompress_in_place if config.produce_validation is ProduceValidation.HEADER else decompress_frame
    records = unpack(header.compression, batch[HEADER_SIZE_BYTES:], limit_bytes)
    is_copied = len(records) < MAPPED_BYTES and _reads_every_record(header, config)
    return bytes(records) if is_copied else records


def convert_batch(
    batch: memoryview, header: BatchHeader, config: LogConfig, *, pause: Pause | None = None
) -> memoryview | ErrorCode:
    """The batch as the topic configuration requires it to be stored: the same view when nothing has to change."""
    if needs_no_conversion(header, config):
        return batch
    if _has_too_many_records(header, config):
        return ErrorCode.INVALID_RECORD
    try:
        records = _decompress(batch, header, config, config.decompressed_limit_bytes)
    except DecompressedTooLarge:
        return ErrorCode.MESSAGE_TOO_LARGE  # the Java client then splits its batch
    except MalformedMessage:
        return ErrorCode.INVALID_RECORD
    return _convert_records(records, batch, header, config, None, pause)


def _convert_records(
    records: Bytes,
    batch: memoryview,
    header: BatchHeader,
    config: LogConfig,
    budget: EventLoopBudget | None,
    pause: Pause | None,
) -> memoryview | ErrorCode:
    if not _reads_every_record(header, config):
        return batch if begins_with_record(records, 0, header.record_count) else ErrorCode.INVALID_RECORD
    codec = config.target_compression
    is_kept = is_stored_as_built(header, config)
    read_count = header.record_count
    try:
        if config.is_compacted and not every_record_has_a_key(records, header.record_count, pause):
            return ErrorCode.INVALID_RECORD
        if not is_kept or config.produce_validation is ProduceValidation.COMPLETE:
            read_count = check_records(records, header.record_count, pause)
        if _must_read_timestamps(header, config):
            header = _correct_max_timestamp(records, batch, header, pause)
    except MalformedMessage:
        return ErrorCode.INVALID_RECORD
    finally:
        if budget is not None:
            budget.records_left -= read_count
    if codec is None or is_kept:
        return batch
    converted = replace_records(header, compress(codec, records, config.compression_level(codec)), codec)
    if len(converted) > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if len(converted) > config.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return memoryview(converted)


def _correct_max_timestamp(records: Bytes, batch: memoryview, header: BatchHeader, pause: Pause | None) -> BatchHeader:
    """Gives the batch the largest timestamp of its records, -1 if they have none, so that retention, look-ups by time,
    followers and tools see what Kafka's files have."""
    largest = max((timestamp for _, timestamp in read_times_of(records, header, pause)), default=NO_TIMESTAMP)
    max_timestamp = max(NO_TIMESTAMP, largest)
    if max_timestamp != header.max_timestamp:
        set_max_timestamp(batch, 0, max_timestamp)
    return header._replace(max_timestamp=max_timestamp)


def is_stored_as_built(header: BatchHeader, config: LogConfig) -> bool:
    """Whether a batch has the codec that the topic asks for."""
    codec = config.target_compression
    return codec is None or codec == header.attributes & COMPRESSION_MASK


def largest_record_count(config: LogConfig) -> int:
    """The limit for a batch whose records are read one by one: as many as an uncompressed batch of
    the topic could hold (or of a megabyte, where the topic allows less), 150,000 with default settings."""
    return max(config.max_message_bytes, _SMALLEST_LIMIT_BYTES) // SMALLEST_RECORD_BYTES
