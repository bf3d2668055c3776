"""Files of removed partitions go in the background; a new partition of the same name waits for them."""

from collections.abc import Sequence

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic, delete_topic, list_offset, produce
from tests.replica.held_workers import HeldWorkers


def test_a_deletion_does_not_wait_for_its_files(broker: SimulatedBroker, workers: HeldWorkers, name: str) -> None:
    create_topic(broker, name)
    workers.held.add("rename_for_deletion")
    delete_topic(broker, name)
    broker.step()
    assert workers.waiting == ["rename_for_deletion"]
    create_topic(broker, f"{name}-other")
    workers.release_all()
    broker.run(broker.services.partitions.removals.settle())
    assert not directories_of(broker, f"{name}-0")


def test_a_partition_is_created_again_when_its_old_directory_is_renamed(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_topic(broker, name)
    produce(broker, name)
    workers.held.update({"rename_for_deletion", "remove_trees"})
    delete_topic(broker, name)
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    creating = broker.begin(CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    assert not creating.task.done()
    workers.release()
    assert creating.result().topics[0].error_code == ErrorCode.NONE
    assert workers.waiting == ["remove_trees"], "creation does not wait until the files are removed"
    assert list_offset(broker, name, -1).offset == 0
    workers.release_all()


def directories_of(broker: SimulatedBroker, name: str) -> list[str]:
    return [each for each in broker.simulation.disk.list_directory("/data") if each.startswith(name)]


def test_a_stop_leaves_renamed_directories_to_the_next_start(
    broker: SimulatedBroker, workers: HeldWorkers, name: str
) -> None:
    create_topic(broker, name, 10)
    workers.held.add("remove_trees")
    delete_topic(broker, name)
    stopping = broker.simulation.loop.create_task(broker.node.stop())
    broker.step(50)
    assert not stopping.done(), "a stop waits for the removal that is running"
    workers.release_all()
    broker.simulation.loop.run_until_complete(stopping)
    assert len(directories_of(broker, name)) == 10, "a stop removes no more directories"
    broker.run(broker._start())
    broker.run(broker.services.partitions.removals.settle())
    assert not directories_of(broker, name)


def test_a_removal_that_fails_is_logged_and_its_name_is_free(
    broker: SimulatedBroker, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(partitions: Sequence[Partition]) -> None:
        raise RuntimeError("defect")

    create_topic(broker, name)
    produce(broker, name)
    broker.services.partitions.removals.before_removal = fail
    delete_topic(broker, name)
    create_topic(broker, name)
    assert list_offset(broker, name, -1).offset == 0
    assert "removal of deleted partitions failed" in caplog.messages
    caplog.clear()


def test_a_checkpoint_of_the_log_directory_forgets_removed_partitions(broker: SimulatedBroker, name: str) -> None:
    create_topic(broker, name)
    table = broker.services.partitions
    delete_topic(broker, name)
    assert table._checkpoints.directories_with_stale({(name, 0)}) == [*table.directories]
    broker.run(table.checkpoint_log_start_offsets(table.directories))
    assert table._checkpoints.directories_with_stale({(name, 0)}) == [*table.directories], "others may contain them"
    broker.run(table.checkpoint(table.directories))
    assert table._checkpoints.directories_with_stale({(name, 0)}) == []
