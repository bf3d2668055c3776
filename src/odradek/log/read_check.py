"""Whether bytes that an earlier run wrote are still what they were: checked before they are first given out.

What this run has written, or recovery has read, is not looked at again, so neither producers nor readers at the tail
pay for it; and of the rest each stretch is read once, by the worker that serves it, on its way to the client."""

import struct

from crc32c import crc32c

from odradek.host.disk import File
from odradek.log.batch_scan import scan_checked, scan_headers
from odradek.protocol.batch import ATTRIBUTES_POSITION, CURRENT_MAGIC, HEADER_SIZE_BYTES, LENGTH_END_POSITION

CHUNK_BYTES = 1 << 20
# A worker that goes through more of them would keep the interpreter from the event loop for milliseconds.
MOST_BATCHES = 1000

# Base offset, batch length, (leader epoch), magic, checksum, (attributes), last offset delta.
_CHECKED = struct.Struct(">qi4xbI2xi")


def count_sound_bytes(file: File, position: int, end_position: int) -> int:
    """How many bytes from `position` on are whole batches with the right checksum and offsets in order. It may stop
    earlier than it must: after a megabyte, or a thousand batches."""
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
    """Of the first batch, which may be larger than a chunk."""
    first = next(scan_checked(file, end_position, position), None)
    return first[1].size_bytes if first else 0


def breaks_off(file: File, position: int, end_position: int) -> bool:
    """Whether the headers lead elsewhere than to the end."""
    reached = position
    for batch_position, header in scan_headers(file, position, end_position):
        reached = batch_position + header.size_bytes
    return reached != end_position
