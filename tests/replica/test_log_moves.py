"""Moves of replicas between log directories: copied while the broker serves, exchanged, continued after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tests.handlers.brokers import SimulatedBroker
from tests.handlers.requests import create_topic, delete_records, delete_topic, produce
from tests.replica.test_compaction import offsets
from tests.replica.test_housekeeping import pass_time

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def broker() -> Iterator[SimulatedBroker]:
    broker = SimulatedBroker(log_dirs="/one,/two")
    yield broker
    broker.close()


def move(broker: SimulatedBroker, topic: str, path: str, partition: int = 0) -> ErrorCode:
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])
    answer = broker.call(request, AlterReplicaLogDirsResponse, 2)
    return ErrorCode(answer.results[0].partitions[0].error_code)


def described(broker: SimulatedBroker, topic: str) -> dict[str, tuple[bool, int]]:
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


def test_a_replica_is_moved_with_all_its_records(broker: SimulatedBroker, name: str) -> None:
    before = filled(broker, name)
    found = offsets(broker, name)
    assert move(broker, name, other(before)) is ErrorCode.NONE
    pass_time(broker, 2)
    assert broker.partition(name, 0).directory.path == other(before)
    assert described(broker, name) == {other(before): (False, 0)}
    assert offsets(broker, name) == found
    assert produce(broker, name).base_offset == 20
    pass_time(broker, 70)
    assert f"{name}-0" not in broker.host.disk.list_directory(before)
    broker.restart()
    assert broker.partition(name, 0).directory.path == other(before)
    assert len(offsets(broker, name)) == 21
