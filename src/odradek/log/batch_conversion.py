"""The cases in which the records of a batch must be looked at before it is appended: a compacted topic needs keys, and
`compression.type` may ask for another codec than the producer's. Every decompression is bounded."""

from odradek.log.log_config import LogConfig
from odradek.protocol.batch import HEADER_SIZE_BYTES, BatchHeader, replace_records
from odradek.protocol.compression import compress, decompress
from odradek.protocol.errors import ErrorCode
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.records import read_records

# Far more than the largest batch a default topic takes; a batch that unpacks to more is refused, not buffered.
DECOMPRESSED_LIMIT_BYTES = 128 << 20


def convert_batch(batch: memoryview, header: BatchHeader, config: LogConfig) -> memoryview | ErrorCode:
    """The batch as the topic wants it stored: the same view when nothing has to change."""
    try:
        if config.is_compacted:
            for record in read_records(batch, DECOMPRESSED_LIMIT_BYTES):
                if record.key is None:
                    return ErrorCode.INVALID_RECORD
        codec = config.target_compression
        if codec is None or codec == header.compression:
            return batch
        records = decompress(header.compression, batch[HEADER_SIZE_BYTES:], DECOMPRESSED_LIMIT_BYTES)
    except MalformedMessage:
        return ErrorCode.INVALID_RECORD
    converted = replace_records(header, compress(codec, records, config.compression_level(codec)), codec)
    if len(converted) > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if len(converted) > config.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return memoryview(converted)
