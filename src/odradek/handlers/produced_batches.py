"""What Produce learns from the first bytes of a batch, which may be of any format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.batch import ATTRIBUTES_POSITION, COMPRESSION_MASK, CURRENT_MAGIC, HEADER_SIZE_BYTES
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from odradek.protocol.messages.produce import PartitionProduceResponse

_MAGIC_POSITION = 16
FLAGS_POSITION = ATTRIBUTES_POSITION + 1  # the lower byte of the attributes


def is_batch(records: memoryview) -> bool:
    """Older formats have other fields where the flags are."""
    return records[_MAGIC_POSITION] == CURRENT_MAGIC


def was_decompressed_and_refused(records: memoryview, refusal: PartitionProduceResponse) -> bool:
    """Whether compressed records had to be read and are invalid: a few bytes may have taken a long time."""
    return (
        refusal.error_code == ErrorCode.INVALID_RECORD
        and len(records) >= HEADER_SIZE_BYTES
        and is_batch(records)
        and bool(records[FLAGS_POSITION] & COMPRESSION_MASK)
    )


def is_zstd(records: memoryview) -> bool:
    """Clients that use older versions could not read it back (KIP-110)."""
    return (
        len(records) >= HEADER_SIZE_BYTES
        and is_batch(records)
        and records[FLAGS_POSITION] & COMPRESSION_MASK == Compression.ZSTD
    )
