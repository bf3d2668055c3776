"""The cases in which the records of a batch must be read before it is appended: a compacted topic requires keys, and
`compression.type` may require another codec than the producer's. Every decompression is bounded."""

from odradek.log.log_config import LogConfig
from odradek.protocol.batch import COMPRESSION_MASK, HEADER_SIZE_BYTES, BatchHeader, replace_records
from odradek.protocol.compression import compress, decompress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import SMALLEST_RECORD_BYTES, check_records, every_record_has_a_key

_SMALLEST_LIMIT_BYTES = 1 << 20


def convert_batch(batch: memoryview, header: BatchHeader, config: LogConfig) -> memoryview | ErrorCode:
    """The batch as the topic configuration requires it to be stored: the same view when nothing has to change."""
    codec = config.target_compression
    is_kept = codec is None or codec == header.compression
    if is_kept and not config.is_compacted:
        return batch
    if header.record_count > largest_record_count(config):
        return ErrorCode.INVALID_RECORD
    try:
        records = decompress(header.compression, batch[HEADER_SIZE_BYTES:], config.decompressed_limit_bytes)
        if config.is_compacted and not every_record_has_a_key(records, header.record_count):
            return ErrorCode.INVALID_RECORD
        if not is_kept:
            check_records(records, header.record_count)
    except MalformedMessage:
        return ErrorCode.INVALID_RECORD
    if codec is None or is_kept:
        return batch
    converted = replace_records(header, compress(codec, records, config.compression_level(codec)), codec)
    if len(converted) > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if len(converted) > config.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return memoryview(converted)


def is_stored_as_built(header: BatchHeader, config: LogConfig) -> bool:
    """Whether a batch that this broker has built has the codec that the topic asks for."""
    codec = config.target_compression
    return codec is None or codec == header.attributes & COMPRESSION_MASK


def largest_record_count(config: LogConfig) -> int:
    """The limit for a batch whose records are read one by one on the event loop: as many as an uncompressed batch of
    the topic could hold (or of a megabyte, where the topic allows less), 150,000 with default settings."""
    return max(config.max_message_bytes, _SMALLEST_LIMIT_BYTES) // SMALLEST_RECORD_BYTES
