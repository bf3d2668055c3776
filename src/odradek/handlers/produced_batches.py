"""Properties of a batch that Produce reads from its first bytes. The batch may be of any format."""

from odradek.protocol.batch import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    TRANSACTIONAL_FLAG,
)
from odradek.protocol.compression import Compression

_MAGIC_POSITION = 16  # older formats have other fields where the flags are
FLAGS_POSITION = ATTRIBUTES_POSITION + 1  # the lower byte of the attributes


def is_transactional(records: memoryview) -> bool:
    return (
        len(records) > HEADER_SIZE_BYTES
        and bool(records[FLAGS_POSITION] & TRANSACTIONAL_FLAG)
        and records[_MAGIC_POSITION] == CURRENT_MAGIC
    )


def is_compressed(records: memoryview) -> bool:
    return _codec_bits(records) != 0


def is_zstd(records: memoryview) -> bool:
    """Clients that use older versions could not read it back (KIP-110)."""
    return _codec_bits(records) == Compression.ZSTD


def _codec_bits(records: memoryview) -> int:
    if len(records) < HEADER_SIZE_BYTES or records[_MAGIC_POSITION] != CURRENT_MAGIC:
        return 0
    return records[FLAGS_POSITION] & COMPRESSION_MASK
