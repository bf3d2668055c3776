"""Reads the batches of a segment file in bounded memory, and checks the checksum of each: compaction computes new
checksums, which would hide damage."""

from collections.abc import Iterator

from odradek.host.disk import File
from odradek.log.batch_scan import is_plausible
from odradek.protocol.batch import ATTRIBUTES_POSITION, HEADER_SIZE_BYTES, BatchHeader, read_batch_header
from odradek.protocol.checksum import crc32c

PIECE_BYTES = 1 << 20


class DamagedSegment(Exception):
    """Compaction does not change a damaged log; the message says where the damage is."""


def read_batches(file: File, path: str, position: int, end_position: int) -> Iterator[tuple[bytes, int, BatchHeader]]:
    """A piece of the file, the position of a batch in it, and the batch's header, for each batch from `position` on."""
    piece = b""
    piece_position = position
    while position < end_position:
        inside = position - piece_position
        header = read_batch_header(piece, inside) if inside + HEADER_SIZE_BYTES <= len(piece) else None
        if header is None or inside + header.size_bytes > len(piece):
            size_bytes = max(PIECE_BYTES, header.size_bytes if header and is_plausible(header) else 0)
            piece = file.read_at(min(size_bytes, end_position - position), position)
            piece_position, inside = position, 0
            if len(piece) < HEADER_SIZE_BYTES:
                raise DamagedSegment(f"{path}: {len(piece)} bytes at {position} are no batch header")
            header = read_batch_header(piece)
            if is_plausible(header) and len(piece) < header.size_bytes <= end_position - position:
                piece = file.read_at(header.size_bytes, position)
        end = inside + header.size_bytes
        if not is_plausible(header) or end > len(piece):
            raise DamagedSegment(f"{path}: no whole batch at {position}")
        if crc32c(memoryview(piece)[inside + ATTRIBUTES_POSITION : end]) != header.crc:
            raise DamagedSegment(f"{path}: the batch at {position} has a wrong checksum")
        yield piece, inside, header
        position += header.size_bytes
