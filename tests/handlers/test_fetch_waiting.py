"""Fetch that waits: for how long, for how many bytes, and what ends the wait early."""

import asyncio

import pytest

from odradek.protocol.errors import ErrorCode
from tests.handlers.brokers import AnyBroker, SimulatedBroker, joined
from tests.handlers.requests import (
    FIVE,
    base_offsets,
    batch,
    begin_fetch,
    create_topic,
    delete_topic,
    fetch,
    fetch_all,
    fetch_request,
    partitions_of,
    produce,
    produce_request,
    size_of,
    sizes,
    topic_of_fives,
    wanted,
)
from tests.handlers.test_client_quotas import change

SIZE = len(FIVE)
LONG_MS = 10_000
WINDOW_S = 10  # of a quota, with default settings


@pytest.fixture
def topic(broker: AnyBroker, name: str) -> str:
    return topic_of_fives(broker, name)


def test_an_empty_fetch_waits_as_long_as_it_may(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    assert sizes(fetch_all(broker, fetch_request([wanted(topic, 20)], max_wait_ms=300))) == [0]
    assert 290 <= broker.elapsed_ms() - began < 3000


@pytest.mark.parametrize("min_bytes", [0, -1])
def test_who_asks_for_nothing_does_not_wait(broker: AnyBroker, topic: str, min_bytes: int) -> None:
    began = broker.elapsed_ms()
    request = fetch_request([wanted(topic, 20)], max_wait_ms=LONG_MS, min_bytes=min_bytes)
    assert sizes(fetch_all(broker, request)) == [0]
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_a_fetch_of_no_partition_does_not_wait(broker: AnyBroker) -> None:
    began = broker.elapsed_ms()
    assert fetch_all(broker, fetch_request([], max_wait_ms=LONG_MS)).responses == []
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_a_fetch_does_not_wait_for_more_than_its_quota(simulated: SimulatedBroker, name: str) -> None:
    """It can never get more at once: it would wait in every fetch."""
    topic_of_fives(simulated, name)
    rate = 2 * SIZE // WINDOW_S
    assert change(simulated, {"client-id": "wire"}, {"consumer_byte_rate": rate}) is ErrorCode.NONE
    began = simulated.elapsed_ms()
    request = fetch_request([wanted(name, 0)], max_wait_ms=LONG_MS, min_bytes=1 << 20)
    assert sizes(fetch_all(simulated, request)) == [WINDOW_S * rate]
    assert simulated.elapsed_ms() - began < LONG_MS / 2
    change(simulated, {"client-id": "wire"}, {"consumer_byte_rate": 0}, remove=True)


def test_an_append_ends_the_wait_with_what_was_appended(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    waiting = begin_fetch(broker, fetch_request([wanted(topic, 20)], max_wait_ms=LONG_MS))
    produce(broker, topic, FIVE)
    reported = partitions_of(waiting.result())[0]
    assert base_offsets(reported.records) == [20]
    assert reported.high_watermark == 25 or broker.is_apache_kafka, "there the answer may be a little ahead of it"
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_bytes_are_counted_over_all_partitions_and_appends(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    both = [wanted(topic, 15), wanted(topic, 5, partition=1), wanted(topic, partition=2)]
    waiting = begin_fetch(broker, fetch_request(both, max_wait_ms=LONG_MS, min_bytes=4 * SIZE))
    for partition in (1, 2, 0):
        produce(broker, topic, FIVE, partition=partition)
    assert sizes(waiting.result()) == [2 * SIZE, SIZE, SIZE]
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_too_few_bytes_are_given_when_the_time_is_over(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    request = fetch_request([wanted(topic)], max_wait_ms=300, min_bytes=100 * SIZE)
    assert sizes(fetch_all(broker, request)) == [4 * SIZE]
    assert broker.elapsed_ms() - began >= 290


def test_a_fetch_does_not_wait_for_more_bytes_than_a_response_may_hold(broker: AnyBroker, topic: str) -> None:
    began = broker.elapsed_ms()
    request = fetch_request([wanted(topic)], max_wait_ms=LONG_MS, min_bytes=1 << 20, max_bytes=SIZE)
    assert sizes(fetch_all(broker, request)) == [SIZE]
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_a_fetch_does_not_wait_for_more_than_a_segment_has_left(broker: AnyBroker, name: str) -> None:
    """A read ends with its segment; more lies in the next one, so waiting would be pointless."""
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0")
    for _ in range(12):
        produce(broker, name, FIVE)
    began = broker.elapsed_ms()
    reported = fetch_all(broker, fetch_request([wanted(name)], max_wait_ms=LONG_MS, min_bytes=11 * SIZE))
    assert base_offsets(partitions_of(reported)[0].records)[0] == 0
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_an_append_between_a_look_and_the_wait_is_not_missed(simulated: SimulatedBroker, name: str) -> None:
    """The fetch has looked and found nothing, its task has not started: another connection's append comes first."""
    create_topic(simulated, name)
    request = fetch_request([wanted(name)], max_wait_ms=LONG_MS)

    async def race() -> bytes:
        waiting = simulated.handle(request, 12)
        assert not isinstance(waiting, list)
        assert isinstance(simulated.handle(produce_request([(name, 0, batch())]), 12), list)
        return joined(await waiting)

    began = simulated.elapsed_ms()
    assert bytes(batch()[61:]) in simulated.run(race())
    assert simulated.elapsed_ms() - began < LONG_MS


def test_a_stop_between_a_look_and_the_wait_is_not_missed(simulated: SimulatedBroker, name: str) -> None:
    create_topic(simulated, name)
    request = fetch_request([wanted(name)], max_wait_ms=LONG_MS)

    async def race() -> None:
        waiting = simulated.handle(request, 12)
        simulated.node.release_waiting_requests()
        await waiting

    began = simulated.elapsed_ms()
    simulated.run(race())
    assert simulated.elapsed_ms() - began < LONG_MS


def test_a_deleted_topic_ends_the_wait(broker: AnyBroker, name: str) -> None:
    began = broker.elapsed_ms()
    topic_id = create_topic(broker, name)
    by_name = begin_fetch(broker, fetch_request([wanted(name)], max_wait_ms=LONG_MS))
    by_id = begin_fetch(broker, fetch_request([wanted(topic_id)], max_wait_ms=LONG_MS))
    delete_topic(broker, name)
    if broker.is_apache_kafka:
        allowed = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
    else:
        allowed = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert partitions_of(by_name.result())[0].error_code in allowed
    reported = partitions_of(by_id.result())[0].error_code
    assert reported in allowed | {ErrorCode.UNKNOWN_TOPIC_ID}
    assert broker.elapsed_ms() - began < LONG_MS / 2


def test_a_topic_made_again_under_its_name_is_another_one(broker: AnyBroker, name: str) -> None:
    old_id = create_topic(broker, name)
    produce(broker, name, FIVE)
    delete_topic(broker, name)
    new_id = create_topic(broker, name)
    assert fetch(broker, old_id).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert size_of(fetch(broker, new_id)) == 0


def test_a_waiter_leaves_nothing_behind(simulated: SimulatedBroker, name: str) -> None:
    """Answered, timed out or gone with its client: no partition remembers it."""
    create_topic(simulated, name, 2)
    partitions = [simulated.partition(name, index) for index in (0, 1)]
    request = fetch_request([wanted(name), wanted(name, partition=1)], max_wait_ms=500)
    for _ in range(3):
        answered = begin_fetch(simulated, request)
        gone = begin_fetch(simulated, request)
        assert [len(partition.waiting_fetches) for partition in partitions] == [2, 2]
        gone.task.cancel()  # type: ignore[attr-defined]  # what a lost connection does
        simulated.step()
        assert [len(partition.waiting_fetches) for partition in partitions] == [1, 1]
        answered.result()
    assert not any(partition.waiting_fetches for partition in partitions)


@pytest.mark.filterwarnings("ignore:coroutine '_wait' was never awaited")
def test_a_waiter_that_never_ran_goes_with_its_time(simulated: SimulatedBroker, name: str) -> None:
    """Cancelled before its first step: a coroutine that never starts cannot clean up after itself."""
    create_topic(simulated, name)
    partition = simulated.partition(name)

    async def lose() -> None:
        task = asyncio.ensure_future(simulated.handle(fetch_request([wanted(name)], max_wait_ms=500), 12))
        task.cancel()

    simulated.run(lose())
    fetch_all(simulated, fetch_request([wanted(name)], max_wait_ms=1000))
    assert not partition.waiting_fetches


def test_a_converted_batch_counts_as_it_is_stored(simulated: SimulatedBroker, name: str) -> None:
    """Two hundred bytes of one letter are fewer when they are compressed: the wait goes on."""
    create_topic(simulated, name, compression_type="zstd")
    waiting = begin_fetch(simulated, fetch_request([wanted(name)], max_wait_ms=LONG_MS, min_bytes=2000))
    began = simulated.elapsed_ms()
    produce(simulated, name, batch(b"x" * 5000))
    reported = sizes(waiting.result())
    assert reported[0] < 2000
    assert simulated.elapsed_ms() - began >= LONG_MS
