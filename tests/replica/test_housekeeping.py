"""What a broker does by the clock, and that it goes on doing it whatever happens to a single partition."""

import asyncio
import errno

import pytest

from odradek.log import producer_limits
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import batch, create_topic, delete_records, delete_topic, produce
from tests.replica.held_workers import HeldWorkers


def pass_time(broker: SimulatedBroker, seconds: float) -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_task(_timer(seconds))

    broker.run(wait())


async def _timer(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(seconds, over.set_result, None)
    await over


def recovery_point(broker: SimulatedBroker, name: str) -> int:
    return broker.partition(name).log.recovery_point_offset


def test_flush_ms_puts_records_on_the_disk_in_time(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, flush_ms="3000")
    produce(broker, name)
    pass_time(broker, 2)
    assert recovery_point(broker, name) == 0
    pass_time(broker, 3)
    assert recovery_point(broker, name) == 1


def test_without_flush_ms_the_operating_system_decides(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    pass_time(broker, 600)
    assert recovery_point(broker, name) == 0


def test_rolled_segments_are_synced_soon(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0")
    for _ in range(10):
        produce(broker, name)
    partition = broker.partition(name)
    assert partition.log.has_rolled_segments_to_sync
    pass_time(broker, 3)
    assert not partition.log.has_rolled_segments_to_sync


def test_one_partition_that_cannot_be_flushed_does_not_stop_the_others(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"{name}-{letter}" for letter in "abc"]
    for each in names:
        create_topic(broker, each, flush_ms="0")
        produce(broker, each)
    broken = broker.partition(names[0]).log
    flush = type(broken).flush

    def maybe(log: object) -> None:
        if log is broken:
            raise OSError(errno.ENOSPC, "no room for what is written beside")
        flush(log)  # type: ignore[arg-type]  # a partition's log

    monkeypatch.setattr(type(broken), "flush", maybe)
    pass_time(broker, 30)
    assert [recovery_point(broker, each) for each in names] == [0, 1, 1]
    assert [record.getMessage() for record in caplog.records] == ["flush failed"], "said once, not every second"
    caplog.clear()


def test_a_topic_deleted_while_others_are_flushed_is_left_alone(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    """The round has begun with both; the second one goes while the first is flushed."""
    first, second = f"{name}-a", f"{name}-b"
    for each in (first, second):
        create_topic(broker, each, flush_ms="0")
        produce(broker, each)
    workers.held.add("flush")
    pass_time(broker, 2)
    assert workers.waiting == ["flush"]
    delete_topic(broker, second)
    workers.release_all()
    pass_time(broker, 3)
    assert recovery_point(broker, first) == 1


def test_files_of_a_topic_deleted_while_it_is_flushed_stay_until_the_flush_ends(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_topic(broker, name, flush_ms="0")
    produce(broker, name)
    workers.held.add("flush")
    pass_time(broker, 2)
    deleting = broker.begin(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    assert deleting.result().responses[0].error_code == 0
    assert f"{name}-0" in broker.simulation.disk.list_directory("/data")
    workers.release_all()
    pass_time(broker, 3)
    assert not any(each.startswith(name) for each in broker.simulation.disk.list_directory("/data"))


def test_checkpoints_are_written_in_time(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, flush_ms="0")
    for _ in range(3):
        produce(broker, name)
    pass_time(broker, 70)
    reported = broker.simulation.disk.read_file("/data/recovery-point-offset-checkpoint").decode()
    assert f"{name} 0 3" in reported
    reported = broker.simulation.disk.read_file("/data/replication-offset-checkpoint").decode()
    assert f"{name} 0 3" in reported


def test_silent_producers_are_forgotten_in_time(name: str) -> None:
    broker = SimulatedBroker(producer_id_expiration_ms="120000", producer_id_expiration_check_interval_ms="60000")
    create_topic(broker, name)
    now_ms = broker.simulation.clock.now_ms()
    produce(broker, name, batch(timestamps=[now_ms], producer=(5, 0, 0)))
    producers = broker.partition(name).log.producers
    pass_time(broker, 60)
    assert list(producers.entries) == [5]
    pass_time(broker, 130)
    assert list(producers.entries) == []
    broker.close()


def test_too_many_producers_are_forgotten_when_they_were_idle_for_ten_minutes_of_the_brokers_clock(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_limits, "MOST_PRODUCERS", 4)
    monkeypatch.setattr(producer_limits, "FAIR_PRODUCERS", 4)
    create_topic(broker, name)
    now_ms = broker.simulation.clock.now_ms()
    for producer_id in range(6):
        produce(broker, name, batch(timestamps=[now_ms - 7_200_000 * producer_id], producer=(producer_id, 0, 0)))
    producers = broker.partition(name).log.producers
    pass_time(broker, 595)
    assert len(producers.entries) == 6
    produce(broker, name, batch(timestamps=[now_ms], producer=(0, 0, 1)))
    pass_time(broker, 130)
    assert sorted(producers.entries) == [0, 3, 4, 5]


@pytest.mark.parametrize(("level", "is_packed"), [(4, True), (6, False)])
def test_idle_producers_are_packed_if_the_broker_has_many(
    broker: SimulatedBroker, name: str, monkeypatch: pytest.MonkeyPatch, level: int, is_packed: bool
) -> None:
    monkeypatch.setattr(producer_limits, "PACKED_ABOVE", level)
    create_topic(broker, name)
    now_ms = broker.simulation.clock.now_ms()
    for producer_id in range(6):
        produce(broker, name, batch(timestamps=[now_ms], producer=(producer_id, 0, 0)))
    entries = broker.partition(name).log.producers.entries
    pass_time(broker, 70)
    assert len(entries.recent) == 6
    produce(broker, name, batch(timestamps=[now_ms], producer=(3, 0, 1)))
    pass_time(broker, 60)
    assert list(entries.recent) == ([3] if is_packed else [0, 1, 2, 3, 4, 5])
    assert sorted(entries) == [0, 1, 2, 3, 4, 5]


def test_producers_of_a_log_that_is_truncated_are_left_to_the_worker(name: str) -> None:
    """It encodes them, and would break off if they changed."""
    broker = SimulatedBroker(producer_id_expiration_ms="60000", producer_id_expiration_check_interval_ms="1000")
    create_topic(broker, name)
    now_ms = broker.simulation.clock.now_ms()
    produce(broker, name, batch(timestamps=[now_ms], producer=(7, 0, 0)))
    partition_log = broker.partition(name).log
    partition_log.begin_truncation()
    pass_time(broker, 90)
    assert 7 in partition_log.producers.entries
    partition_log.truncate_to(partition_log.log_end_offset)
    pass_time(broker, 3)
    assert 7 not in partition_log.producers.entries
    broker.close()


def test_files_of_deleted_records_go_after_their_delay(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0", file_delete_delay_ms="30000")
    for _ in range(20):
        produce(broker, name)
    delete_records(broker, name, 20)
    disk = broker.simulation.disk

    def marked() -> list[str]:
        return [each for each in disk.list_directory(f"/data/{name}-0") if each.endswith(".deleted")]

    pass_time(broker, 20)
    assert marked(), "a reader may still have a place in them"
    pass_time(broker, 20)
    assert not marked()


def test_files_of_deleted_records_go_at_a_stop(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, segment_index_bytes="24", index_interval_bytes="0")
    for _ in range(20):
        produce(broker, name)
    delete_records(broker, name, 20)
    pass_time(broker, 2)
    broker.restart()
    left = broker.simulation.disk.list_directory(f"/data/{name}-0")
    assert not [each for each in left if each.endswith(".deleted")]


def test_no_round_begins_after_a_stop(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    """A round that was running ends in the middle of the stop; it must not call for the next one."""
    create_topic(broker, name, flush_ms="0")
    produce(broker, name)
    workers.held.add("flush")
    pass_time(broker, 2)
    housekeeping = broker.node._housekeeping
    stopping = broker.simulation.loop.create_task(housekeeping.stop())
    broker.step()
    assert not stopping.done()
    workers.release_all()
    broker.step()
    assert stopping.done()
    produce(broker, name)
    pass_time(broker, 10)
    assert recovery_point(broker, name) == 1, "nothing is flushed behind the back of a broker that stops"


# --- a log directory that hangs


def test_a_directory_that_hangs_keeps_only_its_own_partitions_from_their_work(workers: HeldWorkers, name: str) -> None:
    """Flushes, checkpoints, retention and the removal of files go on in the other directory."""
    broker = SimulatedBroker(
        workers,
        log_dirs="/one,/two",
        log_flush_offset_checkpoint_interval_ms="1000",
        log_retention_check_interval_ms="1000",
    )
    create_topic(broker, name, 2, flush_ms="1000", retention_ms="3000", segment_ms="1000", file_delete_delay_ms="0")
    partitions = [broker.partition(name, index) for index in (0, 1)]
    assert [each.directory.path for each in partitions] == ["/one", "/two"]
    workers.hung.add("/two")
    for _ in range(5):
        for index in (0, 1):
            produce(broker, name, batch(timestamps=[broker.simulation.clock.now_ms()]), partition=index)
        pass_time(broker, 2)
    healthy, hung = partitions
    assert healthy.log.recovery_point_offset > 0
    assert healthy.log.log_start_offset > 0
    assert f"{name} 0 " in broker.simulation.disk.read_file("/one/log-start-offset-checkpoint").decode()
    assert not [each for each in broker.simulation.disk.list_directory(f"/one/{name}-0") if each.endswith(".deleted")]
    assert (hung.log.recovery_point_offset, hung.log.log_start_offset) == (0, 0)
    workers.release_all()
    pass_time(broker, 5)
    assert hung.log.recovery_point_offset > 0
    assert hung.log.log_start_offset > 0
    broker.close()
