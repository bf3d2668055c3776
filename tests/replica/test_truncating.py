"""The truncation of a follower's log: to its end, and checkpointed before the next append."""

import asyncio
import errno
from contextlib import suppress

import pytest

from odradek.log.checkpoints import decode_checkpoint
from odradek.replica.partition import Partition
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic, delete_topic, produce
from tests.replica.held_workers import HeldWorkers
from tests.replica.test_sparse_table import ELSEWHERE, HERE, begin_change, change_partition

RECOVERY_POINTS = "/data/recovery-point-offset-checkpoint"
BOTH = (HERE, ELSEWHERE)


@pytest.fixture
def follower(broker: SimulatedBroker, name: str) -> Partition:
    """With five records, all flushed and checkpointed."""
    create_topic(broker, name)
    for _ in range(5):
        produce(broker, name)
    partition = broker.partition(name)
    broker.run(partition.flusher.flush())
    broker.run(broker.services.partitions.checkpoint())
    change_partition(broker, name, 0, leader=ELSEWHERE, replicas=BOTH)
    return partition


def begin_truncation(broker: SimulatedBroker, follower: Partition, offset: int) -> asyncio.Task[None]:
    task = broker.simulation.loop.create_task(follower.follower_log.truncate_to(offset))
    broker.step()
    return task


def recovery_point(broker: SimulatedBroker, name: str) -> int:
    return decode_checkpoint(broker.simulation.disk.read_file(RECOVERY_POINTS))[name, 0]


def test_a_truncation_checkpoints_the_recovery_point(broker: SimulatedBroker, follower: Partition, name: str) -> None:
    assert recovery_point(broker, name) == 5
    broker.run(follower.follower_log.truncate_to(2))
    assert follower.log.log_end_offset == follower.high_watermark == 2
    assert recovery_point(broker, name) == 2
    assert not follower.follower_log.is_truncating


def test_a_truncation_is_running_until_the_recovery_point_is_checkpointed(
    broker: SimulatedBroker, workers: HeldWorkers, follower: Partition
) -> None:
    workers.held.add("_write")
    truncating = begin_truncation(broker, follower, 2)
    assert workers.waiting == ["_write"]
    assert not truncating.done()
    assert follower.follower_log.is_truncating
    workers.release_all()
    broker.simulation.loop.run_until_complete(truncating)


def test_a_truncation_continues_when_its_caller_is_cancelled(
    broker: SimulatedBroker, workers: HeldWorkers, follower: Partition, name: str
) -> None:
    workers.held.add("truncate_to")
    truncating = begin_truncation(broker, follower, 2)
    truncating.cancel()
    with suppress(asyncio.CancelledError):
        broker.simulation.loop.run_until_complete(truncating)
    assert follower.follower_log.is_truncating
    workers.release_all()
    broker.run(follower.follower_log.settle())
    assert not follower.log.is_truncating
    assert follower.log.log_end_offset == recovery_point(broker, name) == 2


def test_a_recovery_point_that_cannot_be_checkpointed_fails_the_log_directory(
    broker: SimulatedBroker, follower: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    """Also on a full disk: records that are appended next would not be recovered after a crash."""

    async def fail(_: object) -> None:
        raise OSError(errno.ENOSPC, "disk full")

    broker.services.partitions.truncations.on_end(fail)
    with pytest.raises(OSError, match="disk full"):
        broker.run(follower.follower_log.truncate_to(2))
    assert follower.directory.failure is not None
    caplog.clear()


def test_files_of_a_partition_are_removed_when_its_truncation_has_ended(
    broker: SimulatedBroker, workers: HeldWorkers, follower: Partition, name: str
) -> None:
    workers.held.add("truncate_to")
    truncating = begin_truncation(broker, follower, 2)
    delete_topic(broker, name)
    broker.step()
    assert f"{name}-0" in broker.simulation.disk.list_directory("/data")
    workers.release_all()
    broker.simulation.loop.run_until_complete(truncating)
    broker.run(broker.services.partitions.removals.settle())
    assert not [each for each in broker.simulation.disk.list_directory("/data") if each.startswith(name)]


def test_a_follower_that_is_elected_during_its_truncation_leads_after_it(
    broker: SimulatedBroker, workers: HeldWorkers, follower: Partition, name: str
) -> None:
    workers.held.add("truncate_to")
    truncating = begin_truncation(broker, follower, 2)
    electing = broker.simulation.loop.create_task(begin_change(broker, name, 0, leader=HERE, replicas=BOTH))
    broker.step()
    assert not follower.is_leader
    workers.release_all()
    broker.simulation.loop.run_until_complete(electing)
    assert truncating.done()
    assert follower.is_leader
    assert follower.log.leader_epochs.entries[-1].start_offset == 2


def test_a_truncation_that_hangs_does_not_delay_other_metadata(
    broker: SimulatedBroker, workers: HeldWorkers, follower: Partition, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    workers.held.add("truncate_to")
    truncating = begin_truncation(broker, follower, 2)
    broker.run(begin_change(broker, name, 0, leader=HERE, replicas=BOTH))
    assert not follower.is_leader
    assert broker.services.partitions.is_delayed(follower)
    create_topic(broker, f"{name}-other")
    assert produce(broker, f"{name}-other").base_offset == 0
    workers.release_all()
    broker.simulation.loop.run_until_complete(truncating)
    broker.step()
    assert follower.is_leader
    assert not broker.services.partitions.has_delays
    assert follower.log.leader_epochs.entries[-1].start_offset == 2
    assert caplog.messages[-1] == "a truncation takes long: the partition is led when it has ended"
    caplog.clear()
