"""All codecs round-trip, agree with aiokafka's, and never exceed the caller's limit."""

import contextlib
import gzip
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable

import aiokafka.codec
import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.compression import (
    MOST_GZIP_MEMBERS,
    XERIAL_HEADER,
    Compression,
    DecompressedTooLarge,
    compress,
    decompress,
    decompress_frame,
)
from odradek.protocol.malformed import MalformedMessage
from tests.memory import memory_of

LIMIT = 1 << 20
COMPRESSED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
THEIR_ENCODERS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: aiokafka.codec.gzip_encode,
    Compression.SNAPPY: aiokafka.codec.snappy_encode,
    Compression.LZ4: aiokafka.codec.lz4_encode,
    Compression.ZSTD: aiokafka.codec.zstd_encode,
}
THEIR_DECODERS: dict[Compression, Callable[[bytes], bytes]] = {
    Compression.GZIP: aiokafka.codec.gzip_decode,
    Compression.SNAPPY: aiokafka.codec.snappy_decode,
    Compression.LZ4: aiokafka.codec.lz4_decode,
    Compression.ZSTD: aiokafka.codec.zstd_decode,
}
CONTENTS = st.binary(max_size=200) | st.builds(bytes.__mul__, st.binary(min_size=1, max_size=50), st.integers(1, 5000))


@given(codec=st.sampled_from(Compression), content=CONTENTS)
def test_content_comes_back(codec: Compression, content: bytes) -> None:
    assert decompress(codec, memoryview(compress(codec, memoryview(content))), LIMIT) == content


@given(codec=st.sampled_from(COMPRESSED), content=CONTENTS)
def test_each_side_reads_what_the_other_compressed(codec: Compression, content: bytes) -> None:
    assert decompress(codec, THEIR_ENCODERS[codec](content), LIMIT) == content
    # aiokafka takes xerial's header for a block when none follows it.
    if content:
        assert THEIR_DECODERS[codec](compress(codec, content)) == content
        for encoded in (THEIR_ENCODERS[codec](content), compress(codec, content)):
            assert decompress_frame(codec, memoryview(encoded), LIMIT) == content


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        *[(Compression.GZIP, level) for level in (-1, 1, 6, 9)],
        *[(Compression.LZ4, level) for level in (1, 9, 17)],
        *[(Compression.ZSTD, level) for level in (-131072, -1, 3, 22)],
    ],
)
def test_every_level_that_kafka_allows_is_taken(codec: Compression, level: int) -> None:
    content = b"some records " * 1000
    assert decompress(codec, compress(codec, content, level), LIMIT) == content


def test_frames_that_no_producer_writes_are_known_although_they_are_valid() -> None:
    """librdkafka 2.16 ends its process at an empty member of gzip; the Java client refuses these frames of LZ4."""
    content = random.Random(1).randbytes(300_000)
    for codec in (Compression.GZIP, Compression.LZ4):
        whole, empty = compress(codec, content), compress(codec, b"")
        assert decompress_frame(codec, whole, LIMIT) == content
        parts = compress(codec, content[:9]) + compress(codec, content[9:])
        for frames in (empty + whole, empty + empty + whole, whole + empty, parts):
            assert decompress(codec, frames, LIMIT) == content
            with pytest.raises(MalformedMessage):
                decompress_frame(codec, frames, LIMIT)
    skipped = b"\x50\x2a\x4d\x18" + struct.pack("<I", 0x60) + bytes(0x60)
    head, blocks = whole[:7], whole[7:-4]
    empty_blocks = struct.pack("<II", 1 << 31, 0x2CC5D05), struct.pack("<IBI", 1, 0, 0xCF65B03E)  # with their checksums
    dependent = cramjam.lz4.Compressor(level=0, content_checksum=False, block_linked=True)
    dependent.compress(content)
    for frames in (
        skipped + whole, whole + skipped, bytes(dependent.finish()),
        *(head + each + blocks + bytes(4) for each in empty_blocks),
        *(head + blocks + each + bytes(4) for each in empty_blocks),
    ):  # fmt: skip
        assert decompress(codec, frames, LIMIT) == content
        with pytest.raises(MalformedMessage):
            decompress_frame(codec, frames, LIMIT)


def test_only_the_first_member_of_gzip_is_decompressed() -> None:
    """50,000 empty members are a megabyte, and took a worker of the broker more than a second."""
    frames = gzip.compress(b"y") + 50_000 * gzip.compress(b"") + gzip.compress(b"x")
    began_s = time.process_time()
    with pytest.raises(MalformedMessage, match="several members"):
        decompress_frame(Compression.GZIP, frames, LIMIT)
    assert time.process_time() - began_s < 0.1


@pytest.mark.parametrize("content", [b"", b"x", b"x" * 600])
def test_readers_decompress_so_many_members_of_gzip_and_no_more(content: bytes) -> None:
    """Apache Kafka stores a megabyte of them; a reader took up to two seconds for it."""
    member = gzip.compress(content, mtime=0)
    assert decompress(Compression.GZIP, MOST_GZIP_MEMBERS * member, 1 << 20) == MOST_GZIP_MEMBERS * content
    began_s = time.process_time()
    with pytest.raises(MalformedMessage, match="more than 1000 members"):
        decompress(Compression.GZIP, 1_000_000 // len(member) * member, 32 << 20)
    assert time.process_time() - began_s < 0.1


@given(content=st.binary(max_size=300), size_bytes=st.integers(1, 700_000), cut=st.integers(0, 60))
def test_gzip_comes_back_from_one_frame_or_is_malformed(content: bytes, size_bytes: int, cut: int) -> None:
    """Sizes around those of the steps in which zlib reads and writes."""
    whole = (content * (size_bytes // max(len(content), 1) + 1))[:size_bytes] or b"x"
    compressed = compress(Compression.GZIP, whole)
    assert decompress_frame(Compression.GZIP, compressed, len(whole)) == whole
    assert decompress(Compression.GZIP, compressed * 3, 3 * len(whole)) == whole * 3
    with pytest.raises(DecompressedTooLarge):
        decompress(Compression.GZIP, compressed * 3, 3 * len(whole) - 1)
    with pytest.raises(MalformedMessage):
        decompress_frame(Compression.GZIP, compressed + b"z" * cut if cut else compressed[:-1], LIMIT)


def test_snappy_is_read_with_and_without_framing() -> None:
    content = b"some records " * 10_000
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(content)), LIMIT) == content
    framed = compress(Compression.SNAPPY, content)
    assert framed.startswith(XERIAL_HEADER)
    # Redpanda writes the two version numbers in the other byte order.
    swapped = framed[:8] + b"\x01\x00\x00\x00\x01\x00\x00\x00" + framed[16:]
    assert decompress(Compression.SNAPPY, swapped, LIMIT) == content


def test_lz4_blocks_are_independent_and_the_content_size_is_not_written() -> None:
    descriptor = compress(Compression.LZ4, b"some records " * 10_000)[4]
    assert descriptor & 0x20, "independent blocks"
    assert not descriptor & 0x08, "no content size"
    assert not descriptor & 0x04, "no content checksum"


@pytest.mark.parametrize("codec", Compression)
def test_content_at_the_limit_passes_and_one_byte_more_is_refused(codec: Compression) -> None:
    content = b"ab" * 50_000
    compressed = compress(codec, content)
    assert decompress(codec, compressed, len(content)) == content
    with pytest.raises(MalformedMessage):
        decompress(codec, compressed, len(content) - 1)


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("damage", ["empty", "cut", "noise", "trailing"])
def test_corrupt_content_is_malformed(codec: Compression, damage: str) -> None:
    compressed = compress(codec, b"some records " * 1000)
    damaged = {"empty": b"", "cut": compressed[:-4], "noise": b"\xff" * 40, "trailing": compressed + b"\xff\xff\xff"}[
        damage
    ]
    with pytest.raises(MalformedMessage):
        decompress(codec, damaged, LIMIT)


@given(codec=st.sampled_from(COMPRESSED), noise=st.binary(max_size=60), framed=st.booleans())
def test_noise_is_content_or_malformed_and_nothing_else(codec: Compression, noise: bytes, framed: bool) -> None:
    start = {
        Compression.GZIP: b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
        Compression.SNAPPY: XERIAL_HEADER,
        Compression.LZ4: b"\x04\x22\x4d\x18\x60\x40\x82",
        Compression.ZSTD: b"\x28\xb5\x2f\xfd",
    }[codec]
    with contextlib.suppress(MalformedMessage):
        assert len(decompress(codec, start + noise if framed else noise, LIMIT)) <= LIMIT


def test_tiny_snappy_blocks_take_no_memory_each() -> None:
    """A producer chooses the framing: a batch of a megabyte may have 200,000 blocks."""
    block = bytes(cramjam.snappy.compress_raw(b"a"))
    data = XERIAL_HEADER + 20_000 * (struct.pack(">i", len(block)) + block)
    assert decompress(Compression.SNAPPY, data, LIMIT) == 20_000 * b"a"
    assert memory_of(lambda: decompress(Compression.SNAPPY, data, LIMIT)).peak_bytes < 200_000


def test_a_snappy_block_that_declares_gigabytes_reserves_nothing() -> None:
    for block in (b"\xff\xff\xff\xff\x0f" + bytes(20), b"\x80\x80\x40" + bytes(20)):
        with pytest.raises(MalformedMessage, match="declares"):
            decompress(Compression.SNAPPY, block, LIMIT)
        with pytest.raises(MalformedMessage, match="declares"):
            decompress(Compression.SNAPPY, XERIAL_HEADER + len(block).to_bytes(4, "big") + block, LIMIT)


# Each turns a few kilobytes into gigabytes; in a process of its own, so that the peak is this one's alone.
BOMB = """
import sys
from odradek.protocol.compression import Compression, decompress
from odradek.protocol.malformed import MalformedMessage
from tests.memory import peak_resident_bytes
bomb = sys.stdin.buffer.read()
before = peak_resident_bytes()
try:
    decompress(Compression(int(sys.argv[1])), bomb, 1 << 20)
except MalformedMessage:
    print(peak_resident_bytes() - before)
"""


def bomb_of(codec: Compression) -> bytes:
    """Frames after one another, each of megabytes of zeros: together gigabytes."""
    zeros = bytes(64 << 20)
    if codec is Compression.SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(bytes(16 << 20)))
        return XERIAL_HEADER + (len(block).to_bytes(4, "big") + block) * 4
    frame = gzip.compress(zeros, 1) if codec is Compression.GZIP else compress(codec, zeros)
    return frame * 40


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_decompression_bomb_is_refused_in_little_memory(codec: Compression) -> None:
    process = subprocess.run(
        [sys.executable, "-c", BOMB, str(int(codec))], input=bomb_of(codec), capture_output=True, check=True
    )
    assert int(process.stdout) < 16 << 20, process.stderr


LEVELS = """
import sys
from odradek.protocol.compression import Compression, DecompressedTooLarge, compress, decompress_frame
from tests.memory import peak_resident_bytes
small = compress(Compression.ZSTD, b"", 3)
frames = [prefix + compress(Compression.ZSTD, bytes(size), int(sys.argv[1])) for size in (8 << 20, 16 << 20)
          for prefix in (b"", small)]
before, refused = peak_resident_bytes(), 0
for each in frames:
    try:
        decompress_frame(Compression.ZSTD, each, 16 << 20)
    except DecompressedTooLarge:
        refused += 1
print(peak_resident_bytes() - before, refused)
"""


@pytest.mark.parametrize(("level", "refused"), [(3, 1), (8, 1), (16, 2), (22, 2)])
def test_a_window_of_zstd_is_within_the_memory_of_the_records(level: int, refused: int) -> None:
    """The decompressor keeps the last megabytes of its output a second time, at level 22 all of it. Of two frames, the
    second may have any window."""
    process = subprocess.run([sys.executable, "-c", LEVELS, str(level)], capture_output=True, check=True, text=True)
    grown, count = map(int, process.stdout.split())
    assert count == refused
    assert grown < 20 << 20


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
@pytest.mark.parametrize("damage", ["cut", "noise", "rotten"])
def test_what_is_corrupt_is_not_tried_again_with_more_memory(codec: Compression, damage: str) -> None:
    compressed = compress(codec, b"some records " * 100)
    damaged = {"cut": compressed[:-4], "noise": b"\xff" * 40, "rotten": compressed[:12] + b"\x55" * 40}[damage]

    def refuse() -> None:
        with pytest.raises(MalformedMessage, match="corrupt"):
            decompress(codec, damaged, 128 << 20)

    assert memory_of(refuse).peak_bytes < 1 << 20
