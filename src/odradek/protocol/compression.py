"""The five codecs of a record batch. Decompression is bounded, and declared sizes are not trusted for allocation.

Snappy is written in xerial's framing, as the Java client does, and read with or without it; LZ4 is the frame format
with independent blocks (KIP-57: Java refuses dependent ones).
"""

import enum
import mmap
import struct
import zlib
from collections.abc import Callable
from typing import TypeAlias

import cramjam

from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.varints import Bytes


class Compression(enum.IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)
XERIAL_BLOCK_BYTES = 32 * 1024
# Raw snappy copies at most 64 bytes per 3 bytes of input, so a block that declares far more is invalid.
SNAPPY_LARGEST_RATIO = 32
# Kafka's default level, for which lz4-java uses its fast compressor instead of level 9 of the slow one.
LZ4_DEFAULT_LEVEL = 9
FIRST_OUTPUT_BYTES = 16 * 1024
MAPPED_BYTES = 1 << 20
GZIP_FORMAT = 31  # of zlib
LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_FIXED_FLAGS, LZ4_PLAIN_FLAGS = 0xE1, 0x60  # version 1, independent blocks, no dictionary
LZ4_HAS_BLOCK_CHECKSUMS, LZ4_HAS_SIZE, LZ4_HAS_CHECKSUM = 0x10, 0x08, 0x04
LZ4_EMPTY_BLOCKS = (1, 1 << 31)  # compressed and not compressed
LZ4_SMALL_BLOCK_BYTES = 256  # producers write larger ones; the number of blocks is limited accordingly
# The message of each decompressor if the output buffer is too small.
OUTPUT_FULL = "failed to write whole buffer"


class DecompressedTooLarge(MalformedMessage):
    """The data is larger than the caller's limit when it is decompressed; it may be valid."""


_DecompressInto: TypeAlias = Callable[[Bytes, bytearray | mmap.mmap], int]


def compress(codec: Compression, data: Bytes, level: int | None = None) -> bytes:
    """Compresses data; `level` is that of `compression.gzip.level` and its counterparts, None is Kafka's default."""
    if codec is Compression.GZIP:
        return bytes(cramjam.gzip.compress(data, level=None if level == -1 else level))
    if codec is Compression.SNAPPY:
        return _compress_xerial(memoryview(data))
    if codec is Compression.LZ4:
        fast = level is None or level == LZ4_DEFAULT_LEVEL
        compressor = cramjam.lz4.Compressor(level=0 if fast else level, content_checksum=False, block_linked=False)
        compressor.compress(bytes(data))
        return bytes(compressor.finish())
    if codec is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    return bytes(data)


def decompress(codec: Compression, data: Bytes, limit_bytes: int) -> bytes:
    """Decompresses data; raises MalformedMessage if it is corrupt, DecompressedTooLarge if it is larger than
    `limit_bytes` when decompressed."""
    decompressed = decompress_in_place(codec, data, limit_bytes)
    return decompressed if isinstance(decompressed, bytes) else bytes(decompressed)


def decompress_in_place(codec: Compression, data: Bytes, limit_bytes: int) -> bytes | memoryview:
    """Like `decompress`, without a copy of the output: for readers that take no slices of it."""
    if codec is Compression.GZIP:
        return _decompress_growing(cramjam.gzip.decompress_into, data, limit_bytes)
    if codec is Compression.SNAPPY:
        return _decompress_snappy(memoryview(data), limit_bytes)
    if codec is Compression.LZ4:
        return _decompress_growing(cramjam.lz4.decompress_into, data, limit_bytes)
    if codec is Compression.ZSTD:
        return _decompress_growing(cramjam.zstd.decompress_into, data, limit_bytes)
    if len(data) > limit_bytes:
        raise DecompressedTooLarge(f"records of {len(data)} bytes exceed the limit of {limit_bytes} bytes")
    return bytes(data)


def is_one_frame(codec: Compression, data: Bytes, size_bytes: int) -> bool:
    """Whether data that decompresses to `size_bytes` is one frame, as producers write it.

    The formats allow more than clients read: librdkafka ends its process at an empty member of gzip; the Java client
    reads no second frame of LZ4, no dependent and no empty blocks."""
    if codec is Compression.GZIP:  # the last member has all bytes, and the first one has some
        is_whole = int.from_bytes(data[-4:], "little") == size_bytes
        return is_whole and zlib.decompressobj(GZIP_FORMAT).decompress(data, 1) != b""
    return codec is not Compression.LZ4 or _is_lz4_frame_of_producers(data, size_bytes)


def _is_lz4_frame_of_producers(data: Bytes, size_bytes: int) -> bool:
    flags, position = data[4], 7
    if data[:4] != LZ4_MAGIC or flags & LZ4_FIXED_FLAGS != LZ4_PLAIN_FLAGS:
        return False
    if flags & LZ4_HAS_SIZE:
        if int.from_bytes(data[6:14], "little") != size_bytes:
            return False
        position += 8
    checksum_bytes = 4 if flags & LZ4_HAS_BLOCK_CHECKSUMS else 0
    for _ in range(2 + size_bytes // LZ4_SMALL_BLOCK_BYTES):
        block_bytes = int.from_bytes(data[position : position + 4], "little")
        position += 4
        if not block_bytes:
            return position + (4 if flags & LZ4_HAS_CHECKSUM else 0) == len(data)
        if block_bytes in LZ4_EMPTY_BLOCKS:
            return False
        position += (block_bytes & 0x7FFFFFFF) + checksum_bytes
    return False


def _decompress_growing(decompress_into: _DecompressInto, data: Bytes, limit_bytes: int) -> memoryview:
    """Decompresses into a buffer that grows fourfold up to a megabyte, then to `limit_bytes`, until the output fits.

    The decompressors stop when their output is full. A large buffer takes only the memory that is written to."""
    capacity = min(limit_bytes, max(4 * len(data), FIRST_OUTPUT_BYTES))
    while True:
        # A large buffer is mapped: the allocator would keep its memory for the process after a refusal.
        output = mmap.mmap(-1, capacity) if capacity >= MAPPED_BYTES else bytearray(capacity)
        try:
            size_bytes = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if str(error) != OUTPUT_FULL:
                raise MalformedMessage(f"compressed records are corrupt: {error}") from error
            if capacity >= limit_bytes:
                raise DecompressedTooLarge(f"decompressed records exceed the limit of {limit_bytes} bytes") from error
            capacity = min(limit_bytes, 4 * capacity if 4 * capacity < MAPPED_BYTES else limit_bytes)
        else:
            return memoryview(output)[:size_bytes]


def _compress_xerial(data: memoryview) -> bytes:
    parts = [XERIAL_HEADER]
    for start in range(0, len(data), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + XERIAL_BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytes:
    # Version numbers after the magic are ignored, because some clients write them in the wrong byte order.
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        return _decompress_snappy_block(data, limit_bytes)
    blocks = []
    position = len(XERIAL_HEADER)
    while position < len(data):
        end = position + 4 + int.from_bytes(data[position : position + 4], "big")
        if end > len(data):
            raise MalformedMessage("a snappy block is cut off")
        block = _decompress_snappy_block(data[position + 4 : end], limit_bytes)
        limit_bytes -= len(block)
        blocks.append(block)
        position = end
    return b"".join(blocks)


def _decompress_snappy_block(block: memoryview, limit_bytes: int) -> bytes:
    try:
        size_bytes = cramjam.snappy.decompress_raw_len(block)
        if size_bytes > SNAPPY_LARGEST_RATIO * len(block):
            raise MalformedMessage(f"a snappy block of {len(block)} bytes declares {size_bytes} bytes")
        if size_bytes > limit_bytes:
            raise DecompressedTooLarge(
                f"a snappy block of {len(block)} bytes declares {size_bytes} bytes, over the limit of {limit_bytes}"
            )
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise MalformedMessage(f"a snappy block is corrupt: {error}") from error
