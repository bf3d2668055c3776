"""The partitions on this broker: found again at a start, made and removed as the metadata says, closed at the end."""

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import (
    base_offsets,
    batch,
    create_topic,
    delete_records,
    delete_topic,
    fetch,
    list_offset,
    produce,
)
from tests.replica.held_workers import HeldWorkers

RECOVERY_POINTS = "/data/recovery-point-offset-checkpoint"
START_OFFSETS = "/data/log-start-offset-checkpoint"
MARK = "/data/.kafka_cleanshutdown"


def offsets(broker: SimulatedBroker, name: str, partition: int = 0) -> tuple[int, int]:
    return (
        list_offset(broker, name, -2, partition=partition).offset,
        list_offset(broker, name, -1, partition=partition).offset,
    )


# --- at a start


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_every_partition_is_found_again(broker: SimulatedBroker, name: str, how: str) -> None:
    create_topic(broker, name, 12)
    for partition in range(12):
        for _ in range(partition):
            produce(broker, name, partition=partition)
    getattr(broker, how)()
    assert [offsets(broker, name, partition)[1] for partition in range(12)] == list(range(12))
    assert [broker.partition(name, index).index for index in range(12)] == list(range(12))


def test_partitions_in_several_directories_are_found_again_in_order(name: str) -> None:
    broker = SimulatedBroker(log_dirs="/one,/two")
    names = [f"{name}-{number}" for number in range(4)]
    for each in names:
        create_topic(broker, each, 3)
        produce(broker, each, partition=2)
    broker.kill()
    for each in names:
        assert [offsets(broker, each, partition)[1] for partition in range(3)] == [0, 0, 1]
    directories = {broker.partition(each).directory.path for each in names}
    assert directories == {"/one", "/two"}
    broker.close()


def test_an_unknown_partition_is_set_aside(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    disk = broker.simulation.disk
    disk.make_directories("/data/unknown-0")
    disk.replace_file("/data/unknown-0/00000000000000000000.log", b"foreign data")
    broker.restart()
    left = disk.list_directory("/data")
    assert "unknown-0" not in left
    aside = [each for each in left if each.endswith("-stray")]
    assert len(aside) == 1
    assert disk.read_file(f"/data/{aside[0]}/00000000000000000000.log") == b"foreign data"
    assert "unknown partition set aside" in caplog.messages
    broker.restart()
    assert aside[0] in disk.list_directory("/data"), "set aside once, kept for ever"


def test_files_of_a_topic_of_the_same_name_and_another_id_are_set_aside(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    disk = broker.simulation.disk
    metadata = f"/data/{name}-0/partition.metadata"
    disk.replace_file(metadata, b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n")
    broker.kill()
    assert offsets(broker, name) == (0, 0)
    assert any(each.endswith("-stray") for each in disk.list_directory("/data"))


@pytest.mark.parametrize("content", [b"", b"0\n", b"nonsense", b"\xff\xfe", b"0\n1\nname\n", b"7\n0\n"])
def test_a_checkpoint_that_cannot_be_read_is_done_without(
    broker: SimulatedBroker, name: str, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name)
    produce(broker, name)
    for path in (RECOVERY_POINTS, START_OFFSETS):
        broker.simulation.disk.replace_file(path, content)
    broker.kill()
    assert offsets(broker, name) == (0, 1)
    assert "checkpoint ignored" in caplog.messages


def test_a_missing_directory_of_a_partition_is_created_again(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    broker.simulation.disk.remove_tree(f"/data/{name}-0")
    broker.kill()
    assert offsets(broker, name) == (0, 0)
    assert produce(broker, name).base_offset == 0


def test_many_partitions_start_and_stop(broker: SimulatedBroker, name: str) -> None:
    for number in range(5):
        create_topic(broker, f"{name}-{number}", 50)
    for end in (broker.restart, broker.kill):
        end()
        for number in range(5):
            assert produce(broker, f"{name}-{number}", partition=49).error_code == ErrorCode.NONE


# --- at an end


def test_a_stop_leaves_a_mark_and_everything_on_the_disk(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name, 2)
    produce(broker, name)
    disk = broker.simulation.disk
    assert not disk.exists(MARK)
    broker.run(broker.node.stop())
    assert disk.exists(MARK)
    assert f"{name} 0 1" in disk.read_file(RECOVERY_POINTS).decode()
    disk.crash(broker.simulation.chance)  # power is lost: what was not synced is gone
    broker.run(broker._start())
    assert not disk.exists(MARK), "a crash from here on must be noticed"
    assert base_offsets(fetch(broker, name).records) == [0]


def test_a_log_that_cannot_be_closed_leaves_no_mark(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name)
    produce(broker, name)
    disk = broker.simulation.disk
    closing = type(broker.partition(name).log).close

    def fail(log: object) -> None:
        raise OSError("the disk is gone")

    type(broker.partition(name).log).close = fail  # type: ignore[assignment, method-assign]  # for one stop
    try:
        broker.run(broker.node.stop())
    finally:
        type(broker.services.partitions._by_name[name][0].log).close = closing  # type: ignore[method-assign]  # as it was
    assert not disk.exists(MARK)
    assert caplog.messages == ["a log could not be closed"]
    caplog.clear()
    broker.run(broker._start())


def test_a_stop_waits_for_a_flush_that_runs(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    workers.held.add("flush")
    flushing = broker.simulation.loop.create_task(broker.partition(name).flusher.flush())
    broker.step()
    stopping = broker.simulation.loop.create_task(broker.node.stop())
    broker.step()
    assert not stopping.done()
    workers.release_all()
    broker.simulation.loop.run_until_complete(stopping)
    assert flushing.done()
    broker.run(broker._start())
    assert offsets(broker, name) == (0, 1)


# --- checkpoints


def test_checkpoints_are_written_one_after_the_other(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    """The older snapshot must not be written over the newer one."""
    create_topic(broker, name)
    for _ in range(5):
        produce(broker, name)
    workers.held.add("_write")
    first = broker.simulation.loop.create_task(broker.services.partitions.checkpoint())
    broker.step()
    broker.partition(name).delete_records_before(3)
    second = broker.simulation.loop.create_task(
        broker.services.partitions.checkpoint_log_start_offsets(broker.services.partitions.directories)
    )
    broker.step()
    assert workers.waiting == ["_write"]
    workers.release()
    broker.step()
    assert first.done()
    workers.release_all()
    broker.step()
    assert second.done()
    assert f"{name} 0 3" in broker.simulation.disk.read_file(START_OFFSETS).decode()


def test_a_checkpoint_is_written_to_its_end_when_its_client_disconnects(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    """Two concurrent writes of a checkpoint would use the same temporary file."""
    create_topic(broker, name)
    produce(broker, name)
    table = broker.services.partitions
    workers.held.add("_write")
    disconnected = broker.simulation.loop.create_task(table.checkpoint_log_start_offsets(table.directories))
    broker.step()
    disconnected.cancel()
    broker.step()
    assert disconnected.cancelled()
    second = broker.simulation.loop.create_task(table.checkpoint_log_start_offsets(table.directories))
    broker.step()
    assert workers.waiting == ["_write"]
    workers.release()
    broker.step()
    assert workers.waiting == ["_write"]
    workers.release_all()
    broker.step()
    assert second.done()


def test_a_topic_is_recreated_only_when_no_checkpoint_has_its_name(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    """Also when a checkpoint with the older topic in it was on its way."""
    create_topic(broker, name)
    for _ in range(5):
        produce(broker, name)
    delete_records(broker, name, 5)
    workers.held.add("_write")
    on_its_way = broker.simulation.loop.create_task(broker.services.partitions.checkpoint())
    broker.step()
    delete_topic(broker, name)
    requested = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    creating = broker.begin(CreateTopicsRequest(topics=[requested]), CreateTopicsResponse)
    workers.release()
    broker.step()
    assert on_its_way.done()
    assert not creating.task.done()
    workers.release_all()
    assert creating.result().topics[0].error_code == ErrorCode.NONE
    for path in (RECOVERY_POINTS, START_OFFSETS):
        assert name not in broker.simulation.disk.read_file(path).decode()
    broker.kill()
    assert offsets(broker, name) == (0, 0)


def test_a_deletion_is_forgotten_by_the_next_start(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    produce(broker, name)
    delete_records(broker, name, 1)
    delete_topic(broker, name)
    broker.kill()
    assert name not in broker.simulation.disk.read_file(START_OFFSETS).decode()
    create_topic(broker, name)
    assert offsets(broker, name) == (0, 0)


def test_a_topic_is_recreated_though_the_checkpoints_cannot_be_written(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(broker, name)
    delete_topic(broker, name)
    broker.simulation.disk.capacity_bytes = 0
    requested = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    broker.call(CreateTopicsRequest(topics=[requested]), CreateTopicsResponse)
    assert caplog.messages == ["checkpoints could not be written", "a partition cannot be opened"]
    broker.simulation.disk.capacity_bytes = None
    caplog.clear()


# --- while others work


def test_appends_and_fetches_during_a_deletion_are_refused_not_lost(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    topic_id = create_topic(broker, name)
    produce(broker, name)
    workers.held.add("rename_for_deletion")
    deleting = broker.begin(DeleteTopicsRequest(topic_names=[name]), DeleteTopicsResponse, 4)
    assert workers.waiting == ["rename_for_deletion"]
    assert produce(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(broker, topic_id).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert fetch(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_offset(broker, name, -1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    workers.release_all()
    assert deleting.result().responses[0].error_code == ErrorCode.NONE


def test_a_new_partition_is_not_there_before_its_files_are(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    workers.held.add("open_logs")
    requested = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    creating = broker.begin(CreateTopicsRequest(topics=[requested]), CreateTopicsResponse)
    assert produce(broker, name).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    workers.release_all()
    assert creating.result().topics[0].error_code == ErrorCode.NONE
    assert produce(broker, name, partition=1).error_code == ErrorCode.NONE


def test_a_client_that_goes_does_not_stop_a_creation(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    workers.held.add("open_logs")
    requested = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    creating = broker.begin(CreateTopicsRequest(topics=[requested]), CreateTopicsResponse)
    creating.task.cancel()
    broker.step()
    workers.release_all()
    broker.step()
    assert produce(broker, name, batch()).error_code == ErrorCode.NONE
