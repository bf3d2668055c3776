"""Fetches that must look into files do so on a worker, while the event loop goes on and things change under them."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from odradek.handlers import fetch
from odradek.log.stored_segment import LOG_SUFFIX
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.fetch import FetchResponse, ForgottenTopic
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker, joined
from tests.handlers.requests import (
    base_offsets,
    batch,
    begin_fetch,
    create_topic,
    delete_records,
    fetch_all,
    fetch_request,
    partitions_of,
    produce,
    wanted,
)
from tests.replica.held_workers import HeldWorkers
from tests.wire import decode_response

LONG_MS = 10_000
SIZE = len(batch())


@pytest.fixture
def workers() -> HeldWorkers:
    return HeldWorkers()


@pytest.fixture
def simulated(workers: HeldWorkers) -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(workers)
    yield broker
    workers.release_all()
    broker.close()


@pytest.fixture
def topic(simulated: SimulatedBroker, name: str) -> UUID:
    """Two partitions of many small segments, so that offset 0 lies far back in files."""
    topic_id = create_topic(simulated, name, 2, segment_index_bytes="24", index_interval_bytes="0")
    for partition in (0, 1):
        for _ in range(12):
            produce(simulated, topic_id, partition=partition)
    return topic_id


def _first_partition(simulated: SimulatedBroker, topic: UUID) -> Partition:
    partitions = simulated.services.partitions.topic_by_id(topic)
    assert partitions
    return partitions[0]


def test_an_old_offset_is_looked_up_on_a_worker(simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID) -> None:
    workers.held.add("_read")
    waiting = begin_fetch(simulated, fetch_request([wanted(topic)]))
    assert workers.waiting == ["_read"]
    assert produce(simulated, topic).error_code == ErrorCode.NONE, "others are not kept waiting"
    workers.release_all()
    assert base_offsets(partitions_of(waiting.result())[0].records)[0] == 0


def test_old_records_are_in_memory_before_they_are_sent(simulated: SimulatedBroker, topic: UUID) -> None:
    """Or the event loop would wait for the disk, and with it everybody else."""
    records = partitions_of(fetch_all(simulated, fetch_request([wanted(topic)])))[0].records
    assert records is not None
    segment = _first_partition(simulated, topic).log.segments[0]
    assert simulated.simulation.disk.brought_into_memory == [(segment.path(LOG_SUFFIX), 0, len(records))]


def test_the_tail_is_read_at_once(simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID) -> None:
    workers.held.add("_read")
    assert base_offsets(partitions_of(fetch_all(simulated, fetch_request([wanted(topic, 11)])))[0].records) == [11]
    assert not workers.waiting
    assert not simulated.simulation.disk.brought_into_memory


def test_much_that_the_system_has_forgotten_is_read_on_a_worker(
    simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the newest segment, too, whose batches are known without the disk."""
    monkeypatch.setattr(fetch, "BULK_BYTES", 1)
    simulated.simulation.disk.has_forgotten = True
    workers.held.add("_read")
    waiting = begin_fetch(simulated, fetch_request([wanted(topic, 11)]))
    assert workers.waiting == ["_read"]
    workers.release_all()
    assert base_offsets(partitions_of(waiting.result())[0].records) == [11]
    assert len(simulated.simulation.disk.brought_into_memory) == 1


def test_what_was_waited_for_is_read_on_a_worker_too_if_it_was_forgotten(
    simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "BULK_BYTES", 1)
    waiting = begin_fetch(simulated, fetch_request([wanted(topic, 11)], max_wait_ms=LONG_MS, min_bytes=2 * SIZE))
    simulated.simulation.disk.has_forgotten = True
    workers.held.add("_read")
    assert produce(simulated, topic).error_code == ErrorCode.NONE
    assert workers.waiting == ["_read"]
    workers.release_all()
    assert base_offsets(partitions_of(waiting.result())[0].records)[0] == 11


def test_an_append_during_the_look_up_is_not_missed(
    simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look-up is over and its answer on its way back: what is appended now must not be waited for."""
    partition = _first_partition(simulated, topic)
    monkeypatch.setattr(type(partition.log), "needs_disk", lambda *_: True)
    after_look_up(workers, monkeypatch, lambda: partition.append(memoryview(batch()), -1))
    began = simulated.elapsed_ms()
    fetch_all(simulated, fetch_request([wanted(topic, 11)], max_wait_ms=LONG_MS, min_bytes=2 * SIZE))
    assert simulated.elapsed_ms() - began < LONG_MS


def after_look_up(workers: HeldWorkers, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something on the event loop between the end of the next look-up and the news of it."""
    run = workers.run

    async def run_then_act(function: Callable[..., object], *args: object) -> object:
        result = await run(function, *args)
        if function.__name__ == "_read":
            monkeypatch.setattr(workers, "run", run)
            act()
        return result

    monkeypatch.setattr(workers, "run", run_then_act)


def test_a_partition_may_be_forgotten_during_the_look_up(
    simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two requests of one session at once, on two connections."""
    both = [wanted(topic), wanted(topic, partition=1)]
    session = fetch_all(simulated, fetch_request(both, session=(0, 0)), 18).session_id
    forgotten = ForgottenTopic(topic_id=topic, partitions=[0])
    forgetting = fetch_request([], session=(session, 2), forgotten=[forgotten])
    begun: list[Any] = []
    after_look_up(workers, monkeypatch, lambda: begun.append(simulated.handle(forgetting, 18)))
    answer = fetch_all(simulated, fetch_request([], session=(session, 1)), 18)
    assert {each.partition_index for each in partitions_of(answer)} >= {1}
    later = decode_response(FetchResponse, joined(simulated.run(begun[0])), 18)
    assert [each.partition_index for each in partitions_of(later)] == [1]


def test_a_stop_during_the_look_up_is_not_missed(
    simulated: SimulatedBroker, workers: HeldWorkers, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = _first_partition(simulated, topic)
    monkeypatch.setattr(type(partition.log), "needs_disk", lambda *_: True)
    workers.held.add("_read")
    waiting = begin_fetch(simulated, fetch_request([wanted(topic, 12)], max_wait_ms=LONG_MS))
    began = simulated.elapsed_ms()
    simulated.node.release_waiting_requests()
    workers.release_all()
    waiting.result()
    assert simulated.elapsed_ms() - began < LONG_MS


def test_a_topic_deleted_during_the_look_up_is_not_there(
    simulated: SimulatedBroker, workers: HeldWorkers, name: str, topic: UUID
) -> None:
    workers.held.add("_read")
    waiting = begin_fetch(simulated, fetch_request([wanted(topic)]))
    deleted = simulated.call(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    assert deleted.responses[0].error_code == ErrorCode.NONE
    workers.release_all()
    reported = partitions_of(waiting.result())[0]
    assert reported.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_files_of_a_deleted_topic_that_are_missed_are_no_failure_of_the_disk(
    simulated: SimulatedBroker, topic: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partition was found before the topic went, its files were looked for afterwards."""
    partition = _first_partition(simulated, topic)

    def vanish(*_: object, **__: object) -> None:
        partition.retire()
        raise FileNotFoundError("a file that was renamed")

    monkeypatch.setattr(type(partition.log), "read", vanish)
    reported = partitions_of(fetch_all(simulated, fetch_request([wanted(topic)])))[0]
    assert reported.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_records_deleted_during_the_look_up_are_out_of_range(
    simulated: SimulatedBroker, workers: HeldWorkers, name: str, topic: UUID
) -> None:
    workers.held.add("_read")
    waiting = begin_fetch(simulated, fetch_request([wanted(topic)]))
    delete_records(simulated, name, 12)
    workers.release_all()
    assert partitions_of(waiting.result())[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_client_that_goes_during_the_look_up_leaves_nothing_behind(
    simulated: SimulatedBroker, workers: HeldWorkers, name: str, topic: UUID
) -> None:
    workers.held.add("_read")
    waiting = simulated.begin(fetch_request([wanted(topic)], max_wait_ms=LONG_MS, min_bytes=1 << 20), FetchResponse, 18)
    waiting.task.cancel()
    simulated.step()
    workers.held.clear()
    simulated.step()
    assert not simulated.partition(name).waiting_fetches


def test_each_log_directory_is_read_by_its_own_workers(workers: HeldWorkers, name: str) -> None:
    broker = SimulatedBroker(workers, log_dirs="/one,/two")
    create_topic(broker, name, 2)
    for partition in (0, 1):
        produce(broker, name, partition=partition)
    broker.restart()  # what an earlier run wrote is looked up in files
    workers.hung.add("/two")
    one = partitions_of(fetch_all(broker, fetch_request([wanted(name, 0, partition=0)])))[0]
    assert base_offsets(one.records) == [0], "the other directory does not matter"
    both = begin_fetch(broker, fetch_request([wanted(name, 0, partition=0), wanted(name, 0, partition=1)]))
    assert workers.waiting == ["_read"]
    workers.release_all()
    assert [base_offsets(each.records) for each in partitions_of(both.result())] == [[0], [0]]
    broker.close()
