"""Batches that no client would send, and how a broker refuses them; and what it changes in those that it takes."""

from dataclasses import dataclass
from typing import Any

import cramjam
import pytest

from odradek.protocol.compression import Compression, compress
from tests.clients.accepted_differences import BATCHES, accepted_answers
from tests.clients.conftest import Target
from tests.clients.wire.batches import Batch, plain_records
from tests.clients.wire.connection import Connection
from tests.clients.wire.fetching import fetch_records
from tests.clients.wire.requests import list_offset, produce

GZIP, ZSTD = 1, 4
CONTROL, TRANSACTIONAL = 0x20, 0x10
VALUES = [b"again " * 10] * 3
CODECS = list(Compression)[1:]
RUBBISH_AFTER_FIRST = plain_records(VALUES[:1]) + b"rubbish" * 10
# Of no value: attributes, timestamp delta, offset delta, key, value, headers.
AT_OFFSET_77 = bytes([14, 0, 0, 0x9A, 0x01, 1, 1, 0])


def compressed(codec: int, values: list[bytes], **fields: Any) -> Batch:
    compress = {GZIP: cramjam.gzip.compress, ZSTD: cramjam.zstd.compress}[codec]
    return Batch(values=values, attributes=codec, records=bytes(compress(plain_records(values))), **fields)


def gzip(records: bytes) -> bytes:
    return bytes(cramjam.gzip.compress(records))


def cut_off(codec: Compression) -> bytes:
    values = [b"value %d" % each for each in range(500)]
    return Batch(values=values, attributes=codec, records=compress(codec, plain_records(values))[:-9]).encode()


@dataclass(frozen=True, slots=True)
class Refusal:
    what: str
    records: bytes
    error: str
    version: int = 7
    acks: int = -1


ONE = Batch().encode()
REFUSALS = [
    Refusal("a wrong CRC", Batch(crc_error=1).encode(), "CORRUPT_MESSAGE"),
    Refusal("magic 1", Batch(magic=1).encode(), "INVALID_RECORD"),
    Refusal("magic 0", Batch(magic=0).encode(), "INVALID_RECORD"),
    Refusal("magic 3", Batch(magic=3).encode(), "CORRUPT_MESSAGE"),
    Refusal("a count above the records", Batch(record_count=2).encode(), "INVALID_RECORD"),
    Refusal("a count below zero", Batch(record_count=-1).encode(), "INVALID_RECORD"),
    Refusal("no records", Batch(values=()).encode(), "INVALID_RECORD"),
    Refusal("a last offset past the count", Batch(last_offset_delta=5).encode(), "INVALID_RECORD"),
    Refusal("a base offset", Batch(base_offset=7).encode(), "INVALID_RECORD"),
    Refusal("a control batch", Batch(attributes=CONTROL).encode(), "INVALID_RECORD"),
    Refusal("a producer without a sequence", Batch(producer_id=1, producer_epoch=0).encode(), "INVALID_RECORD"),
    Refusal(
        "a transaction's batch from a producer without transactions",
        Batch(attributes=TRANSACTIONAL, producer_id=1, producer_epoch=0, base_sequence=0).encode(),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    ),
    Refusal(
        "an unknown codec",
        Batch(attributes=6).encode(),
        "UNKNOWN_SERVER_ERROR",
    ),
    Refusal("a length past the end", Batch(length_error=1).encode(), "INVALID_RECORD"),
    Refusal(
        "a length before the end",
        Batch(length_error=-1).encode(),
        "CORRUPT_MESSAGE",
    ),
    Refusal("two batches", ONE * 2, "INVALID_RECORD"),
    Refusal("nothing", b"", "INVALID_RECORD"),
    Refusal("a torn batch", ONE[:-3], "INVALID_RECORD"),
    Refusal("too little for a header", b"\0" * 20, "CORRUPT_MESSAGE"),
    *(
        Refusal(
            f"rubbish for {codec.name.lower()}", Batch(attributes=codec, records=b"x").encode(), "UNKNOWN_SERVER_ERROR"
        )
        for codec in CODECS
    ),
    *(Refusal(f"{codec.name.lower()} that is cut off", cut_off(codec), "UNKNOWN_SERVER_ERROR") for codec in CODECS),
    Refusal("rubbish for records", Batch(records=b"\0\1\2").encode(), "INVALID_RECORD"),
    Refusal("more rubbish for records", Batch(records=b"uncompressed rubbish").encode(), "INVALID_RECORD"),
    Refusal(
        "rubbish after the first record", Batch(values=VALUES, records=RUBBISH_AFTER_FIRST).encode(), "INVALID_RECORD"
    ),
    Refusal("bytes after the record", Batch(records=plain_records([b"v"]) + b"\0").encode(), "INVALID_RECORD"),
    Refusal("more records than counted", Batch(records=plain_records([b"v", b"w"])).encode(), "INVALID_RECORD"),
    Refusal("a key past the end of its record", Batch(records=b"\x12\0\0\0\x7ebytes").encode(), "INVALID_RECORD"),
    Refusal(
        "fewer compressed records than counted",
        compressed(GZIP, VALUES, record_count=4, last_offset_delta=3).encode(),
        "INVALID_RECORD",
    ),
    Refusal(
        "far fewer compressed records than counted",
        compressed(GZIP, VALUES, record_count=100, last_offset_delta=99).encode(),
        "INVALID_RECORD",
    ),
    Refusal(
        "more compressed records than counted",
        compressed(GZIP, VALUES, record_count=1, last_offset_delta=0).encode(),
        "INVALID_RECORD",
    ),
    Refusal(
        "a compressed record at another offset",
        Batch(attributes=GZIP, records=gzip(AT_OFFSET_77)).encode(),
        "UNKNOWN_SERVER_ERROR",
    ),
    Refusal(
        "compressed records at one offset",
        Batch(values=VALUES[:2], attributes=GZIP, records=gzip(plain_records(VALUES[:1]) * 2)).encode(),
        "UNKNOWN_SERVER_ERROR",
    ),
    Refusal("acks 2", ONE, "INVALID_REQUIRED_ACKS", acks=2),
    Refusal("zstd before version 7", compressed(ZSTD, VALUES).encode(), "UNSUPPORTED_COMPRESSION_TYPE", version=6),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.what)
def test_bad_batch_is_refused_and_nothing_is_written(
    refusal: Refusal, target: Target, connection: Connection, topic: str
) -> None:
    answer = produce(connection, topic, refusal.records, acks=refusal.acks, version=refusal.version)
    assert answer.error in {refusal.error, *accepted_answers(target.name, refusal.what, BATCHES)}
    if answer.error == "NONE":
        return  # accepted, and said why in accepted_differences
    assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
    assert list_offset(connection, topic, -1)[2] == 0


def test_record_at_another_offset_is_stored_by_kafka_if_it_is_not_compressed(
    target: Target, connection: Connection, topic: str
) -> None:
    error = produce(connection, topic, Batch(records=AT_OFFSET_77).encode()).error
    assert error in {"NONE", *accepted_answers(target.name, "a record at another offset", BATCHES)}


def test_batch_is_kept_as_it_came_but_for_offset_and_epoch(connection: Connection, topic: str) -> None:
    sent = [Batch(values=VALUES).encode(), compressed(GZIP, VALUES).encode(), compressed(ZSTD, VALUES).encode()]
    for each in sent:
        assert produce(connection, topic, each).error == "NONE"
    kept = fetch_records(connection, topic)
    expected = [
        Batch(values=VALUES, base_offset=0, leader_epoch=0).encode(),
        compressed(GZIP, VALUES, base_offset=3, leader_epoch=0).encode(),
        compressed(ZSTD, VALUES, base_offset=6, leader_epoch=0).encode(),
    ]
    assert kept == b"".join(expected)
