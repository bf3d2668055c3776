"""Checks the checksums of batches that an earlier run of the broker wrote, before they are first served.

Batches that this run has written or recovered are not checked, so it costs neither producers nor readers at the tail.
Other batches are checked by the worker that reads them for a client."""

import struct

from odradek.host.disk import File
from odradek.log.batch_scan import scan_checked, scan_headers
from odradek.protocol.batch import ATTRIBUTES_POSITION, CURRENT_MAGIC, HEADER_SIZE_BYTES, LENGTH_END_POSITION
from odradek.protocol.checksum import crc32c

CHUNK_BYTES = 1 << 20
# More of them would keep the event loop from the interpreter lock for milliseconds.
MOST_BATCHES = 1000

# Base offset, batch length, (leader epoch), magic, checksum, (attributes), last offset delta.
_CHECKED = struct.Struct(">qi4xbI2xi")


def count_sound_bytes(file: File, position: int, end_position: int) -> int:
    """How many bytes from `position` on are whole batches with a valid checksum and offsets in order. Stops after a
    megabyte, or a thousand batches."""
    chunk = memoryview(file.read_at(min(CHUNK_BYTES, end_position - position), position))
    sound_bytes = next_offset = 0
    for _ in range(MOST_BATCHES):
        if sound_bytes + HEADER_SIZE_BYTES > len(chunk):
            break
        base_offset, length, magic, checksum, last_offset_delta = _CHECKED.unpack_from(chunk, sound_bytes)
        batch_end = sound_bytes + LENGTH_END_POSITION + length
        if magic != CURRENT_MAGIC or base_offset < next_offset or length < 0 or last_offset_delta < 0:
            break
        if batch_end > len(chunk):
            break
        if crc32c(chunk[sound_bytes + ATTRIBUTES_POSITION : batch_end]) != checksum:
            break
        next_offset = base_offset + last_offset_delta + 1
        sound_bytes = batch_end
    return sound_bytes or _count_sound_bytes_of_one(file, position, end_position)


def _count_sound_bytes_of_one(file: File, position: int, end_position: int) -> int:
    """The size of the first batch, which may be larger than a chunk, or 0 when it is damaged."""
    first = next(scan_checked(file, end_position, position), None)
    return first[1].size_bytes if first else 0


def breaks_off(file: File, position: int, end_position: int) -> bool:
    """Whether the batch headers from `position` on do not lead exactly to `end_position`."""
    reached = position
    for batch_position, header in scan_headers(file, position, end_position):
        reached = batch_position + header.size_bytes
    return reached != end_position
