"""Fetch: which bytes come, and how many."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from odradek.log.partition_log import PartitionLog
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchPartition, FetchTopic
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import (
    FIVE,
    TOPIC_RESOURCE,
    alter_configs,
    base_offsets,
    create_topic,
    delete_records,
    fetch,
    fetch_all,
    fetch_request,
    partitions_of,
    produce,
    size_of,
    sizes,
    topic_of_fives,
    wanted,
)

SIZE = len(FIVE)
LONG_MS = 10_000
UNKNOWN_ID = UUID(int=0xABCDEF)


@pytest.fixture
def topic(broker: AnyBroker, name: str) -> str:
    return topic_of_fives(broker, name)


# --- where it begins


@pytest.mark.parametrize(("offset", "expected"), [(0, [0, 5, 10, 15]), (7, [5, 10, 15]), (15, [15]), (19, [15])])
def test_the_batch_that_holds_the_offset_comes_first(
    broker: AnyBroker, topic: str, offset: int, expected: list[int]
) -> None:
    reported = fetch(broker, topic, offset)
    assert base_offsets(reported.records) == expected
    assert (reported.high_watermark, reported.last_stable_offset, reported.log_start_offset) == (20, 20, 0)


def test_at_the_end_there_is_nothing(broker: AnyBroker, topic: str) -> None:
    for partition, end in ((0, 20), (2, 0)):
        reported = fetch(broker, topic, end, partition=partition)
        assert (reported.error_code, size_of(reported), reported.high_watermark) == (ErrorCode.NONE, 0, end)


@pytest.mark.parametrize("offset", [-1, 21, 2**62])
def test_an_offset_outside_the_log_is_out_of_range(broker: AnyBroker, topic: str, offset: int) -> None:
    reported = fetch(broker, topic, offset)
    assert (reported.error_code, size_of(reported)) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)
    assert (reported.high_watermark, reported.last_stable_offset, reported.log_start_offset) == (-1, -1, -1)


def test_deleted_records_are_out_of_range(broker: AnyBroker, topic: str) -> None:
    assert delete_records(broker, topic, 7).low_watermark == 7
    assert fetch(broker, topic, 6).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    reported = fetch(broker, topic, 7)
    assert base_offsets(reported.records) == [5, 10, 15], "a batch is whole, though its first records are gone"
    assert reported.log_start_offset == 7


def test_a_fetch_goes_on_over_segment_borders(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0")
    for _ in range(12):
        assert produce(broker, name, FIVE).error_code == ErrorCode.NONE
    seen: list[int] = []
    offset = fetches = 0
    while offset < 60:
        found = base_offsets(fetch(broker, name, offset).records)
        assert found[0] == offset
        seen += found
        offset = seen[-1] + 5
        fetches += 1
    assert seen == list(range(0, 60, 5))
    assert fetches > 1, "there are several segments"


# --- how much


@pytest.mark.parametrize("limit", [0, 1, SIZE - 1, SIZE])
@pytest.mark.parametrize("offset", [0, 7])
def test_the_first_batch_is_whole_however_small_the_limits(
    broker: AnyBroker, topic: str, limit: int, offset: int
) -> None:
    for each, total in ((limit, 1 << 20), (1 << 20, limit), (limit, limit)):
        reported = fetch_all(broker, fetch_request([wanted(topic, offset, max_bytes=each)], max_bytes=total))
        assert sizes(reported) == [SIZE]


def test_only_the_first_partition_with_data_is_over_the_limit(broker: AnyBroker, topic: str) -> None:
    all_three = [wanted(topic, partition=2), wanted(topic, partition=1), wanted(topic)]
    assert sizes(fetch_all(broker, fetch_request(all_three, max_bytes=1))) == [0, SIZE, 0]


def test_the_limit_of_a_partition_cuts_what_follows_the_first_batch(broker: AnyBroker, topic: str) -> None:
    assert size_of(fetch(broker, topic, max_bytes=SIZE + 100)) == SIZE + 100


def test_a_batch_that_does_not_fit_any_more_is_left_out_whole(broker: AnyBroker, topic: str) -> None:
    """Kafka's consumer gives up when it is sent bytes that hold no whole batch."""
    both = [wanted(topic), wanted(topic, partition=1, max_bytes=SIZE - 1)]
    assert sizes(fetch_all(broker, fetch_request(both))) == [4 * SIZE, 0]
    both = [wanted(topic, 15), wanted(topic, partition=1)]
    assert sizes(fetch_all(broker, fetch_request(both, max_bytes=2 * SIZE - 1))) == [SIZE, 0]


def test_the_total_limit_counts_over_all_partitions(broker: AnyBroker, topic: str) -> None:
    both = [wanted(topic, partition=1), wanted(topic)]
    assert sizes(fetch_all(broker, fetch_request(both, max_bytes=3 * SIZE + 10))) == [SIZE, 2 * SIZE + 10]
    assert sizes(fetch_all(broker, fetch_request(both, max_bytes=2 * SIZE))) == [SIZE, SIZE]
    assert sizes(fetch_all(broker, fetch_request(both, max_bytes=SIZE))) == [SIZE, 0]


def test_the_brokers_own_limit_counts_too(name: str) -> None:
    broker = SimulatedBroker(fetch_max_bytes="1024")
    create_topic(broker, name)
    for _ in range(4):
        produce(broker, name, FIVE)
    assert sizes(fetch_all(broker, fetch_request([wanted(name)]))) == [max(1024, SIZE)]
    broker.close()


# --- what is not there


def test_what_is_not_there_is_unknown(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    produce(broker, name)
    for index in (1, -1):
        assert fetch(broker, name, partition=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert fetch(broker, topic_id, partition=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(broker, f"{name}-not").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fetch(broker, UNKNOWN_ID).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_an_error_of_one_partition_is_reported_at_once_with_the_data_of_others(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    request = fetch_request([wanted(topic, 99), wanted(topic, partition=1)], max_wait_ms=LONG_MS, min_bytes=1 << 20)
    reported = partitions_of(fetch_all(broker, request))
    assert [(each.error_code, size_of(each)) for each in reported] == [(ErrorCode.OFFSET_OUT_OF_RANGE, 0), (0, SIZE)]
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_topics_are_named_by_id_from_version_13(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    produce(broker, name)
    for version in (13, 15, 18):
        answer = fetch_all(broker, fetch_request([wanted(topic_id)]), version)
        assert answer.responses[0].topic_id == topic_id
        assert base_offsets(answer.responses[0].partitions[0].records) == [0]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_by_name_gives_records(broker: AnyBroker, topic: str, version: int) -> None:
    answer = fetch_all(broker, fetch_request([wanted(topic, 15)]), version)
    assert answer.responses[0].topic == topic
    assert sizes(answer) == [SIZE]


# --- epochs


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_a_client_ahead_of_the_leaders_epoch_must_wait(
    broker: AnyBroker, topic: str, epoch: int, error: ErrorCode
) -> None:
    assert fetch(broker, topic, epoch=epoch).error_code == error


def test_a_client_behind_the_leaders_epoch_is_fenced(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    produce(simulated, name)
    simulated.restart()
    assert fetch(simulated, name, epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert fetch(simulated, name, epoch=1).error_code == ErrorCode.NONE
    assert fetch(simulated, name, epoch=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_who_is_fenced_is_reported_the_leader_and_its_epoch(simulated: SimulatedBroker, name: str) -> None:
    topic_id = create_topic(simulated, name)
    simulated.restart()
    answer = fetch_all(simulated, fetch_request([wanted(topic_id, epoch=0)]), 16)
    assert partitions_of(answer)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    hint = partitions_of(answer)[0].current_leader
    assert (hint.leader_id, hint.leader_epoch) == (0, 1)
    assert [(each.node_id, each.host, each.port) for each in answer.node_endpoints] == [(0, "simulated", 9092)]
    before_hints = fetch_all(simulated, fetch_request([wanted(topic_id, epoch=0)]), 15)
    assert partitions_of(before_hints)[0].current_leader.leader_id == -1


def test_who_is_not_fenced_gets_no_hint(broker: AnyBroker, name: str) -> None:
    topic_id = create_topic(broker, name)
    for epoch, error in ((0, ErrorCode.NONE), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        answer = fetch_all(broker, fetch_request([wanted(topic_id, epoch=epoch)]), 18)
        reported = partitions_of(answer)[0]
        assert (reported.error_code, reported.current_leader.leader_id, answer.node_endpoints) == (error, -1, [])


def test_a_reader_whose_history_differs_is_reported_where(simulated: SimulatedBroker, name: str) -> None:
    """Offsets 0 to 4 are of epoch 0, 5 to 9 of epoch 1, 10 to 14 of epoch 2."""
    create_topic(simulated, name)
    for life in range(3):
        if life:
            simulated.restart()
        produce(simulated, name, FIVE)
    for offset, epoch in ((5, 0), (3, 0), (10, 1), (14, 2), (10, 2)):
        reported = fetch(simulated, name, offset, last_epoch=epoch)
        assert (reported.error_code, reported.diverging_epoch.epoch) == (ErrorCode.NONE, -1)
    for offset, epoch, end in ((6, 0, 5), (14, 1, 10)):
        reported = fetch(simulated, name, offset, last_epoch=epoch)
        assert (reported.diverging_epoch.epoch, reported.diverging_epoch.end_offset) == (epoch, end)
        assert size_of(reported) == 0
    assert fetch(simulated, name, 7, last_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_divergence_is_reported_without_waiting(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    produce(simulated, name, FIVE)
    simulated.restart()
    produce(simulated, name, FIVE)
    began = simulated.elapsed_ms()
    fetch_all(simulated, fetch_request([wanted(name, 10, last_epoch=0)], max_wait_ms=LONG_MS))
    assert simulated.elapsed_ms() - began < LONG_MS


# --- isolation


@pytest.mark.parametrize("level", [0, 1])
def test_read_committed_gets_a_list_of_aborted_transactions(broker: AnyBroker, topic: str, level: int) -> None:
    reported = partitions_of(fetch_all(broker, fetch_request([wanted(topic)], isolation_level=level)))[0]
    assert reported.aborted_transactions == ([] if level else None)
    assert (size_of(reported), reported.last_stable_offset) == (4 * SIZE, 20)


@pytest.mark.parametrize("version", [4, 12, 18])
def test_a_replica_is_reported_that_this_broker_does_not_lead_it(broker: AnyBroker, name: str, version: int) -> None:
    topic_id = create_topic(broker, name)
    produce(broker, name)
    request = fetch_request([wanted(topic_id if version > 12 else name)], replica_id=7)
    answer = fetch_all(broker, request, version)
    reported = partitions_of(answer)[0]
    assert (reported.error_code, size_of(reported)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 0)
    assert answer.node_endpoints == [], "there is nowhere else to go"


# --- odd cases


def test_the_same_partition_twice_is_one(broker: AnyBroker, topic: str) -> None:
    both = [wanted(topic), wanted(topic, 10)]
    reported = partitions_of(fetch_all(broker, fetch_request(both)))
    assert [base_offsets(each.records) for each in reported] == [[10, 15]]


def test_partitions_of_one_topic_come_together(broker: AnyBroker, topic: str) -> None:
    partitions = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in (2, 0, 1)]
    answer = fetch_all(broker, fetch_request([FetchTopic(topic=topic, partitions=partitions)]))
    assert [each.partition_index for each in answer.responses[0].partitions] == [2, 0, 1]


def test_a_smaller_limit_at_run_time_does_not_hide_large_batches(broker: AnyBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name, FIVE)
    assert alter_configs(broker, TOPIC_RESOURCE, name, max_message_bytes="100") is ErrorCode.NONE
    assert base_offsets(fetch(broker, name).records) == [0]


def test_a_failed_read_is_a_storage_error_of_its_partition(
    simulated: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(simulated, name, 2)
    for partition in (0, 1):
        produce(simulated, name, FIVE, partition=partition)
    broken = simulated.partition(name, 0)
    monkeypatch.setattr(type(broken.log), "read", _failing_for(broken.log, type(broken.log).read))
    reported = partitions_of(fetch_all(simulated, fetch_request([wanted(name), wanted(name, partition=1)])))
    assert [(each.error_code, size_of(each)) for each in reported] == [(ErrorCode.KAFKA_STORAGE_ERROR, 0), (0, SIZE)]
    caplog.clear()


def _failing_for(broken: PartitionLog, read: Callable[..., Any]) -> Callable[..., Any]:
    def maybe(log: PartitionLog, *args: Any, **options: Any) -> Any:
        if log is broken:
            raise OSError("the disk is gone")
        return read(log, *args, **options)

    return maybe
