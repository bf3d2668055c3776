"""Batches of which a part is wrong, by seed: each has a valid checksum and length unless its name says otherwise.

No reader may hang or crash on one, and no broker may take one from a producer. `hostile_batches` are valid, and cost
a careless reader its memory or its time.
"""

import random
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import cramjam

from odradek.protocol.batch import (
    CHECKSUM_POSITION,
    CURRENT_MAGIC,
    HEADER_SIZE_BYTES,
    LENGTH_END_POSITION,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    write_batch,
)
from odradek.protocol.compression import XERIAL_HEADER, Compression, compress
from odradek.protocol.records import Record, build_batch
from odradek.protocol.varints import encode_varlong

SEED = 20_011
TIMESTAMP_MS = 1_790_000_000_000
CODECS: tuple[Compression, ...] = tuple(codec for codec in Compression if codec is not Compression.NONE)
TOO_LONG_VARINT = b"\xff" * 10 + b"\x01"
HUGE = 2**31 - 1
BOMB_BYTES = 64 * 1024 * 1024
TRAP_BYTES = 17 * 1024 * 1024


class Fields(NamedTuple):
    """The fields of a record that mutations replace; lengths are those of the contents unless given."""

    delta: int = 0
    key: bytes = encode_varlong(3) + b"key"
    value: bytes = encode_varlong(5) + b"value"
    headers: bytes = encode_varlong(0)
    timestamp: bytes = encode_varlong(0)
    size: bytes | None = None

    def encode(self) -> bytes:
        body = b"\0" + self.timestamp + encode_varlong(self.delta) + self.key + self.value + self.headers
        return (encode_varlong(len(body)) if self.size is None else self.size) + body


def records(count: int, first: int = 0) -> bytes:
    return b"".join(Fields(delta=first + index).encode() for index in range(count))


def batch(section: bytes, count: int, *, attributes: int = 0, last_delta: int | None = None) -> bytes:
    """A batch with this section of records, as it is stored, and a valid checksum."""
    header = BatchHeader(
        base_offset=0,
        batch_length=HEADER_SIZE_BYTES - LENGTH_END_POSITION + len(section),
        partition_leader_epoch=-1,
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=count - 1 if last_delta is None else last_delta,
        base_timestamp=TIMESTAMP_MS,
        max_timestamp=TIMESTAMP_MS,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=count,
    )
    return bytes(write_batch(header, section))


# A record of which a field is wrong.
RECORDS: dict[str, Callable[[random.Random], Fields]] = {
    "offset delta 77": lambda _: Fields(delta=77),
    "offset delta negative": lambda _: Fields(delta=-1),
    "offset delta huge": lambda _: Fields(delta=2**62),
    "record length negative": lambda r: Fields(size=encode_varlong(-r.randrange(1, 99))),
    "record length zero": lambda _: Fields(size=encode_varlong(0)),
    "record length too long": lambda r: Fields(size=encode_varlong(r.randrange(99, HUGE))),
    "record length too short": lambda _: Fields(size=encode_varlong(7)),
    "record length beyond 64 bits": lambda _: Fields(size=TOO_LONG_VARINT),
    "timestamp beyond 64 bits": lambda _: Fields(timestamp=TOO_LONG_VARINT),
    "key length -2": lambda _: Fields(key=encode_varlong(-2)),
    "key length huge": lambda r: Fields(key=encode_varlong(r.randrange(99, HUGE))),
    "key length beyond 64 bits": lambda _: Fields(key=TOO_LONG_VARINT),
    "value length -2": lambda _: Fields(value=encode_varlong(-2)),
    "value length huge": lambda r: Fields(value=encode_varlong(r.randrange(99, 2**60))),
    "value length too short": lambda _: Fields(value=encode_varlong(4) + b"value"),
    "header count negative": lambda _: Fields(headers=encode_varlong(-1)),
    "header count huge": lambda r: Fields(headers=encode_varlong(r.randrange(99, HUGE))),
    "header count beyond 64 bits": lambda _: Fields(headers=TOO_LONG_VARINT),
    "one header too few": lambda _: _header(encode_varlong(1) + b"h", count=2),
    "one header too many": lambda _: _header(encode_varlong(1) + b"h", count=0),
    "header without a name": lambda _: _header(encode_varlong(-1)),
    "header name length huge": lambda r: _header(encode_varlong(r.randrange(99, HUGE)) + b"h"),
    "header value length -2": lambda _: _header(encode_varlong(1) + b"h", encode_varlong(-2)),
    "header value length huge": lambda _: _header(encode_varlong(1) + b"h", encode_varlong(HUGE)),
}


# Sections of records that are wrong whatever their codec: bytes, record count, delta of the last offset.
Section = tuple[bytes, int, int | None]


def _header(name: bytes, value: bytes = encode_varlong(1) + b"v", count: int = 1) -> Fields:
    return Fields(headers=encode_varlong(count) + name + value)


def _alone(name: str, random_: random.Random) -> Section:
    return RECORDS[name](random_).encode(), 1, None


def _first(name: str, random_: random.Random) -> Section:
    return RECORDS[name](random_).encode() + records(2, 1), 3, None


def _second(name: str, random_: random.Random) -> Section:
    fields = RECORDS[name](random_)
    wrong = fields._replace(delta=fields.delta or 1).encode()
    return records(1) + wrong + records(1, 2), 3, None


def _cut(random_: random.Random) -> Section:
    whole = records(3)
    return whole[: random_.randrange(1, len(whole))], 3, None


def _deltas(*deltas: int) -> Callable[[random.Random], Section]:
    return lambda _: (b"".join(Fields(delta=each).encode() for each in deltas), len(deltas), None)


SECTIONS: dict[str, Callable[[random.Random], Section]] = {
    "no bytes": lambda _: (b"", 1, None),
    "garbage": lambda r: (b"\x7f" + r.randbytes(r.randrange(20, 60)), 1, None),
    "garbage after the first record": lambda r: (records(1) + b"\x7f" + r.randbytes(r.randrange(20, 60)), 3, None),
    "cut off": _cut,
    "cut off in the last record": lambda r: (records(3)[: -r.randrange(1, 9)], 3, None),
    "bytes after the last record": lambda r: (records(2) + r.randbytes(r.randrange(1, 9)), 2, None),
    "count too high": lambda r: (records(2), 2 + r.randrange(1, 9), None),
    "count one too high": lambda _: (records(2), 3, None),
    "count too low": lambda _: (records(3), 2, None),
    "count zero": lambda _: (records(2), 0, 1),
    "count negative": lambda r: (records(2), -r.randrange(1, HUGE), 1),
    "count huge": lambda _: (records(2), HUGE, 1),
    "last offset delta too low": lambda _: (records(3), 3, 0),
    "last offset delta negative": lambda _: (records(2), 2, -5),
    "offset deltas equal": _deltas(0, 0),
    "offset deltas descending": _deltas(1, 0),
    "offset deltas with a gap, counted": _deltas(0, 2),
    "value length in the next record": lambda _: (
        Fields(value=encode_varlong(9) + b"value").encode() + records(1, 1), 2, None
    ),
    **{f"{name}, alone": partial(_alone, name) for name in RECORDS},
    **{f"{name}, first of 3": partial(_first, name) for name in RECORDS},
    **{f"{name}, second of 3": partial(_second, name) for name in RECORDS},
}  # fmt: skip


def _in_section(name: str, codec: Compression, random_: random.Random) -> bytes:
    section, count, last_delta = SECTIONS[name](random_)
    stored = section if not section else compress(codec, section)
    return batch(stored, count, attributes=codec, last_delta=last_delta)


# What is stored of valid records, damaged after compression.
def _truncated(codec: Compression, random_: random.Random) -> bytes:
    data = compress(codec, records(20))
    return data[: random_.randrange(1, len(data) // 2)]


def _relabelled(codec: Compression, random_: random.Random) -> bytes:
    return compress(random_.choice([other for other in CODECS if other is not codec]), records(5))


PAYLOADS: dict[str, Callable[[Compression, random.Random], bytes]] = {
    "payload is x": lambda _codec, _random: b"x",
    "payload empty": lambda _codec, _random: b"",
    "payload is random bytes": lambda _codec, random_: b"\xfe" + random_.randbytes(random_.randrange(1, 200)),
    "payload truncated": _truncated,
    "payload of another codec": _relabelled,
    "payload not compressed": lambda _codec, _random: records(5),
    "payload compressed twice": lambda codec, _random: compress(codec, compress(codec, records(5))),
}


def _in_payload(name: str, codec: Compression, random_: random.Random) -> bytes:
    return batch(PAYLOADS[name](codec, random_), 5, attributes=codec)


# Batches whose header, frame or nesting is wrong.
def _patched(fields: str, position: int, *values: int, count: int = 2) -> bytes:
    """A valid batch with other bytes at a position that the checksum does not cover."""
    data = bytearray(batch(records(count), count))
    struct.pack_into(fields, data, position, *values)
    return bytes(data)


def _old_message(magic: int, value: bytes) -> bytes:
    """A message of format 0 or 1, in its message set; its CRC-32 is zero."""
    timestamp = struct.pack(">q", TIMESTAMP_MS) if magic else b""
    body = bytes(4) + bytes([magic, 0]) + timestamp + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qi", 0, len(body)) + body


FRAMES: dict[str, Callable[[random.Random], bytes]] = {
    "wrong checksum": lambda r: _patched(">I", CHECKSUM_POSITION, r.getrandbits(32)),
    "magic 3": lambda _: _patched(">b", 16, 3),
    "magic -1": lambda _: _patched(">b", 16, -1),
    "magic 0 in a batch of magic 2": lambda _: _patched(">b", 16, 0),
    "message of magic 0": lambda _: _old_message(0, b"v"),
    "message of magic 1": lambda _: _old_message(1, b"v"),
    "message of magic 1 in a message of magic 1": lambda _: _old_message(1, _old_message(1, b"v")),
    "batch in a batch": lambda _: batch(batch(records(1), 1), 1),
    "compressed batch in a batch": lambda r: _nested(r.choice(CODECS)),
    "batch length shorter than a header": lambda r: _patched(">i", 8, r.randrange(49)),
    "batch length negative": lambda r: _patched(">i", 8, -r.randrange(1, HUGE)),
    "batch length huge": lambda _: _patched(">i", 8, HUGE),
    "batch length beyond the bytes": lambda r: _patched(">i", 8, 200 + r.randrange(99)),
    "header cut off": lambda r: batch(records(1), 1)[: r.randrange(1, HEADER_SIZE_BYTES)],
    "records cut off": lambda r: batch(records(3), 3)[: -r.randrange(1, 20)],
    "transactional without a producer, and garbage": lambda r: batch(
        b"\x7f" + r.randbytes(20), 1, attributes=TRANSACTIONAL_FLAG
    ),
    "snappy block of a huge length": lambda _: batch(
        XERIAL_HEADER + struct.pack(">I", 2**32 - 1) + b"x", 1, attributes=Compression.SNAPPY
    ),
    "snappy block that declares 4 GiB": lambda _: batch(b"\xff\xff\xff\xff\x0f" + b"x", 1, attributes=2),
    "zstd frame that declares 2^60 bytes": lambda _: batch(
        b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 2**60) + b"x", 1, attributes=Compression.ZSTD
    ),
    "lz4 block of a huge length": lambda _: batch(
        b"\x04\x22\x4d\x18\x60\x70\x73" + struct.pack("<I", 2**31 - 1) + b"x", 1, attributes=Compression.LZ4
    ),
    **{f"codec {number}": partial(lambda number, _: batch(records(1), 1, attributes=number), number)
       for number in (5, 6, 7)},
}  # fmt: skip


def _nested(codec: Compression) -> bytes:
    return batch(compress(codec, batch(records(1), 1)), 1, attributes=codec)


def malformed_batches(count: int = 500, seed: int = SEED) -> list[tuple[str, bytes]]:
    """Names and bytes. Every kind and codec comes once; then any of them, with other random parts."""
    random_ = random.Random(seed)
    kinds: list[tuple[str, Callable[[random.Random], bytes]]] = list(FRAMES.items())
    kinds += [(f"{name}, {codec.name}", partial(_in_payload, name, codec)) for name in PAYLOADS for codec in CODECS]
    kinds += [(f"{name}, {Compression.NONE.name}", partial(_in_section, name, Compression.NONE)) for name in SECTIONS]
    kinds += [
        (f"{name}, {codec.name}", partial(_in_section, name, codec))
        for name in SECTIONS
        if name != "no bytes"
        for codec in CODECS
    ]
    chosen = [*kinds[:count], *random_.choices(kinds, k=max(0, count - len(kinds)))]
    return [(f"{number}: {name}", make(random_)) for number, (name, make) in enumerate(chosen)]


def client_traps() -> Iterator[tuple[str, bytes]]:
    """Batches that some readers read, and over which other clients end or hang."""
    section = records(3)
    damaged = compress(Compression.GZIP, Fields(value=encode_varlong(TRAP_BYTES) + bytes(TRAP_BYTES)).encode())[:-9]
    yield "17 MiB cut off, GZIP", batch(damaged, 1, attributes=Compression.GZIP)
    for codec in (Compression.GZIP, Compression.LZ4):
        for name, size_bytes in (("empty frame first", 0), ("two frames", 9)):
            frames = compress(codec, section[:size_bytes]) + compress(codec, section[size_bytes:])
            yield f"{name}, {codec.name}", batch(frames, 3, attributes=codec)
    dependent = bytes(cramjam.lz4.compress(section))
    yield "dependent blocks, LZ4", batch(dependent, 3, attributes=Compression.LZ4)


def hostile_batches() -> Iterator[tuple[str, bytes]]:
    """Valid batches that are small and decompress to a lot, have very many parts, or names that are not UTF-8."""
    bomb = Fields(value=encode_varlong(BOMB_BYTES) + bytes(BOMB_BYTES)).encode()
    for codec in CODECS:
        yield f"bomb of {BOMB_BYTES >> 20} MiB, {codec.name}", batch(compress(codec, bomb), 1, attributes=codec)
    many = Record(0, TIMESTAMP_MS, b"key", b"value", [("h", b"")] * 100_000)
    yield "100,000 headers", bytes(build_batch([many], compression=Compression.ZSTD))
    name = b"\xc3\x28\xff"
    section = _header(encode_varlong(len(name)) + name).encode()
    for codec in (Compression.NONE, *CODECS):
        yield f"header name not UTF-8, {codec.name}", batch(compress(codec, section), 1, attributes=codec)
