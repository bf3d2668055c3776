"""The records of `__transaction_state`, byte for byte Kafka's. A key without a value removes the transactional id."""

from __future__ import annotations

import functools
import struct
from typing import TYPE_CHECKING

from odradek.coordinator.runtime.coordinator_record import CoordinatorRecord
from odradek.coordinator.transactions.transaction import Transaction, TransactionState, TransactionVersion
from odradek.protocol.malformed import MalformedMessage
from odradek.protocol.schema import Message, Struct, array, int8, int16, int32, int64, string
from odradek.protocol.sentinels import NO_PRODUCER_ID
from odradek.protocol.varints import encode_unsigned_varint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.protocol.topic_partition import TopicPartition

KEY_VERSION = 0
VALUE_VERSION = 1  # as Kafka writes with transaction.version 1 and above
MOST_CACHED_PARTITIONS = 16  # of a transaction whose encoded partitions are kept

_VERSION = struct.Struct(">h")
_pack_head = struct.Struct(">hqhib").pack  # version of the value, producer id and epoch, timeout, state
_pack_times = struct.Struct(">qq").pack
_pack_id_tag = struct.Struct(">bbq").pack
_pack_version_tag = struct.Struct(">bbh").pack
_ID_BYTES = 8
_NULL_ARRAY = b"\x00"
_COUNTS = [bytes([count]) for count in range(4)]


class TransactionLogKey(Message):
    transactional_id: str = string()


class PartitionsSchema(Struct):
    topic: str = string()
    partition_ids: list[int] = array(int32())


class TransactionLogValue(Message, versions=(0, 1), flexible=1):
    producer_id: int = int64()
    previous_producer_id: int = int64(versions="1+", default=-1, tag=0, tagged="1+")
    next_producer_id: int = int64(versions="1+", default=-1, tag=1, tagged="1+")
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: list[PartitionsSchema] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16(versions="1+", default=0, tag=2, tagged="1+")


def transaction_record(transactional_id: str, transaction: Transaction) -> CoordinatorRecord:
    return CoordinatorRecord(transaction_key(transactional_id), transaction_value(transaction))


def transaction_tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(transaction_key(transactional_id), None)


@functools.lru_cache(maxsize=4096)
def transaction_key(transactional_id: str) -> bytes:
    return _join(KEY_VERSION, TransactionLogKey(transactional_id=transactional_id))


def transaction_value(transaction: Transaction) -> bytes:
    """A transaction without partitions has null in their place where it has not begun, as in Kafka. The same bytes as
    `TransactionLogValue` encodes, in a fraction of the time (a test compares them): a transaction has three records."""
    partitions = transaction.partitions
    if transaction.state is TransactionState.EMPTY:
        encoded_partitions = _NULL_ARRAY
    elif len(partitions) <= MOST_CACHED_PARTITIONS:
        encoded_partitions = _encode_few_partitions(partitions)
    else:
        encoded_partitions = _encode_partitions(partitions)
    head = _pack_head(
        VALUE_VERSION,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.timeout_ms,
        transaction.state,
    )
    times = _pack_times(transaction.last_update_ms, transaction.start_ms)
    return head + encoded_partitions + times + _encode_tags(transaction)


def _encode_tags(transaction: Transaction) -> bytes:
    """The tagged fields that differ from their defaults."""
    count, tags = 0, b""
    if transaction.previous_producer_id != NO_PRODUCER_ID:
        count, tags = 1, _pack_id_tag(0, _ID_BYTES, transaction.previous_producer_id)
    if transaction.next_producer_id != NO_PRODUCER_ID:
        count, tags = count + 1, tags + _pack_id_tag(1, _ID_BYTES, transaction.next_producer_id)
    if transaction.client_version:
        count, tags = count + 1, tags + _pack_version_tag(2, _VERSION.size, transaction.client_version)
    return _COUNTS[count] + tags


@functools.lru_cache(maxsize=1024)
def _encode_few_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    return _encode_partitions(partitions)


def _encode_partitions(partitions: frozenset[TopicPartition]) -> bytes:
    """Encodes the partitions as an array of `PartitionsSchema`."""
    topics = by_topic(partitions)
    parts = [encode_unsigned_varint(len(topics) + 1)]
    for topic, indexes in topics.items():
        name = topic.encode()
        parts += (encode_unsigned_varint(len(name) + 1), name, encode_unsigned_varint(len(indexes) + 1))
        parts += (struct.pack(f">{len(indexes)}i", *indexes), _COUNTS[0])
    return b"".join(parts)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions as the protocol lists them, in a stable order."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def read_transactional_id(key: bytes) -> str | None:
    """None for a key of a later version, which a newer broker wrote."""
    if _version_of(key) != KEY_VERSION:
        return None
    return TransactionLogKey.decode(memoryview(key), _VERSION.size, KEY_VERSION).transactional_id


def read_transaction(value: bytes) -> Transaction:
    """Raises MalformedMessage."""
    version = _version_of(value)
    smallest, largest = TransactionLogValue.versions
    if not smallest <= version <= largest:
        raise MalformedMessage(f"the value of a transaction has version {version}")
    found = TransactionLogValue.decode(memoryview(value), _VERSION.size, version)
    try:
        state = TransactionState(found.transaction_status)
        client_version = TransactionVersion(found.client_transaction_version)
    except ValueError as problem:
        raise MalformedMessage(str(problem)) from None
    return Transaction(
        producer_id=found.producer_id,
        previous_producer_id=found.previous_producer_id,
        next_producer_id=found.next_producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (each.topic, index) for each in found.transaction_partitions or () for index in each.partition_ids
        ),
        last_update_ms=found.transaction_last_update_timestamp_ms,
        start_ms=found.transaction_start_timestamp_ms,
        client_version=client_version,
    )


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage(f"a record of a transaction has {len(data)} bytes")
    (version,) = _VERSION.unpack_from(data)
    return int(version)


def _join(version: int, message: Message) -> bytes:
    return _VERSION.pack(version) + b"".join(bytes(part) for part in message.encode(version))  # type: ignore[arg-type]  # these messages hold no slices
