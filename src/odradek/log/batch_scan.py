"""Reads the batch headers of a segment file in order, in bounded memory: to find an offset, to rebuild producer state,
and (with checksums) to recover after a crash."""

import struct
from collections.abc import Iterator

from odradek.host.disk import File
from odradek.protocol.batch import (
    ATTRIBUTES_POSITION,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    BatchHeader,
    read_batch_header,
)
from odradek.protocol.checksum import crc32c

_LOOKUP_CHUNK_BYTES = 8 * 1024
_CHUNK_BYTES = 1 << 20
_SMALLEST_BATCH_LENGTH = HEADER_SIZE_BYTES - LENGTH_END_POSITION

# Base offset, batch length, …, last offset delta: the fields that are needed to find a batch.
_PLACE = struct.Struct(">qi11xi")


def locate_batch(file: File, offset: int, position: int, end_position: int) -> tuple[int, int] | None:
    """The start and end position of the first batch that ends at or after `offset`, searched from `position` on."""
    chunk = b""
    chunk_position = position
    while position + HEADER_SIZE_BYTES <= end_position:
        inside = position - chunk_position
        if inside + _PLACE.size > len(chunk):
            chunk = file.read_at(min(_LOOKUP_CHUNK_BYTES, end_position - position), position)
            chunk_position, inside = position, 0
            if len(chunk) < _PLACE.size:
                return None
        base_offset, batch_length, last_offset_delta = _PLACE.unpack_from(chunk, inside)
        next_position = position + LENGTH_END_POSITION + batch_length
        if base_offset + last_offset_delta >= offset:
            return position, next_position
        if next_position <= position:
            return None
        position = next_position
    return None


def scan_headers(file: File, position: int, end_position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch from `position` on, with its position. Checksums are not checked; stops at the first bytes that
    are no whole batch."""
    chunk = b""
    chunk_position = position
    while position + HEADER_SIZE_BYTES <= end_position:
        inside = position - chunk_position
        if inside + HEADER_SIZE_BYTES > len(chunk):
            chunk = file.read_at(min(_LOOKUP_CHUNK_BYTES, end_position - position), position)
            chunk_position, inside = position, 0
            if len(chunk) < HEADER_SIZE_BYTES:
                return
        header = read_batch_header(chunk, inside)
        next_position = position + header.size_bytes
        if not is_plausible(header) or next_position > end_position:
            return
        yield position, header
        position = next_position


def scan_checked(file: File, end_position: int, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch from `position` on, with its position; stops at the first that is incomplete or has a wrong
    checksum."""
    chunk = memoryview(b"")
    chunk_position = position
    while position + HEADER_SIZE_BYTES <= end_position:
        inside = position - chunk_position
        if inside + HEADER_SIZE_BYTES > len(chunk):
            chunk = memoryview(file.read_at(min(_CHUNK_BYTES, end_position - position), position))
            chunk_position, inside = position, 0
            if len(chunk) < HEADER_SIZE_BYTES:
                return
        header = read_batch_header(chunk, inside)
        next_position = position + header.size_bytes
        if not is_plausible(header) or next_position > end_position:
            return
        if next_position > chunk_position + len(chunk) and header.size_bytes <= _CHUNK_BYTES and inside:
            chunk = memoryview(file.read_at(min(_CHUNK_BYTES, end_position - position), position))
            chunk_position, inside = position, 0
        if _checksum(file, chunk, inside, position, header) != header.crc:
            return
        yield position, header
        position = next_position


def is_plausible(header: BatchHeader) -> bool:
    return (
        header.magic == CURRENT_MAGIC
        and header.batch_length >= _SMALLEST_BATCH_LENGTH
        and header.base_offset >= 0
        and header.last_offset_delta >= 0
    )


def _checksum(file: File, chunk: memoryview, inside: int, position: int, header: BatchHeader) -> int:
    """The checksum of the batch at `position`, whose beginning lies in the chunk. The rest is read piece by piece, so
    that a wrong length cannot fill the memory."""
    end = inside + header.size_bytes
    checksum = crc32c(chunk[inside + ATTRIBUTES_POSITION : end])
    read = min(len(chunk), end) - inside
    while read < header.size_bytes:
        piece = file.read_at(min(_CHUNK_BYTES, header.size_bytes - read), position + read)
        if not piece:
            return -1
        checksum = crc32c(piece, checksum)
        read += len(piece)
    return checksum
