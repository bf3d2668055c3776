"""Replicas that are moved between the log directories of a simulated broker."""

from collections.abc import Callable
from dataclasses import replace

from odradek.configuration.config_types import ConfigResourceType
from odradek.protocol.batch import assign_offset
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.replica.moves.single_move import LogMove
from odradek.replica.partition import Partition
from tests.handlers.brokers import AnyBroker, SimulatedBroker
from tests.handlers.requests import alter_configs, batch, create_topic, produce
from tests.log.compaction.compacted_logs import records_of
from tests.replica.test_housekeeping import pass_time


def move(broker: AnyBroker, topic: str, path: str, partition: int = 0) -> ErrorCode:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = broker.call(request, AlterReplicaLogDirsResponse, 2)
    return ErrorCode(answer.results[0].partitions[0].error_code)


def described(broker: AnyBroker, topic: str) -> dict[str, tuple[bool, int]]:
    """Whether the copy in each log directory is a future one, and its lag."""
    answer = broker.call(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, 5)
    return {
        result.log_dir: (each.is_future_key, each.offset_lag)
        for result in answer.results
        for found in result.topics
        if found.name == topic
        for each in found.partitions
    }


def other(path: str) -> str:
    return "/two" if path == "/one" else "/one"


def filled(broker: SimulatedBroker, name: str, count: int = 20) -> str:
    """The directory of a new partition with records."""
    create_topic(broker, name)
    for _ in range(count):
        produce(broker, name)
    return broker.partition(name, 0).directory.path


def set_rate(broker: AnyBroker, rate: str) -> None:
    values = {"replica_alter_log_dirs_io_max_bytes_per_second": rate}
    assert alter_configs(broker, ConfigResourceType.BROKER, "", **values) is ErrorCode.NONE


def contents(partition: Partition) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in records_of(partition.log)]


def futures(broker: SimulatedBroker) -> list[str]:
    return [
        f"{path}/{name}"
        for path in [each.path for each in broker.services.partitions.directories]
        for name in broker.host.disk.list_directory(path)
        if name.endswith("-future")
    ]


def copying(broker: SimulatedBroker, name: str, *, seconds: float = 2) -> LogMove:
    """A throttled move from /one to /two that is copying."""
    assert filled(broker, name) == "/one"
    set_rate(broker, "1")
    assert move(broker, name, "/two") is ErrorCode.NONE
    pass_time(broker, seconds)
    found = broker.partition(name).move
    assert isinstance(found, LogMove)
    return found


def step_until(broker: SimulatedBroker, condition: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if condition():
            return
        broker.step(1)
    raise AssertionError("the condition was never met")


def exchanged(broker: SimulatedBroker, name: str) -> None:
    """A move from /one to /two whose copy has just replaced the log, and is not durable."""
    assert filled(broker, name) == "/one"
    assert move(broker, name, "/two") is ErrorCode.NONE
    step_until(broker, lambda: broker.partition(name).directory.path == "/two")


def die(broker: SimulatedBroker) -> None:
    """The process ends; `start` begins another one."""
    broker._cancel_all()
    broker.simulation.loop._scheduled.clear()  # type: ignore[attr-defined]  # asyncio cannot forget timers otherwise
    broker.simulation.disk.kill()


def start(broker: SimulatedBroker) -> None:
    broker.run(broker._start())


def follow_another_leader(broker: SimulatedBroker, name: str, offset: int, end_offset: int) -> None:
    """Another broker leads: the log is truncated to `offset`, and gets the records of the leader up to `end_offset`."""
    partition = broker.partition(name)
    image = partition.image
    assert image is not None
    followed = replace(
        image,
        leader=9,
        replicas=(0, 9),
        in_sync_replicas=(9,),
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=image.partition_epoch + 1,
    )
    assert partition.become_follower(followed) is ErrorCode.NONE
    broker.run(partition.follower_log.truncate_to(offset))
    for each in range(offset, end_offset):
        records = bytearray(batch(b"other %d" % each))
        assign_offset(records, 0, each, partition.leader_epoch)
        assert partition.follower_log.append(memoryview(records)).error is ErrorCode.NONE
