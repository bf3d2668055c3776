"""What a client can falsify in the header of a batch: what a broker refuses, corrects, or stores as it was sent.

Apache Kafka reads all records of a batch; the table in docs/batch-validation.md has the same rows."""

from dataclasses import dataclass
from typing import Any

import pytest

from odradek.protocol.batch import BatchHeader, read_batch_header
from odradek.protocol.compression import Compression, compress
from tests.clients.accepted_differences import BATCH_HEADERS, accepted_answers
from tests.clients.conftest import Target
from tests.clients.wire.batches import EPOCH_MS, Batch, plain_records
from tests.clients.wire.connection import Connection
from tests.clients.wire.fetching import fetch_records
from tests.clients.wire.requests import produce

ONE_CODEC = (Compression.NONE,)
AS_SENT = "stored as sent"
FUTURE_MS = 4_102_444_800_000  # the year 2100
LARGEST_INT32, LARGEST_INT64 = 2**31 - 1, 2**63 - 1
# What every broker assigns, and what follows from the other fields.
ASSIGNED = ("base_offset", "partition_leader_epoch", "crc")


@dataclass(frozen=True, slots=True)
class Falsified:
    what: str
    fields: dict[str, Any]
    outcome: str  # the error, or the fields that the stored header has otherwise
    values: int = 1
    codecs: tuple[Compression, ...] = (Compression.NONE, Compression.GZIP)

    def batch(self, codec: Compression) -> bytes:
        values = [b"value"] * self.values
        attributes = self.fields.get("attributes", 0) | codec
        records = compress(codec, plain_records(values))
        return Batch(**{"values": values, "records": records, **self.fields, "attributes": attributes}).encode()


LAST_MS = EPOCH_MS + 1  # of two records
FALSIFIED = [
    Falsified("nothing", {}, AS_SENT),
    Falsified("the leader epoch", {"leader_epoch": 99}, AS_SENT),
    Falsified("a base offset below zero", {"base_offset": -1}, "INVALID_RECORD"),
    Falsified("unused attributes", {"attributes": 0x4080}, AS_SENT),
    Falsified("the sign of the attributes", {"attributes": -0x8000}, AS_SENT),
    Falsified("the delete horizon", {"attributes": 0x40}, AS_SENT),
    Falsified("the append time", {"attributes": 0x08}, "attributes without 8"),
    Falsified(
        "a control batch of a producer",
        {"attributes": 0x20, "producer_id": 5, "producer_epoch": 0, "base_sequence": 0},
        "INVALID_RECORD",
        codecs=ONE_CODEC,
    ),
    Falsified("a transaction without a producer", {"attributes": 0x10}, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    Falsified(
        "the maximum of records without timestamps, as librdkafka does",
        {"timestamp_ms": -1, "max_timestamp_ms": 0},
        "max_timestamp -1",
        codecs=tuple(Compression),
    ),
    Falsified("a largest timestamp of 0", {"max_timestamp_ms": 0}, f"max_timestamp {LAST_MS}", 2),
    Falsified("a largest timestamp of -1", {"max_timestamp_ms": -1}, f"max_timestamp {LAST_MS}", 2),
    Falsified("a largest timestamp of -5", {"max_timestamp_ms": -5}, f"max_timestamp {LAST_MS}", 2),
    Falsified("timestamps of -5", {"timestamp_ms": -5}, "max_timestamp -1"),
    Falsified("a largest timestamp below the last", {"max_timestamp_ms": EPOCH_MS}, f"max_timestamp {LAST_MS}", 2),
    Falsified(
        "a largest timestamp after the last", {"max_timestamp_ms": EPOCH_MS + 1_000}, f"max_timestamp {LAST_MS}", 2
    ),
    Falsified("a largest timestamp in the future", {"max_timestamp_ms": FUTURE_MS}, f"max_timestamp {LAST_MS}", 2),
    Falsified(
        "records in the future, which the largest timestamp is not",
        {"timestamp_ms": FUTURE_MS, "max_timestamp_ms": EPOCH_MS},
        "INVALID_TIMESTAMP",
    ),
    Falsified(
        "timestamps past the largest number",
        {"timestamp_ms": LARGEST_INT64, "max_timestamp_ms": EPOCH_MS},
        "INVALID_TIMESTAMP",
    ),
    Falsified("a producer without an epoch", {"producer_id": 5, "base_sequence": 0}, AS_SENT, codecs=ONE_CODEC),
    Falsified(
        "a producer epoch below -1",
        {"producer_id": 5, "producer_epoch": -3, "base_sequence": 0},
        "INVALID_PRODUCER_EPOCH",
        codecs=ONE_CODEC,
    ),
    Falsified(
        "a sequence below -1",
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": -7},
        "INVALID_RECORD",
        codecs=ONE_CODEC,
    ),
    Falsified(
        "the largest sequence",
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": LARGEST_INT32},
        AS_SENT,
        2,
        codecs=ONE_CODEC,
    ),
    Falsified(
        "an epoch and a sequence without a producer",
        {"producer_epoch": 4, "base_sequence": 7},
        AS_SENT,
        codecs=ONE_CODEC,
    ),
    Falsified(
        "a producer id below -1",
        {"producer_id": -7, "producer_epoch": 4, "base_sequence": 7},
        AS_SENT,
        codecs=ONE_CODEC,
    ),
]


@pytest.mark.parametrize("falsified", FALSIFIED, ids=lambda falsified: falsified.what)
def test_falsified_header(falsified: Falsified, target: Target, connection: Connection, topic: str) -> None:
    expected = {falsified.outcome, *accepted_answers(target.name, falsified.what, BATCH_HEADERS)}
    for codec in falsified.codecs:
        batch = falsified.batch(codec)
        answer = produce(connection, topic, batch)
        assert _outcome(connection, topic, batch, answer.base_offset, answer.error) in expected, codec


def _outcome(connection: Connection, topic: str, batch: bytes, offset: int, error: str) -> str:
    if error != "NONE":
        return error
    fetched = fetch_records(connection, topic, offset)
    sent, stored = read_batch_header(batch), read_batch_header(fetched)
    assert fetched[61:] == batch[61:]
    changes = {name for name in BatchHeader._fields if getattr(sent, name) != getattr(stored, name)} - {*ASSIGNED}
    if not changes:
        return AS_SENT
    (name,) = changes
    if name == "attributes":
        return f"attributes without {sent.attributes - stored.attributes}"
    return f"{name} {getattr(stored, name)}"
