"""A partition keeps its log of a shard for as long as it is the same partition, and leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from odradek.coordinator.runtime.topic_logs import TopicLogs
from odradek.replica.partition import Role
from tests.coordinator.runtime.log_partition import LogPartition
from tests.simulation.simulated_host import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.replica.partition_table import PartitionTable


class Table:
    def __init__(self) -> None:
        self.partitions: list[LogPartition] | None = None

    def topic(self, name: str) -> list[LogPartition] | None:
        return self.partitions if name == "__consumer_offsets" else None


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    simulation = Simulation(1)
    simulation.disk.make_directories("/log")
    yield simulation
    simulation.close()


def test_the_log_of_a_partition_stays_the_same_until_the_partition_is_another(simulation: Simulation) -> None:
    table = Table()
    logs = TopicLogs("__consumer_offsets", cast("PartitionTable", table), simulation.host)
    assert logs.led() == []
    partition = LogPartition(simulation)
    table.partitions = [partition]
    (first,) = logs.led()
    assert logs.led() == [first]
    partition.role = Role.FAILED
    assert logs.led() == []
    partition.role = Role.LEADER
    assert logs.led() == [first]
    table.partitions = [LogPartition(simulation)]
    (second,) = logs.led()
    assert second is not first
    assert second.partition is not first.partition
