"""The five codecs of a record batch. Decompression is bounded, and declared sizes are not trusted for allocation.

Snappy is written in xerial's framing, as the Java client does, and read with or without it; LZ4 is the frame format
with independent blocks (KIP-57: Java refuses dependent ones).
"""

import enum
import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
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
# Deflate writes at most 258 bytes for each 2 bits, so a member of gzip that declares more is damaged.
GZIP_LARGEST_RATIO = 1032
# Kafka's default level, for which lz4-java uses its fast compressor instead of level 9 of the slow one.
LZ4_DEFAULT_LEVEL = 9
FIRST_OUTPUT_BYTES = 16 * 1024
MAPPED_BYTES = 1 << 20
POPULATED = getattr(mmap, "MAP_POPULATE", 0)  # of Linux: all pages at once, if all of them are written to
GZIP_FORMAT = 31  # of zlib
GZIP_INPUT_BYTES, GZIP_OUTPUT_BYTES = 16 * 1024, 128 * 1024  # of a step
MOST_GZIP_MEMBERS = 1000  # 50,000 empty members fit into a megabyte, and each costs some microseconds
LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_FIXED_FLAGS, LZ4_PLAIN_FLAGS = 0xE1, 0x60  # version 1, independent blocks, no dictionary
LZ4_HAS_BLOCK_CHECKSUMS, LZ4_HAS_SIZE, LZ4_HAS_CHECKSUM = 0x10, 0x08, 0x04
LZ4_EMPTY_BLOCKS = (1, 1 << 31)  # compressed and not compressed
LZ4_SMALL_BLOCK_BYTES = 256  # producers write larger ones; the number of blocks is limited accordingly
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_WINDOW_BYTES = 2 << 20  # of levels up to 8, among them that of producers
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
        return _decompress_gzip(data, limit_bytes)
    if codec is Compression.SNAPPY:
        return _decompress_snappy(memoryview(data), limit_bytes)
    if codec is Compression.LZ4:
        return _decompress_growing(cramjam.lz4.decompress_into, data, limit_bytes)
    if codec is Compression.ZSTD:
        return _decompress_zstd_within(data, limit_bytes)
    if len(data) > limit_bytes:
        raise DecompressedTooLarge(f"records of {len(data)} bytes exceed the limit of {limit_bytes} bytes")
    return bytes(data)


def decompress_frame(codec: Compression, data: Bytes, limit_bytes: int) -> bytes | memoryview:
    """Like `decompress_in_place`; MalformedMessage unless the data is one frame, as producers write it.

    The formats allow more than clients read: librdkafka ends its process at an empty member of gzip; the Java client
    reads no second frame of LZ4, no dependent and no empty blocks."""
    if codec is Compression.GZIP:
        return _decompress_only_gzip_member(data, limit_bytes)
    decompressed = decompress_in_place(codec, data, limit_bytes)
    if codec is Compression.LZ4 and not _is_lz4_frame_of_producers(data, len(decompressed)):
        raise MalformedMessage("compressed records in several frames, or in one that no producer writes")
    return decompressed


def _decompress_gzip(data: Bytes, limit_bytes: int) -> memoryview:
    """All members of gzip, which others than producers may write. The size that the last one declares is that of the
    output if it is the only one; otherwise the members are decompressed again into a buffer of the limit, of which only
    the pages that are written to take memory."""
    size_bytes = min(_gzip_size_bytes(data), GZIP_LARGEST_RATIO * len(data))
    if size_bytes > limit_bytes:
        declared = f"compressed records declare {size_bytes} bytes, over the limit of {limit_bytes}"
        raise DecompressedTooLarge(f"{declared}, unless they are damaged")
    output = memoryview(_new_buffer(size_bytes, POPULATED))
    with suppress(DecompressedTooLarge):
        position, end = _decompress_gzip_member(data, 0, output, 0)
        if position == len(data):
            return output[:end]
    output = memoryview(_new_buffer(limit_bytes, 0))
    position = end = 0
    for _ in range(MOST_GZIP_MEMBERS):
        position, end = _decompress_gzip_member(data, position, output, end)
        if position == len(data):
            return output[:end]
    raise MalformedMessage(f"compressed records in more than {MOST_GZIP_MEMBERS} members of gzip")


def _decompress_only_gzip_member(data: Bytes, limit_bytes: int) -> memoryview:
    """It takes no more memory than the size that it declares, and none if that exceeds the limit."""
    size_bytes = _gzip_size_bytes(data)
    if not 0 < size_bytes <= GZIP_LARGEST_RATIO * len(data):
        raise MalformedMessage(f"compressed records of {len(data)} bytes declare {size_bytes} bytes")
    if size_bytes > limit_bytes:
        raise DecompressedTooLarge(f"compressed records declare {size_bytes} bytes, over the limit of {limit_bytes}")
    output = memoryview(_new_buffer(size_bytes, POPULATED))
    try:
        position, _ = _decompress_gzip_member(data, 0, output, 0)
    except DecompressedTooLarge as error:
        raise MalformedMessage(f"compressed records exceed the {size_bytes} bytes that they declare") from error
    if position < len(data):
        raise MalformedMessage("compressed records in several members of gzip")
    return output


def _decompress_gzip_member(data: Bytes, position: int, output: memoryview, end: int) -> tuple[int, int]:
    """Decompresses the member at `position` to `end` of the output; returns where what follows it is in both.
    DecompressedTooLarge if the output is full."""
    member = zlib.decompressobj(GZIP_FORMAT)
    try:
        while not member.eof:
            given: Bytes = member.unconsumed_tail
            if not given:
                given = data[position : position + GZIP_INPUT_BYTES]
                position += len(given)
            piece = member.decompress(given, GZIP_OUTPUT_BYTES)
            if not given and not piece:
                raise MalformedMessage("compressed records are corrupt: the member of gzip is cut off")
            if end + len(piece) > len(output):
                raise DecompressedTooLarge(f"decompressed records exceed the limit of {len(output)} bytes")
            output[end : end + len(piece)] = piece
            end += len(piece)
    except zlib.error as error:
        raise MalformedMessage(f"compressed records are corrupt: {error}") from error
    return position - len(member.unused_data), end


def _gzip_size_bytes(data: Bytes) -> int:
    """The size that the last member of gzip declares, modulo 2³²."""
    return int.from_bytes(data[-4:], "little")


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


def _decompress_zstd_within(data: Bytes, limit_bytes: int) -> memoryview:
    """Decompresses in at most `limit_bytes` of memory and ZSTD_WINDOW_BYTES: the decompressor keeps as much of its
    output a second time as the window of a frame declares, at level 22 all of it."""
    narrow_limit_bytes = min(limit_bytes, (limit_bytes + ZSTD_WINDOW_BYTES) // 2)
    try:
        return _decompress_growing(cramjam.zstd.decompress_into, data, narrow_limit_bytes)
    except DecompressedTooLarge:
        if narrow_limit_bytes == limit_bytes or _may_have_large_zstd_window(bytes(data)):
            raise
    return _decompress_growing(cramjam.zstd.decompress_into, data, limit_bytes)


def _may_have_large_zstd_window(data: bytes) -> bool:
    """Also if another frame may follow. Without a window, the frame's size takes its place."""
    has_window = not data[4] & 0x20
    exponent, eighths = data[5] >> 3, data[5] & 7
    is_large = (8 + eighths) << (7 + exponent) > ZSTD_WINDOW_BYTES
    return data[:4] != ZSTD_MAGIC or not has_window or is_large or data.find(ZSTD_MAGIC, 4) >= 0


def _decompress_growing(decompress_into: _DecompressInto, data: Bytes, limit_bytes: int) -> memoryview:
    """Decompresses into a buffer of an estimated size; it grows fourfold up to a megabyte, then to `limit_bytes`, until
    the output fits.

    The decompressors stop when their output is full. A large buffer takes only the memory that is written to."""
    capacity = min(limit_bytes, max(4 * len(data), FIRST_OUTPUT_BYTES))
    while True:
        output = _new_buffer(capacity, 0)
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


def _decompress_snappy(data: memoryview, limit_bytes: int) -> memoryview:
    """Reads the blocks twice instead of keeping them: a batch may have hundreds of thousands of tiny ones."""
    size_bytes = sum(map(_snappy_size_bytes, _snappy_blocks(data)))
    if size_bytes > limit_bytes:
        raise DecompressedTooLarge(f"blocks of snappy declare {size_bytes} bytes, over the limit of {limit_bytes}")
    output = memoryview(_new_buffer(size_bytes, POPULATED))
    end = 0
    try:
        for block in _snappy_blocks(data):
            end += cramjam.snappy.decompress_raw_into(block, output[end:])
    except cramjam.DecompressionError as error:
        raise MalformedMessage(f"a snappy block is corrupt: {error}") from error
    return output


def _snappy_blocks(data: memoryview) -> Iterator[memoryview]:
    """The blocks of xerial's framing, or the data as one block."""
    if data[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
        yield data
        return
    # Version numbers after the magic are ignored, because some clients write them in the wrong byte order.
    position = len(XERIAL_HEADER)
    while position < len(data):
        end = position + 4 + int.from_bytes(data[position : position + 4], "big")
        if end > len(data):
            raise MalformedMessage("a snappy block is cut off")
        yield data[position + 4 : end]
        position = end


def _snappy_size_bytes(block: memoryview) -> int:
    try:
        size_bytes: int = cramjam.snappy.decompress_raw_len(block)
    except cramjam.DecompressionError as error:
        raise MalformedMessage(f"a snappy block is corrupt: {error}") from error
    if size_bytes > SNAPPY_LARGEST_RATIO * len(block):
        raise MalformedMessage(f"a snappy block of {len(block)} bytes declares {size_bytes} bytes")
    return size_bytes


def _new_buffer(size_bytes: int, flags: int) -> bytearray | mmap.mmap:
    """A large buffer is mapped: the allocator would keep its memory for the process after a refusal."""
    if size_bytes < MAPPED_BYTES:
        return bytearray(size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | flags)
