"""Whether bytes that an earlier run wrote are still what they were: checked before they are first given out.

What this run has written, or recovery has read, is not looked at again, so neither producers nor readers at the tail
pay for it; and of the rest each stretch is read once, by the worker that serves it, on its way to the client."""

from odradek.host.disk import File
from odradek.log.batch_scan import scan_checked, scan_headers


def count_sound_bytes(file: File, position: int, end_position: int) -> int:
    """How many bytes from `position` on are whole batches with the right checksum and offsets in order."""
    sound_end = position
    next_offset = 0
    for batch_position, header in scan_checked(file, end_position, position):
        if header.base_offset < next_offset:
            break
        next_offset = header.last_offset + 1
        sound_end = batch_position + header.size_bytes
    return sound_end - position


def breaks_off(file: File, position: int, end_position: int) -> bool:
    """Whether the headers lead elsewhere than to the end."""
    reached = position
    for batch_position, header in scan_headers(file, position, end_position):
        reached = batch_position + header.size_bytes
    return reached != end_position
