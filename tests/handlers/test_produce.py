"""Produce: what is appended, what is refused with which error, and when it is acknowledged."""

from uuid import UUID

import pytest

from odradek.handlers.context import CloseConnection
from odradek.handlers.produce import CONVERSION_THROTTLE_MS
from odradek.protocol.batch import read_batch_header, set_append_time
from odradek.protocol.compression import Compression
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.protocol.records import Record, build_batch
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    BY_NAME,
    NOW_MS,
    TOPIC_RESOURCE,
    alter_configs,
    base_offsets,
    batch,
    create_topic,
    fetch,
    list_offset,
    produce,
    produce_request,
)

UNKNOWN_ID = UUID(int=0xABCDEF)


# --- acks


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_batch_has_its_offset(broker: AnyBroker, name: str, acks: int) -> None:
    create_topic(broker, name)
    first, second = (produce(broker, name, batch(b"a", b"b"), acks=acks) for _ in range(2))
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (ErrorCode.NONE, 0, -1)
    assert (second.base_offset, second.log_start_offset) == (2, 0)


def test_acks_0_has_no_answer_and_is_appended(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    broker.send(produce_request([(name, 0, batch())], acks=0), BY_NAME)
    broker.settle(lambda: list_offset(broker, name, -1).offset == 1)


@pytest.mark.parametrize("partition", [0, 1])
def test_acks_0_to_what_cannot_be_appended_closes_the_connection(broker: AnyBroker, name: str, partition: int) -> None:
    create_topic(broker, name)
    wrong = batch() if partition else batch()[:-1]
    with pytest.raises(CloseConnection):
        broker.send(produce_request([(name, 0, batch()), (name, partition, wrong)], acks=0), BY_NAME)
    assert list_offset(broker, name, -1).offset == 1, "what could be appended was"


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused_and_nothing_is_appended(broker: AnyBroker, name: str, acks: int) -> None:
    create_topic(broker, name)
    answer = produce(broker, name, acks=acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert produce(broker, name, partition=5, acks=acks).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, f"{name}-not", acks=acks).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(broker, name, -1).offset == 0


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_topic_with_one_replica_is_never_asked_for_two(broker: AnyBroker, name: str, acks: int) -> None:
    """Kafka's effective minimum: `min.insync.replicas`, but no more than there are replicas."""
    create_topic(broker, name, min_insync_replicas="2")
    assert produce(broker, name, acks=acks).error_code == ErrorCode.NONE


# --- where to


def test_what_is_not_there_is_unknown(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    assert produce(broker, f"{name}-not").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, "..").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for index in (1, -1, 2**31 - 1):
        assert produce(broker, name, partition=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert produce(broker, topic_id, partition=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for unknown in (UNKNOWN_ID, UUID(int=0)):
        refused = produce(broker, unknown)
        assert (refused.error_code, refused.base_offset) == (ErrorCode.UNKNOWN_TOPIC_ID, -1)


def test_topics_are_named_by_id_from_version_13(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    answer = broker.call(produce_request([(topic_id, 0, batch())]), ProduceResponse, 13)
    assert answer.responses[0].topic_id == topic_id
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    assert list_offset(broker, name, -1).offset == 1


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends(broker: AnyBroker, name: str, version: int) -> None:
    create_topic(broker, name)
    assert produce(broker, name, version=version).error_code == ErrorCode.NONE


def test_one_request_fills_several_topics_and_one_refusal_harms_no_other(broker: AnyBroker, name: str) -> None:
    other = f"{name}-other"
    create_topic(broker, name, 2)
    create_topic(broker, other)
    request = produce_request(
        [
            (name, 0, batch(b"a")),
            (name, 1, batch(b"b", b"c")),
            (name, 2, batch()),
            (f"{name}-not", 0, batch()),
            (other, 0, batch()[:-1]),
        ]
    )
    answer = broker.call(request, ProduceResponse, BY_NAME)
    reported = {
        (topic.name, each.index): (ErrorCode(each.error_code), each.base_offset)
        for topic in answer.responses
        for each in topic.partition_responses
    }
    assert reported == {
        (name, 0): (ErrorCode.NONE, 0),
        (name, 1): (ErrorCode.NONE, 0),
        (name, 2): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (f"{name}-not", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        (other, 0): (ErrorCode.INVALID_RECORD, -1),
    }
    assert [list_offset(broker, name, -1, partition=index).offset for index in (0, 1)] == [1, 2]


def test_a_request_of_nothing_is_answered_with_nothing(broker: AnyBroker) -> None:
    assert broker.call(produce_request([]), ProduceResponse, BY_NAME).responses == []


# --- what


@pytest.mark.parametrize("records", [None, b""])
def test_a_partition_without_a_batch_is_refused(broker: AnyBroker, name: str, records: bytes | None) -> None:
    create_topic(broker, name)
    empty = PartitionProduceData(index=0, records=None if records is None else memoryview(records))
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=name, partition_data=[empty])])
    if broker.is_apache_kafka and records is None:
        pytest.skip("Apache Kafka closes the connection")
    refused = broker.call(request, ProduceResponse, BY_NAME).responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.INVALID_RECORD


def test_two_batches_for_one_partition_are_refused(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    assert produce(broker, name, batch() + batch()).error_code == ErrorCode.INVALID_RECORD


def test_a_repeated_batch_is_stored_once_and_answered_alike(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    for sequence in (0, 2):
        assert produce(broker, name, batch(b"a", b"b", producer=(77, 0, sequence))).base_offset == sequence
    for _ in range(2):
        again = produce(broker, name, batch(b"a", b"b", producer=(77, 0, 0)))
        assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    gap = produce(broker, name, batch(b"a", producer=(77, 0, 9)))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert list_offset(broker, name, -1).offset == 4


def test_append_time_is_reported_and_stored(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, message_timestamp_type="LogAppendTime")
    reported = produce(broker, name, batch(b"a", b"b", timestamps=[5, 7])).log_append_time_ms
    assert reported >= NOW_MS
    records = fetch(broker, name).records
    assert isinstance(records, memoryview)
    header = read_batch_header(records)
    assert header.uses_log_append_time
    assert header.max_timestamp == reported


@pytest.mark.parametrize("setting", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_codec_stores_every_batch_in_it(broker: AnyBroker, name: str, setting: str) -> None:
    create_topic(broker, name, compression_type=setting)
    for codec in Compression:
        assert produce(broker, name, batch(b"a" * 100, b"b", compression=codec)).error_code == ErrorCode.NONE
    stored = Compression.NONE if setting == "uncompressed" else Compression[setting.upper()]
    for offset in range(0, 10, 2):
        records = fetch(broker, name, offset, max_bytes=1).records
        assert isinstance(records, memoryview)
        assert (read_batch_header(records).base_offset, read_batch_header(records).compression) == (offset, stored)


def test_a_compacted_topic_takes_no_record_without_a_key(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact")
    refused = produce(broker, name, batch(key=None))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert produce(broker, name, batch(key=b"")).error_code == ErrorCode.NONE
    assert list_offset(broker, name, -1).offset == 1


def test_a_changed_limit_holds_for_the_next_batch(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    large = batch(b"x" * 2000)
    assert produce(broker, name, large).error_code == ErrorCode.NONE
    assert alter_configs(broker, TOPIC_RESOURCE, name, max_message_bytes="1000") is ErrorCode.NONE
    broker.settle(lambda: produce(broker, name, large).error_code == ErrorCode.MESSAGE_TOO_LARGE)
    assert produce(broker, name).error_code == ErrorCode.NONE
    assert alter_configs(broker, TOPIC_RESOURCE, name, max_message_bytes=None) is ErrorCode.NONE
    broker.settle(lambda: produce(broker, name, large).error_code == ErrorCode.NONE)


@pytest.mark.parametrize("version", [8, 12, 13])
def test_a_transactional_batch_needs_a_transactional_id(simulated: SimulatedBroker, name: str, version: int) -> None:
    topic_id = create_topic(simulated, name)
    topic = topic_id if version >= 13 else name
    marked = produce(simulated, topic, batch(producer=(7, 0, 0), transactional=True), version=version)
    assert (marked.error_code, marked.base_offset) == (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
    assert list_offset(simulated, name, -1).offset == 0
    named = produce(simulated, topic, batch(producer=(7, 0, 0)), version=version, transactional_id="tx")
    assert (named.error_code, named.base_offset) == (ErrorCode.NONE, 0)


def test_a_broken_batch_is_called_broken_whatever_bit_it_has(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    marked = batch(producer=(7, 0, 0), transactional=True)
    assert produce(simulated, name, marked[:20]).error_code != ErrorCode.INVALID_TXN_STATE
    marked[16] = 1
    assert produce(simulated, name, marked).error_code == ErrorCode.INVALID_RECORD


# --- who is to blame


def blamed(refused: PartitionProduceResponse) -> list[int]:
    assert all(each.batch_index_error_message for each in refused.record_errors)
    return [each.batch_index for each in refused.record_errors]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_records_out_of_time_are_named(broker: AnyBroker, name: str, compression: Compression) -> None:
    create_topic(broker, name, message_timestamp_after_max_ms="3600000", message_timestamp_before_max_ms="0")
    old, far = NOW_MS - 10 * 365 * 86_400_000, NOW_MS + 10 * 365 * 86_400_000
    refused = produce(broker, name, batch(b"a", b"b", b"c", timestamps=[old, -1, far], compression=compression))
    assert (refused.error_code, refused.base_offset, refused.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, -1, 0)
    assert blamed(refused) == [0, 2]
    assert refused.error_message


def test_records_without_a_key_are_named_where_keys_are_needed(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact")
    records = [Record(offset, NOW_MS, b"key" if offset % 2 else None, b"value") for offset in range(5)]
    refused = produce(broker, name, build_batch(records))
    assert (refused.error_code, refused.base_offset, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, -1, 0)
    assert blamed(refused) == [0, 2, 4]
    assert refused.error_message


def test_both_faults_are_named_together(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact")
    far = NOW_MS + 10 * 365 * 86_400_000
    records = [Record(0, NOW_MS, None, b""), Record(1, NOW_MS, b"key", b""), Record(2, far, b"key", b"")]
    refused = produce(broker, name, build_batch(records))
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert blamed(refused) == [0, 2]


def test_every_record_of_a_batch_that_sets_append_time_is_named(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, message_timestamp_type="LogAppendTime")
    stamped = batch(b"a", b"b")
    set_append_time(memoryview(stamped), 0, NOW_MS)
    refused = produce(broker, name, stamped)
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP
    assert blamed(refused) == [0, 1]


def test_a_batch_at_fault_has_no_record_to_blame(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    for wrong in (batch()[:-1], batch() + batch()):
        refused = produce(broker, name, wrong)
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, -1)
        assert (blamed(refused), refused.error_message) == ([], None)


def test_what_is_too_large_is_reported_the_limit(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name, max_message_bytes="100")
    refused = produce(simulated, name, large := batch(b"x" * 200))
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert refused.error_message == f"a batch of {len(large)} bytes where max.message.bytes allows 100"


def test_versions_without_words_get_the_code_alone(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, cleanup_policy="compact")
    refused = produce(broker, name, batch(key=None), version=7)
    assert (refused.error_code, refused.record_errors) == (ErrorCode.INVALID_RECORD, [])


# --- on the disk


def test_flush_messages_puts_a_batch_on_the_disk_before_it_is_acknowledged(
    simulated: SimulatedBroker, name: str
) -> None:
    create_topic(simulated, name, flush_messages="1")
    partition = simulated.partition(name)
    assert produce(simulated, name, batch(b"a", b"b")).error_code == ErrorCode.NONE
    assert partition.log.recovery_point_offset == 2
    simulated.send(produce_request([(name, 0, batch())], acks=0), BY_NAME)
    assert partition.log.recovery_point_offset == 3


def test_without_flush_messages_nothing_is_synced_for_an_answer(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    simulated.simulation.disk.sync_error = OSError("no sync was asked for")
    assert produce(simulated, name).error_code == ErrorCode.NONE


def test_a_failed_flush_is_a_storage_error(
    simulated: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(simulated, name, 2, flush_messages="1")
    simulated.simulation.disk.sync_error = OSError("the disk is gone")
    refused = produce(simulated, name)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    with pytest.raises(CloseConnection):
        simulated.send(produce_request([(name, 0, batch())], acks=0), BY_NAME)
    simulated.simulation.disk.sync_error = None
    assert produce(simulated, name).error_code == ErrorCode.KAFKA_STORAGE_ERROR, "the state of the disk is unknown"
    assert produce(simulated, name, partition=1).error_code == ErrorCode.KAFKA_STORAGE_ERROR, "all of its directory"
    assert "the disk is gone" in str([record.__dict__ for record in caplog.records])
    caplog.clear()


def test_a_full_disk_refuses_one_batch_and_leaves_the_log_whole(
    simulated: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(simulated, name)
    disk = simulated.simulation.disk
    assert produce(simulated, name, batch(b"first")).base_offset == 0
    disk.capacity_bytes = 1 << 40
    disk.capacity_bytes -= disk.room_bytes() - 10
    refused = produce(simulated, name, batch(b"x" * 1000))
    assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    caplog.clear()
    disk.capacity_bytes = None
    assert produce(simulated, name, batch(b"second")).base_offset == 1
    assert base_offsets(fetch(simulated, name).records) == [0, 1]


def test_a_client_whose_compressed_records_were_refused_waits(simulated: SimulatedBroker, name: str) -> None:
    """To unpack them takes long: others are served in between."""
    create_topic(simulated, name, cleanup_policy="compact")
    refused = build_batch([Record(0, NOW_MS, None, b"no key")], compression=Compression.GZIP)
    answer = simulated.call(produce_request([(name, 0, refused)]), ProduceResponse, BY_NAME)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_RECORD
    assert (answer.throttle_time_ms, simulated.client.throttle_ms) == (
        CONVERSION_THROTTLE_MS,
        CONVERSION_THROTTLE_MS,
    )
    simulated.client.throttle_ms = 0
    plain = build_batch([Record(0, NOW_MS, None, b"no key")])
    answer = simulated.call(produce_request([(name, 0, plain)]), ProduceResponse, BY_NAME)
    assert (answer.throttle_time_ms, simulated.client.throttle_ms) == (0, 0)
