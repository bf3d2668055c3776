"""What a batch from a client must satisfy before it may be appended, judged by its header, its checksum, and its first
record if it is not compressed.
The order of the checks and their error codes are Kafka's (ProduceRequest.validateRecords, UnifiedLog, LogValidator)."""

from odradek.log.log_config import NO_LIMIT_MS, LogConfig, ProduceValidation, TimestampType
from odradek.protocol.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    LOG_APPEND_TIME_FLAG,
    BatchHeader,
    clear_append_time,
    read_batch_header,
    unpack_batch_header,
)
from odradek.protocol.checksum import crc32c
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.record_checks import begins_with_record
from odradek.protocol.records import SMALLEST_RECORD_BYTES
from odradek.protocol.sentinels import NO_TIMESTAMP

_MAGIC_POSITION = 16
# The smallest batch length of any format, that of a message of magic 0.
_SMALLEST_LEGACY_LENGTH = 14
_UNUSUAL_FLAGS = CONTROL_FLAG | LOG_APPEND_TIME_FLAG

# Looking up an attribute of an enum takes as long as several of these checks.
_LAST_COMPRESSION = int(Compression.ZSTD)
_CREATE_TIME = TimestampType.CREATE_TIME
_HEADER_ALONE = ProduceValidation.HEADER
_new_tuple = tuple.__new__  # half the cost of the constructor; called once per append


def check_batch(  # noqa: C901, PLR0912 - a flat list of checks, in the order that decides which error wins
    batch: memoryview, config: LogConfig, now_ms: int
) -> BatchHeader | ErrorCode:
    """The header of the batch, or why it is refused: the bytes must be exactly one batch. The flag of log append time
    is the broker's: where a producer has set it, it is cleared for a topic of create time (as in Kafka 4.3.1)."""
    size_bytes = len(batch)
    if size_bytes < HEADER_SIZE_BYTES:
        return _judge_foreign_bytes(batch)
    fields = unpack_batch_header(batch)
    # Unpacking the tuple costs as much as reading three of its fields by name.
    (
        base_offset,
        batch_length,
        _,
        magic,
        checksum,
        attributes,
        last_offset_delta,
        _,
        max_timestamp,
        producer_id,
        _,
        base_sequence,
        record_count,
    ) = fields
    header = _new_tuple(BatchHeader, fields)
    if magic != CURRENT_MAGIC or batch_length + LENGTH_END_POSITION != size_bytes:
        return _judge_foreign_bytes(batch)
    if base_offset != 0:
        return ErrorCode.INVALID_RECORD
    if size_bytes > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if size_bytes > config.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    if crc32c(batch[ATTRIBUTES_POSITION:]) != checksum:
        return ErrorCode.CORRUPT_MESSAGE
    if record_count <= 0 or record_count != last_offset_delta + 1:
        return ErrorCode.INVALID_RECORD
    if attributes & _UNUSUAL_FLAGS:
        if attributes & CONTROL_FLAG:
            return ErrorCode.INVALID_RECORD
        if config.message_timestamp_type is not _CREATE_TIME:
            return ErrorCode.INVALID_TIMESTAMP
        clear_append_time(batch, 0)
        header = read_batch_header(batch)
    compression = attributes & COMPRESSION_MASK
    if compression > _LAST_COMPRESSION:
        return ErrorCode.INVALID_RECORD
    # The batch is assigned `record_count` offsets, so the count must not exceed what the bytes can hold.
    records_bytes = config.decompressed_limit_bytes if compression else size_bytes - HEADER_SIZE_BYTES
    if record_count * SMALLEST_RECORD_BYTES > records_bytes:
        return ErrorCode.INVALID_RECORD
    is_unread = compression or config.produce_validation is _HEADER_ALONE
    if not (is_unread or begins_with_record(batch, HEADER_SIZE_BYTES, record_count)):
        return ErrorCode.INVALID_RECORD
    if producer_id >= 0 and base_sequence < 0:
        return ErrorCode.INVALID_RECORD
    if config.message_timestamp_type is _CREATE_TIME:
        # The timestamps of the records are not read; the header has the first and the largest one.
        if max_timestamp - now_ms > config.message_timestamp_after_max_ms:
            return ErrorCode.INVALID_TIMESTAMP
        if config.message_timestamp_before_max_ms != NO_LIMIT_MS and _is_too_old(header, config, now_ms):
            return ErrorCode.INVALID_TIMESTAMP
    return header


def is_valid_timestamp(timestamp: int, config: LogConfig, now_ms: int) -> bool:
    """For the largest timestamp of a batch, when it was read from the records."""
    if config.message_timestamp_type is not _CREATE_TIME or timestamp == NO_TIMESTAMP:
        return True
    age_ms = now_ms - timestamp
    return -config.message_timestamp_after_max_ms <= age_ms <= config.message_timestamp_before_max_ms


def _is_too_old(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """A doubtful largest timestamp is judged once it has been read from the records."""
    oldest_ms = now_ms - config.message_timestamp_before_max_ms
    is_doubtful = header.has_doubtful_timestamps
    timestamps = (header.base_timestamp,) if is_doubtful else (header.base_timestamp, header.max_timestamp)
    return any(timestamp != NO_TIMESTAMP and timestamp < oldest_ms for timestamp in timestamps)


def _judge_foreign_bytes(batch: memoryview) -> ErrorCode:
    """The error for bytes that are not exactly one batch of magic 2: corrupt, or of a format that Produce refuses."""
    if len(batch) < LENGTH_END_POSITION:
        return ErrorCode.INVALID_RECORD
    batch_length = int.from_bytes(batch[8:12], "big", signed=True)
    if batch_length < _SMALLEST_LEGACY_LENGTH:
        return ErrorCode.CORRUPT_MESSAGE
    if len(batch) <= _MAGIC_POSITION:
        return ErrorCode.INVALID_RECORD
    magic = batch[_MAGIC_POSITION]
    if magic > CURRENT_MAGIC:
        return ErrorCode.CORRUPT_MESSAGE
    if magic == CURRENT_MAGIC and batch_length < HEADER_SIZE_BYTES - LENGTH_END_POSITION:
        return ErrorCode.CORRUPT_MESSAGE
    return ErrorCode.INVALID_RECORD
