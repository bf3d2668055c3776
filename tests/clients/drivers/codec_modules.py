"""Gives kafka-python its optional codec modules (snappy, lz4, zstandard) from cramjam, which the broker has."""

import io
import sys
import types
from typing import Any

import cramjam


class _ZstdCompressor:
    def compress(self, data: bytes) -> bytes:
        return bytes(cramjam.zstd.compress(data))


class _ZstdDecompressor:
    def stream_reader(self, source: io.BytesIO, read_across_frames: bool = False) -> io.BytesIO:
        return io.BytesIO(bytes(cramjam.zstd.decompress(source.read())))


def _lz4_compress(data: bytes, block_linked: bool = False, **options: Any) -> bytes:
    compressor = cramjam.lz4.Compressor(level=9, content_checksum=False, block_linked=block_linked)
    compressor.compress(data)
    return bytes(compressor.finish())


def install() -> None:
    """Call it before kafka-python is imported."""
    snappy: Any = types.ModuleType("snappy")
    snappy.compress = lambda data: bytes(cramjam.snappy.compress_raw(data))
    snappy.decompress = lambda data: bytes(cramjam.snappy.decompress_raw(data))
    lz4: Any = types.ModuleType("lz4")
    lz4.frame = types.ModuleType("lz4.frame")
    lz4.frame.compress = _lz4_compress
    lz4.frame.decompress = lambda data: bytes(cramjam.lz4.decompress(data))
    zstandard: Any = types.ModuleType("zstandard")
    zstandard.ZstdCompressor = _ZstdCompressor
    zstandard.ZstdDecompressor = _ZstdDecompressor
    sys.modules.update({"snappy": snappy, "lz4": lz4, "lz4.frame": lz4.frame, "zstandard": zstandard})
